"""The adapter for Ollama's own interface; only there can a request set the size of the context window."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from ...api.errors import BadRequest, ModelNotFound, ProviderError, Unreachable
from ...api.providers import ClientFactory, Endpoint, Provider, Request
from ..http.encoding import dump
from ..http.provider import HttpProvider, call_ids
from .request import OllamaWire
from .stream import OllamaStream
from .truncation import PromptWatch

if TYPE_CHECKING:
    import httpx

_WINDOW = 32_768
_ENDINGS = ("/api/chat", "/api", "/v1/chat/completions", "/v1")
_CALLS_TOOLS = "qwen3-coder:30b"
_LISTED = 8


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; `client` is called for the first request."""
    return Ollama(endpoint, client)


class Ollama(HttpProvider):
    """A model behind `POST {base_url}/api/chat`. The base URL may also end in /api or /v1.

    The requested window (`num_ctx`) is that of the endpoint, otherwise 32,768 tokens; Ollama's own default is far
    smaller.
    """

    path = "/api/chat"

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint.replace(base_url=_root(endpoint.base_url)), client)
        self._wire = OllamaWire(endpoint.provider, endpoint.model, endpoint.max_tools)
        self._watch = PromptWatch()
        self._with_think = True
        self._window: int = endpoint.context_window or _WINDOW
        self._measured = False
        self._models_url = self._sibling("/api/tags")

    async def find_window(self) -> int | None:
        """The window in tokens: the requested one, limited by the model's own, which is queried."""
        if self._measured:
            return self._window
        self._measured = True
        said = await self._fetched("POST", self._sibling("/api/show"), dump({"model": self.model}))
        facts = said.get("model_info") if isinstance(said, dict) else None
        for name, value in facts.items() if isinstance(facts, dict) else ():
            if str(name).endswith(".context_length") and isinstance(value, int) and value > 0:
                self._window = min(self._window, value)
        return self._window

    async def _open(self, request: Request) -> httpx.Response:
        # The model's own limit may be far less, and more than that is cut off without a word.
        await self.find_window()
        return await super()._open(request)

    def _sibling(self, path: str) -> str:
        return self._url.replace(self.path, path)

    async def _headers(self) -> dict[str, str]:
        return {**await super()._headers(), "accept": "application/x-ndjson"}

    def _body(self, request: Request) -> bytes:
        return self._wire.body(request, window=self._window, with_think=self._with_think)

    def _answer(self, request: Request) -> OllamaStream:
        return OllamaStream(
            self._endpoint,
            self._url,
            lambda: call_ids(request),
            window=self._window,
            is_cut=lambda tokens: self._watch.is_cut(request, tokens, self._window),
        )

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        if not (self._with_think and status == 400 and b"think" in said):
            return False
        self._with_think = False  # a model that does not think, or takes another value: never sent to it again
        return True

    async def _refusal(self, response: httpx.Response, said: bytes) -> ProviderError:
        error = await super()._refusal(response, said)
        name, model = self.name, self.model
        if isinstance(error, ModelNotFound):
            there = ", ".join(error.served[:_LISTED]) or "none yet"
            return ModelNotFound(
                f"{name} does not have the model {model!r}. Download it with `ollama pull {model}`, or choose an "
                f"installed one with /model or --model: {there}.",
                provider=name,
                status=error.status,
                served=error.served,
            )
        if b"does not support tools" in said:
            return BadRequest(
                f"The model {model} cannot call tools. Choose one that can with /model or --model, such as "
                f"{_CALLS_TOOLS} (`ollama pull {_CALLS_TOOLS}`), or continue without tools: --tools=-all.",
                provider=name,
                status=error.status,
            )
        return error

    def _failed(self, error: Exception, *, begun: bool) -> ProviderError:
        import httpx

        found = super()._failed(error, begun=begun)
        from ..http.error_mapping import tls_advice

        if not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)) or tls_advice(self._url, error):
            return found
        from ..http.error_reports import shown_url

        return Unreachable(
            f"{self.name} cannot be reached at {shown_url(self._sibling(''))}. Is Ollama running? "
            "Start it with `ollama serve`, or check OLLAMA_URL, the network and the proxy.",
            provider=self.name,
        )


def _root(base_url: str) -> str:
    """The address of the server itself."""
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        return base_url  # no URL: the first request says so
    path = parts.path.rstrip("/")
    ending = next((ending for ending in _ENDINGS if path.endswith(ending)), "")
    return urlunsplit(parts._replace(path=path.removesuffix(ending)))
