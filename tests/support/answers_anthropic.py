"""Scripted answers of the model server, byte by byte as Anthropic's Messages API sends them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core.testing import Answer
from marvin_core.testing import error as plain_error

USAGE: Mapping[str, int] = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 7,
}
SIGNATURE = "EqQBCgIYAhIk"
_numbers = itertools.count(1)


def text(
    text: str,
    *,
    chunks: int | Sequence[str] = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "end_turn",
) -> Answer:
    """A plain answer, its text in `chunks` pieces of about the same size, or in the pieces given."""
    before = [thought(thinking)] if thinking else []
    return message(*before, said(text, chunks), usage=usage, finish=finish)


def calls(
    *calls: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    chunks: int = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "tool_use",
) -> Answer:
    """An answer with tool calls, each a name and its arguments (an object, or the text as it is)."""
    blocks = [thought(thinking)] if thinking else []
    blocks += [said(text)] if text else []
    return message(*blocks, *(called(*call, chunks=chunks) for call in calls), usage=usage, finish=finish)


Block = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""What a block begins with, and the deltas that follow."""


def said(text: str, chunks: int | Sequence[str] = 1) -> Block:
    """A block of text."""
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(text, chunks)]


def thought(text: str, signature: str = SIGNATURE) -> Block:
    """A block of thinking, whose signature comes last."""
    pieces = [{"type": "thinking_delta", "thinking": text}] if text else []
    return {"type": "thinking", "thinking": "", "signature": ""}, [
        *pieces,
        {"type": "signature_delta", "signature": signature},
    ]


def redacted(data: str) -> Block:
    """A block of thinking that only the service can read."""
    return {"type": "redacted_thinking", "data": data}, []


def called(name: str, arguments: Mapping[str, Any] | str, *, chunks: int = 1, call_id: str = "") -> Block:
    """A block with a call, its arguments in pieces, the first of them empty."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    start = {"type": "tool_use", "id": call_id or f"toolu_{next(_numbers)}", "name": name, "input": {}}
    pieces = ["", *_pieces(written, chunks)]
    return start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def message(*blocks: Block, usage: Mapping[str, Any] | None = USAGE, finish: str = "end_turn") -> Answer:
    """An answer of these blocks."""
    counts = dict(usage or {})
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    begun = {**head, "stop_reason": None, "stop_sequence": None, "usage": {**counts, "output_tokens": 1}}
    sent: list[Mapping[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, (start, deltas) in enumerate(blocks):
        sent.append({"type": "content_block_start", "index": index, "content_block": start})
        sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    sent.append({"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": None}, "usage": counts})
    return events(*sent, {"type": "message_stop"})


def events(*payloads: Mapping[str, Any]) -> Answer:
    """A stream of these events."""
    steps = [
        f"event: {payload.get('type')}\ndata: {json.dumps(payload, ensure_ascii=False)}\n\n" for payload in payloads
    ]
    return Answer(steps=tuple(step.encode() for step in steps))


def error(status: int, kind: str, said: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An error as this service words it."""
    body = {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}
    return plain_error(status, body, headers)


def _pieces(text: str, chunks: int | Sequence[str]) -> Sequence[str]:
    if not isinstance(chunks, int):
        return chunks
    size = max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]
