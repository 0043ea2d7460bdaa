"""The adapter for OpenAI's Responses API, and for servers that speak it."""

from __future__ import annotations

from ...api.providers import ClientFactory, Endpoint, Provider, Request
from ..http.provider import HttpProvider, call_ids
from .request import ResponsesWire
from .stream import ResponsesStream

# What a refusal names, and what is left out from then on: summaries are for verified organisations only, models
# differ in the efforts that they take, and those that do not reason have nothing to encrypt.
_REFUSED = (
    (b"reasoning.summary", "summary"),
    (b"reasoning.effort", "effort"),
    (b"encrypted content is not supported", "encrypted"),
    (b"text.format", "format"),
    (b"prompt_cache_retention", "retention"),
    (b"prompt_cache_breakpoint", "breakpoint"),
)


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; `client` is called for the first request."""
    return Responses(endpoint, client)


class Responses(HttpProvider):
    """A model behind `POST {base_url}/responses`. The base URL may already contain that path."""

    path = "/responses"
    without: tuple[str, ...] = ()
    """The features that the service does not accept; see `ResponsesWire`."""

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint, client)
        self._wire = ResponsesWire(endpoint, self.without)

    @property
    def defers(self) -> bool:
        """Whether the service itself adds the tools in the output of a search."""
        return self._wire.defers

    def _body(self, request: Request) -> bytes:
        return self._wire.body(request)

    def _answer(self, request: Request) -> ResponsesStream:
        return ResponsesStream(self._endpoint, self._url, lambda: call_ids(request))

    def _stop_deferring(self) -> bool:
        return self._wire.defers and self._wire.leave_out("tool_search")

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        if status != 400:
            return False
        lower = said.lower()
        if b"reasoning.effort" in lower and self._wire.think_otherwise(
            request.thinking, said.decode("utf-8", "replace")
        ):
            return True
        for words, what in _REFUSED:
            if words in lower and self._wire.leave_out(what):
                return True
        # Reasoning of another account, or too old to be read: the conversation goes on without it.
        return b"encrypted" in lower and self._wire.forget_reasoning(request.messages)
