"""Streamed answers in Ollama's own format: from the bytes of an answer to its deltas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from ...api.errors import ContextOverflow
from ...api.messages import StopReason, Usage
from ...api.providers import Endpoint
from ...util.numbers import count_at
from ..http.answer_stream import AnswerStream
from ..http.sse import JsonLines
from ..http.thinking_tags import ThinkingTags

_CUT = (
    "{model} did not see the beginning of the conversation: {provider} left it out, because the conversation does "
    "not fit into the context window of {window:,} tokens. Shorten it with /compact, or set a larger context_window "
    "in config.yaml."
)


class OllamaStream(AnswerStream):
    """Reads one answer.

    `is_cut` receives the prompt's tokens and returns whether its beginning was dropped. `window` is in tokens.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        url: str,
        taken_ids: Callable[[], Collection[str]] = tuple,
        *,
        window: int,
        is_cut: Callable[[int], bool],
    ) -> None:
        super().__init__(endpoint, url, taken_ids)
        self._splitter = JsonLines(endpoint.limits.event)
        self._tags = ThinkingTags()
        self._window = window
        self._is_cut = is_cut
        self._reason = ""

    @property
    def is_complete(self) -> bool:
        """Whether the model gave its stop reason, so that a lost connection now loses nothing."""
        return self.done

    def _begin(self, data: bytes) -> bytes:
        start = data.lstrip()
        self._begun = bool(start)
        if start.startswith(b"<"):
            raise self._web_page("OLLAMA_URL", start)
        return data

    def _event(self, payload: bytes) -> None:
        if not self.done:
            self._document(self._parsed(payload))

    def _document(self, document: Any) -> None:
        try:
            if document.get("error"):
                raise self._reported(document)
            self._message(document.get("message") or {})
            if document.get("done"):
                self._end(document)
        except (AttributeError, TypeError, KeyError):
            raise self._broken("sent an answer of an unknown shape", json.dumps(document).encode()) from None

    def _reported(self, document: dict[str, Any]) -> Exception:
        from ..http.error_mapping import from_error

        error = {"message": str(document["error"]), "code": document.get("status")}
        return from_error(self._endpoint, self._url, error)

    def _message(self, message: dict[str, Any]) -> None:
        if message.get("thinking"):
            self._add("thinking", message["thinking"])
        for kind, text in self._tags.feed(message.get("content") or ""):
            self._add(kind, text)
        for item in message.get("tool_calls") or ():
            # Each comes whole; older versions give it neither an id nor a number of its own.
            self._switch(self._calls.take({**item, "index": len(self._calls.all)}))

    def _end(self, document: dict[str, Any]) -> None:
        for kind, text in self._tags.finish():
            self._add(kind, text)
        self.done = True
        self._reason = document.get("done_reason") or ""
        prompt = count_at(document, "prompt_eval_count")
        self._usage = Usage(
            input_tokens=prompt,
            output_tokens=count_at(document, "eval_count"),
            cache_read_tokens=count_at(document, "prompt_eval_cached_count"),
        )
        if prompt and self._is_cut(prompt):
            name = self._endpoint.provider
            text = _CUT.format(model=self._endpoint.model, provider=name, window=self._window)
            raise ContextOverflow(text, provider=name)

    def _stop_reason(self) -> StopReason:
        if self._reason == "length":
            return "length"
        return "tool_calls" if self._calls.all else "stop"
