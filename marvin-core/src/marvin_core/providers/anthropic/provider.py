"""The adapter for Anthropic's Messages API, and for services that speak the same format."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from ...api.providers import ClientFactory, Endpoint, Provider, Request
from ..http.provider import HttpProvider, call_ids
from .request import AnthropicWire
from .stream import AnthropicStream
from .thinking import BINDING

_VERSION = "2023-06-01"
_VERSIONED = re.compile(r"/v\d+(/messages)?/?$")
_ALL_MODELS = "limit=1000"


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; `client` is called when the first request is made."""
    return Anthropic(endpoint, client)


class Anthropic(HttpProvider):
    """A model behind `POST {base_url}/messages`.

    The base URL may name that path already, and may lack `/v1`: the variable ANTHROPIC_BASE_URL, which other
    programs read too, usually does.
    """

    path = "/messages"

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint.replace(base_url=_versioned(endpoint.base_url)), client)
        self._models_url += ("&" if "?" in self._models_url else "?") + _ALL_MODELS
        self._wire = AnthropicWire(endpoint)

    @property
    def defers(self) -> bool:
        """Whether the service adds the tools by itself that an output reveals."""
        return self._wire.defers

    async def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream", "anthropic-version": _VERSION}
        headers.update({name.lower(): value for name, value in (self._endpoint.headers or {}).items()})
        if self._wire.generation.bound:
            headers["anthropic-beta"] = ",".join(filter(None, (headers.get("anthropic-beta"), BINDING)))
        if self._endpoint.key:
            headers["x-api-key"] = self._endpoint.key.reveal().strip()
        return headers

    def _body(self, request: Request) -> bytes:
        return self._wire.body(request)

    def _answer(self, request: Request) -> AnthropicStream:
        return AnthropicStream(self._endpoint, self._url, lambda: call_ids(request))

    def _stop_deferring(self) -> bool:
        return self._wire.stop_deferring()

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        if status != 400:
            return False
        # Signatures of another account, or of a rewritten conversation, would be rejected every time.
        if b"thinking" in said and b"signature" in said:
            return self._wire.stop_returning()
        if b"thinking" in said and self._wire.think_otherwise(request.thinking, said):
            return True
        if b"ttl" in said and self._wire.cache_shortly():
            return True
        # The service enforces only a part of a schema. The arguments are checked here as well.
        about_format = b"output_config" in said or b"output_format" in said or b"schema" in said
        return request.output_schema is not None and about_format and self._wire.leave_format_out()


def _versioned(base_url: str) -> str:
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        return base_url  # not a URL: the first request reports it
    if not parts.netloc or _VERSIONED.search(parts.path):
        return base_url
    return urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix("/messages") + "/v1"))
