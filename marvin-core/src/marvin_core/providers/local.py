"""The provider `local`: llama.cpp inside this process, with a GGUF file of the user (extra `local`).

xllamacpp serves the model on a port of this machine, with the chat completions format; nobody else learns the port.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import ConfigError, ModelNotFound, Unreachable
from ..api.providers import ClientFactory, Delta, Endpoint, Request, Secret
from ..util.threads import in_thread
from .wrapper import EndpointProvider

if TYPE_CHECKING:
    from .chat_completions.provider import ChatCompletions

_MISSING = 'The provider local needs the package xllamacpp. Install it: pip install "marvin-core[local]"'
_WINDOW = 8_192
"""The context window in tokens, if config.yaml has none. A model with a smaller one gets its own."""


def create(endpoint: Endpoint, client: ClientFactory) -> Local:
    """The provider of an endpoint whose model is the path of a GGUF file; a relative path starts at the start folder.

    Raises:
        ConfigError: no file is named.
    """
    if not endpoint.model:
        raise ConfigError(
            "The provider local needs a GGUF file: --model local/PATH.gguf, or MARVIN_LOCAL_MODEL with its path."
        )
    return Local(endpoint, client)


class Local(EndpointProvider):
    """A model in this process, loaded with the first request."""

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint.replace(context_window=endpoint.context_window or _WINDOW))
        self._client = client
        self._file = Path(endpoint.model)
        self._server: Any = None
        self._chat: ChatCompletions | None = None
        self._key = os.urandom(16).hex()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer; see `Provider.stream`. The first one also loads the model."""
        if self._chat is None:
            address = await in_thread(self._start)
            self._chat = _chat_at(self._endpoint, address, self._key, self._client)
        async with aclosing(self._chat.stream(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                yield delta

    def _start(self) -> str:
        """Load the model and serve it; returns the address."""
        if not self._file.is_file():
            raise ModelNotFound(
                f"There is no file {self._file}. Name a GGUF file, as in --model local/models/qwen.gguf.",
                provider=self.name,
            )
        try:
            llama: Any = import_module("xllamacpp")
        except ImportError as error:
            raise ConfigError(_MISSING) from error
        params = llama.CommonParams()
        params.model.path = str(self._file)
        params.hostnames = ["127.0.0.1"]
        params.port = _free_port()
        params.n_ctx = self.context_window
        params.n_parallel = 1
        params.use_jinja = True  # without it, no tools
        params.verbosity = 0
        params.api_keys = [self._key]  # else any web page in a browser here could use it
        try:
            self._server = llama.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise Unreachable(
                f"{self._file} cannot be loaded: {error}. Is it a GGUF file that fits into memory?", provider=self.name
            ) from error
        return str(self._server.listening_address)

    async def aclose(self) -> None:
        """Release the model's memory."""
        self._chat = self._server = None


def _chat_at(endpoint: Endpoint, address: str, key: str, client: ClientFactory) -> ChatCompletions:
    from .chat_completions.provider import ChatCompletions

    return ChatCompletions(endpoint.replace(base_url=f"{address}/v1", model="", key=Secret(key)), client)


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
