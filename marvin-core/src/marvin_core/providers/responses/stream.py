"""Streamed answers of the Responses API: from their bytes to deltas.

The events: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from ...api.messages import ProviderData, StopReason, Usage
from ...api.providers import Endpoint, ThinkingDelta
from ...api.tools import SEARCH
from ...util.numbers import count_at
from ..http.answer_stream import AnswerStream, Kind
from ..http.call_fragments import PartialCall

_REASONING_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
_CALLS = ("function_call", "tool_search_call")
_ITEM_SIZE = 100
"""The size of an item, and of each of its names, in characters."""


class _Item:
    """One item of the output while it streams in."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.call: PartialCall | None = None
        self.begun = False
        """Whether any of its text or arguments has arrived."""


class ResponsesStream(AnswerStream):
    """Reads one answer.

    Encrypted reasoning and the phase of a message are attached to an empty piece of thinking. That piece is sent when
    their item begins. Nothing is shown earlier, so that a broken answer can still be requested again.
    """

    def __init__(self, endpoint: Endpoint, url: str, taken_ids: Callable[[], Collection[str]] = tuple) -> None:
        super().__init__(endpoint, url, taken_ids)
        self._items: list[_Item] = []
        self._by_name: dict[object, _Item] = {}
        self._held: list[dict[str, Any]] = []
        self._phase = ""
        self._gap: Kind | None = None
        self._spoken = self._thought = False
        self._refused = False
        self._cut: StopReason | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the service reported the end of the answer."""
        return self.done

    def _event(self, payload: bytes) -> None:
        if not self.done and payload.strip() and not payload.startswith(b"[DONE]"):
            self._understood(self._parsed(payload))

    def _document(self, document: Any) -> None:
        """An answer that is one JSON document instead of a stream."""
        self._check_error(document)
        if not isinstance(document, dict) or not (document.get("output") or document.get("error")):
            raise self._broken("answered with JSON that is not a response", bytes(self._plain or b""))
        for index, item in enumerate(document.get("output") or ()):
            self._understood({"type": "response.output_item.done", "output_index": index, "item": item})
        self._understood({"type": f"response.{document.get('status') or 'completed'}", "response": document})

    def _understood(self, event: Any) -> None:
        try:
            self._take_event(event, event.get("type") or "")
        except (AttributeError, TypeError, KeyError, IndexError):
            raise self._broken("sent an answer of an unknown shape", json.dumps(event).encode()) from None

    def _take_event(self, event: dict[str, Any], kind: str) -> None:
        if kind == "response.output_text.delta":
            self._text(event["delta"], self._item(event))
        elif kind == "response.refusal.delta":
            self._refused = True
            self._text(event["delta"], self._item(event))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._think(event["delta"], self._item(event))
        elif kind == "response.reasoning_summary_part.added":
            self._gap = "thinking" if self._item(event).begun else self._gap
        elif kind == "response.function_call_arguments.delta":
            self._arguments(event["delta"], self._item(event))
        elif kind == "response.output_item.added":
            self._begun_item(event["item"], self._item(event, new=True))
        elif kind == "response.output_item.done":
            self._done_item(event["item"], self._item(event))
        elif kind in ("response.completed", "response.incomplete"):
            self._end(event["response"])
        elif kind in ("response.failed", "response.cancelled"):
            self._fail((event.get("response") or {}).get("error") or {"message": f"{kind}, without a reason"})
        elif kind in ("", "error"):
            self._check_error(event)

    def _item(self, event: dict[str, Any], *, new: bool = False) -> _Item:
        """The item of an event, by its id or its position; some servers send only one of them."""
        names = [
            (field, value)
            for field, value in (
                ("id", event.get("item_id") or (event.get("item") or {}).get("id")),
                ("place", event.get("output_index")),
            )
            if value is not None
        ]
        known = None if new else next((self._by_name[name] for name in names if name in self._by_name), None)
        if known is None and not new and self._items and not event.get("item"):
            known = self._items[-1]
        if known is None:
            known = _Item(len(self._items))
            self._items.append(known)
            self._weigh(_ITEM_SIZE)
        for name in names:
            if name not in self._by_name:
                self._weigh(_ITEM_SIZE)
            self._by_name[name] = known
        return known

    def _begun_item(self, item: dict[str, Any], entry: _Item) -> None:
        if _is_call(item):
            self._begin_call(item, entry)
        elif item["type"] == "message":
            self._begin_message(item)
        elif item["type"] == "reasoning" and self._thought:
            self._gap = "thinking"

    def _begin_call(self, item: dict[str, Any], entry: _Item) -> PartialCall:
        if entry.call is None:
            name = SEARCH if item["type"] == "tool_search_call" else item.get("name")
            function = {"name": name, "arguments": ""}
            entry.call = self._calls.take(
                {"index": entry.number, "id": item.get("call_id") or item.get("id"), "function": function}
            )
            self._spoken = self._thought = False
            self._switch(entry.call)
        return entry.call

    def _begin_message(self, item: dict[str, Any]) -> None:
        if self._spoken:
            self._gap = "text"
        if item.get("phase"):
            # Today's models are told again which of their words were remarks on the way, and which the answer.
            self._switch("thinking")
            self._phase = item["phase"]

    def _done_item(self, item: dict[str, Any], entry: _Item) -> None:
        """Process the parts that were not streamed."""
        if item["type"] == "reasoning":
            if not entry.begun:
                parts = item.get("summary") or item.get("content") or ()
                self._think("\n\n".join(part["text"] for part in parts), entry)
            self._hold(item)
        elif _is_call(item):
            self._begin_call(item, entry)
            if not entry.begun:
                self._arguments(item.get("arguments"), entry)
        elif item["type"] == "message" and not entry.begun:
            self._begin_message(item)
            for part in item.get("content") or ():
                self._refused = self._refused or "refusal" in part
                self._text(part.get("text") or part.get("refusal") or "", entry)

    def _hold(self, item: dict[str, Any]) -> None:
        # Without its encrypted content an item is only a reference to what the service has not stored.
        if item.get("id") and item.get("encrypted_content"):
            self._switch("thinking")
            kept = {field: item[field] for field in _REASONING_FIELDS if item.get(field)}
            self._held.append({"summary": [], **kept})
            self._weigh(len(str(kept)))

    def _switch(self, kind: Kind) -> None:
        super()._switch(kind)
        if kind != "thinking" and (self._held or self._phase):
            data: dict[str, Any] = {"items": self._held}
            if self._phase:
                data["phase"] = self._phase
            own = ProviderData(provider=self._endpoint.provider, data=data)
            self._out.append(ThinkingDelta(text="", provider_data=own))
            self._held, self._phase = [], ""

    def _text(self, text: str, entry: _Item) -> None:
        if text:
            entry.begun = self._spoken = True
            self._thought = False
            self._add("text", self._spaced("text") + text)

    def _think(self, text: str, entry: _Item) -> None:
        if text:
            entry.begun = self._thought = True
            self._add("thinking", self._spaced("thinking") + text)

    def _spaced(self, kind: Kind) -> str:
        """A blank line before a new part of the same kind."""
        gap, self._gap = self._gap, None
        return "\n\n" if gap == kind else ""

    def _arguments(self, fragment: object, entry: _Item) -> None:
        if entry.call is not None and fragment:
            entry.begun = True
            text = fragment if isinstance(fragment, str) else json.dumps(fragment, ensure_ascii=False)
            self._switch(self._calls.take({"index": entry.number, "function": {"arguments": text}}))

    def _end(self, response: dict[str, Any]) -> None:
        if response.get("usage"):
            self._usage = _usage(response["usage"])
        if response.get("status") == "incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason")
            self._cut = "refused" if reason == "content_filter" else "length"
        self.done = True

    def _fail(self, error: Any) -> None:
        from ..http.error_mapping import from_error

        raise from_error(self._endpoint, self._url, error)

    def _stop_reason(self) -> StopReason:
        if self._cut or self._refused:
            return self._cut or "refused"
        return "tool_calls" if self._calls.all else "stop"


def _is_call(item: dict[str, Any]) -> bool:
    """Whether an item is a call for Marvin to run; a search by the service itself is none."""
    return item["type"] in _CALLS and item.get("execution") != "server"


def _usage(counts: Any) -> Usage:
    return Usage(
        input_tokens=count_at(counts, "input_tokens"),
        output_tokens=count_at(counts, "output_tokens"),
        cache_read_tokens=count_at(counts, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=count_at(counts, "input_tokens_details", "cache_write_tokens"),
        reasoning_tokens=count_at(counts, "output_tokens_details", "reasoning_tokens"),
    )
