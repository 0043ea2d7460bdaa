"""The adapter for services with OpenAI's chat completions format, as most self-hosted servers are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...api.providers import ClientFactory, Endpoint, Provider, Request
from ..http.provider import HttpProvider, call_ids
from .request import ChatWire
from .services import refused_fields

if TYPE_CHECKING:
    from .stream import ChatStream

_OTHER_LIMIT = "max_completion_tokens"
_REFUSALS = (400, 422)
_OF_TEMPLATES = (404, 500)
"""Other status codes of self-hosted servers if the model's template rejects a conversation."""
_WITH_EFFORT = {"reasoning_effort", "reasoning"}


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; `client` is called when the first request is made."""
    return ChatCompletions(endpoint, client)


class ChatCompletions(HttpProvider):
    """A model behind `POST {base_url}/chat/completions`. The base URL may name that path already."""

    path = "/chat/completions"

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint, client)
        self._wire = ChatWire(endpoint)
        self._refused: set[str] = set()
        self._efforts: dict[str, str] = {}

    async def find_window(self) -> int | None:
        """The context window in tokens, queried if it is unknown; None if the service does not report it."""
        if self._window is None:
            self._window = await self._listed_window()
        return await super().find_window()

    async def _listed_window(self) -> int | None:
        """The window in the list of models, or else the one that llama.cpp reports elsewhere."""
        from ..http.model_lists import has_meta, models_in

        document = await self._fetched("GET", self._models_url)
        listed = models_in(document)
        entry = next((entry for entry in listed if entry.name == self.model), None)
        if entry is None and len(listed) == 1:
            entry = listed[0]  # a server with one model, which accepts any name
        if entry is None or entry.facts.window is not None or not has_meta(document):
            return entry.facts.window if entry is not None else None
        # Earlier versions list the window of the training, and not that of the server.
        properties = await self._fetched("GET", self._models_url.replace("/v1/models", "/props"))
        settings = properties.get("default_generation_settings") if isinstance(properties, dict) else None
        size = settings.get("n_ctx") if isinstance(settings, dict) else None
        return size if isinstance(size, int) and size > 0 else None

    def _optional(self, request: Request) -> dict[str, Any]:
        fields = self._wire.optional(request)
        effort = _effort_in(fields)
        if effort in self._efforts:
            _set_effort(fields, self._efforts[effort])
        return {name: value for name, value in fields.items() if name not in self._refused}

    def _body(self, request: Request) -> bytes:
        return self._wire.body(request, self._optional(request))

    def _answer(self, request: Request) -> ChatStream:
        from .stream import ChatStream

        return ChatStream(self._endpoint, self._url, lambda: call_ids(request))

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        if status not in (*_REFUSALS, *_OF_TEMPLATES):
            return False
        text = said.decode("utf-8", "replace")
        if self._wire.learn(text):
            return True
        if status in _OF_TEMPLATES:
            return False
        if request.max_output_tokens is not None and self._wire.limit_field != _OTHER_LIMIT and _OTHER_LIMIT in text:
            self._wire.limit_field = _OTHER_LIMIT
            return True
        sent = self._optional(request)
        refused = refused_fields(sent, text)
        if refused & _WITH_EFFORT and self._thinks_otherwise(request, sent, text):
            return True
        self._refused |= refused  # a service that does not support a field: it is never sent there again
        return bool(refused)

    def _thinks_otherwise(self, request: Request, sent: Mapping[str, Any], said: str) -> bool:
        """Whether a rejection leads to another effort, which replaces the rejected one from now on."""
        from ..http.efforts import other_effort

        refused = _effort_in(sent)
        other = other_effort(refused, said)
        wanted = _effort_in(self._wire.optional(request))
        if not other or wanted in self._efforts:
            return False
        self._efforts[wanted] = other
        return True


def _effort_in(fields: Mapping[str, Any]) -> str:
    reasoning = fields.get("reasoning")
    found = reasoning.get("effort") if isinstance(reasoning, dict) else fields.get("reasoning_effort")
    return found if isinstance(found, str) else ""


def _set_effort(fields: dict[str, Any], effort: str) -> None:
    if "reasoning" in fields:
        fields["reasoning"] = {"effort": effort}
    else:
        fields["reasoning_effort"] = effort
