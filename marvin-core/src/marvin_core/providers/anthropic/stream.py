"""Decodes streamed answers in Anthropic's Messages format into deltas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from ...api.messages import StopReason, Usage
from ...api.providers import Endpoint, ThinkingDelta
from ...util.numbers import count_at
from ..http.answer_stream import AnswerStream, Kind
from .thinking import kept

_REASONS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use")
_BLOCK_SIZE = 200
"""The size in characters that an empty block counts as."""
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class AnthropicStream(AnswerStream):
    """Decodes one answer in the Messages format; events and blocks of unknown types are ignored."""

    def __init__(self, endpoint: Endpoint, url: str, taken_ids: Callable[[], Collection[str]] = tuple) -> None:
        super().__init__(endpoint, url, taken_ids)
        self._reason = ""
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._open: dict[object, dict[str, Any]] = {}
        self._thoughts: list[dict[str, Any]] = []
        self._unsigned = "claude" not in endpoint.model  # models of other vendors require it back anyway

    @property
    def is_complete(self) -> bool:
        """Whether the stop reason has arrived, so that a lost connection loses nothing."""
        return self.done or bool(self._reason)

    def _event(self, payload: bytes) -> None:
        if not self.done and payload.strip() and not payload.startswith(b"[DONE]"):
            self._take_event(self._parsed(payload))

    def _document(self, document: Any) -> None:
        """An answer that is one JSON document, and not a stream."""
        self._take_event(document)
        if document.get("type") != "message":
            raise self._broken("answered with JSON that is not a message", bytes(self._plain or b""))
        self._take_event({"type": "message_start", "message": document})
        for index, block in enumerate(document.get("content") or ()):
            self._take_event({"type": "content_block_start", "index": index, "content_block": block})
        self._take_event({"type": "message_delta", "delta": {"stop_reason": document.get("stop_reason") or "end_turn"}})

    def _take_event(self, event: Any) -> None:
        try:
            if (event.get("type") or "error") == "error" or event.get("error") or "base_resp" in event:
                self._check_error(event)
            self._known_event(event)
        except (AttributeError, TypeError, KeyError):
            raise self._broken("sent an answer of an unknown shape", json.dumps(event).encode()) from None

    def _known_event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._start(event.get("index"), event["content_block"])
            case "content_block_delta":
                self._piece(event.get("index"), event["delta"])
            case "content_block_stop":
                self._close(event.get("index"))
            case "message_delta":
                self._count(event.get("usage"))
                self._reason = event["delta"].get("stop_reason") or self._reason
                if self._reason:
                    self._close_all()
            case "message_stop":
                self._close_all()
                self.done = True

    def _start(self, index: object, block: dict[str, Any]) -> None:
        self._close(index)
        self._weigh(_BLOCK_SIZE)
        kind = block["type"]
        self._open[index] = {"type": kind}
        if kind == "text":
            self._say("text", block.get("text"))
        elif kind == "thinking":
            self._open[index] = _thinking(block.get("signature") or "")
            self._think(index, block.get("thinking"))
        elif kind == "redacted_thinking":
            self._open[index] = {"type": kind, "data": block["data"]}
            self._weigh(len(block["data"]))
        elif kind == "tool_use":
            self._open[index] = {"type": kind, "input": block.get("input")}
            if block.get("input"):
                self._weigh(len(str(block["input"])))
            function = {"name": block.get("name"), "arguments": ""}
            self._switch(self._calls.take({"index": index, "id": block.get("id"), "function": function}))

    def _piece(self, index: object, delta: dict[str, Any]) -> None:
        block = self._open.get(index)
        if block is not None and block["type"] not in _BLOCKS:
            return
        match delta.get("type"):
            case "text_delta":
                self._say("text", delta["text"])
            case "thinking_delta":
                self._think(index, delta["thinking"])
            case "signature_delta" if block is not None and "signature" in block:
                block["signature"].append(delta["signature"])
                self._weigh(len(delta["signature"]))
            case "input_json_delta":
                if block is not None and delta["partial_json"]:
                    block["input"] = None  # arrives in parts
                function = {"arguments": delta["partial_json"]}
                self._switch(self._calls.take({"index": index, "function": function}))

    def _say(self, kind: Kind, text: str | None) -> None:
        if text:
            self._add(kind, text)

    def _think(self, index: object, text: str | None) -> None:
        if index not in self._open:
            self._weigh(_BLOCK_SIZE)
            self._open[index] = _thinking("")
        if text:
            self._open[index]["thinking"].append(text)
        self._say("thinking", text)

    def _switch(self, kind: Kind) -> None:
        if kind != "thinking":
            self._thoughts = []
        super()._switch(kind)

    def _close_all(self) -> None:
        for index in list(self._open):
            self._close(index)

    def _close(self, index: object) -> None:
        """The block is complete: a call may have arrived whole, and thinking is stored with its signature."""
        block = self._open.pop(index, None)
        if block is None:
            return
        if block["type"] == "thinking":
            block = {**block, "thinking": "".join(block["thinking"]), "signature": "".join(block["signature"])}
        if block.get("input"):
            whole = json.dumps(block["input"], ensure_ascii=False)
            self._switch(self._calls.take({"index": index, "function": {"arguments": whole}}))
        elif block.get("signature") or block.get("data") or (self._unsigned and block.get("thinking")):
            self._switch("thinking")
            self._flush(last=True)
            # Adjacent ones become one block of the message, so the last of them has the data of all.
            self._thoughts.append(block)
            data = kept(self._endpoint.provider, self._endpoint.model, self._thoughts)
            self._out.append(ThinkingDelta(text="", provider_data=data))

    def _count(self, usage: Any) -> None:
        """Take counts; they only grow, and some gateways send zeros in the first or the last event."""
        for name in _COUNTS if usage else ():
            self._counts[name] = max(self._counts[name], count_at(usage, name))
        uncached, read, written, output = (self._counts[name] for name in _COUNTS)
        if usage:
            self._usage = Usage(
                # This format counts cache reads and writes separately from the input.
                input_tokens=uncached + read + written,
                output_tokens=output,
                cache_read_tokens=read,
                cache_write_tokens=written,
            )

    def _stop_reason(self) -> StopReason:
        return _REASONS.get(str(self._reason)) or ("tool_calls" if self._calls.all else "stop")


def _thinking(signature: str) -> dict[str, Any]:
    """A block of thinking whose texts arrive in parts, which are joined once."""
    return {"type": "thinking", "thinking": [], "signature": [signature]}
