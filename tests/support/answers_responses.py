"""Scripted answers as a service that speaks the Responses API streams them; see `marvin_core.testing.answers`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core.testing import Answer

USAGE: Mapping[str, Any] = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 18,
}
_numbers = itertools.count(1)


def events(*payloads: Mapping[str, Any] | str) -> Answer:
    """A stream of these events, each with its name before it: objects as JSON, text as it is."""
    steps = []
    for payload in payloads:
        name = payload.get("type", "") if isinstance(payload, Mapping) else "message"
        data = payload if isinstance(payload, str) else json.dumps(payload)
        steps.append(f"event: {name}\ndata: {data}\n\n".encode())
    return Answer(steps=tuple(steps))


def text(
    text: str,
    *,
    chunks: int | Sequence[str] = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "completed",
    phase: str = "",
) -> Answer:
    """A plain answer; `thinking` becomes the summary of a reasoning item before it."""
    items = [reasoning(thinking)] if thinking else []
    return answer(*items, said(text, phase=phase), chunks=chunks, usage=usage, finish=finish)


def calls(
    *calls: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    chunks: int = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "completed",
) -> Answer:
    """An answer with tool calls, each a name and its arguments (an object, or the text as it is)."""
    items = [*([reasoning(thinking)] if thinking else []), *([said(text)] if text else [])]
    return answer(*items, *(called(*call) for call in calls), chunks=chunks, usage=usage, finish=finish)


def reasoning(summary: str = "", encrypted: str | None = None) -> dict[str, Any]:
    """A reasoning item as it is when it is done."""
    number = next(_numbers)
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    content = f"gAAAA-{number}" if encrypted is None else encrypted
    return {"type": "reasoning", "id": f"rs_{number}", "summary": parts, "encrypted_content": content or None}


def said(text: str, *, phase: str = "") -> dict[str, Any]:
    """A message item as it is when it is done."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": f"msg_{next(_numbers)}", "role": "assistant", "status": "completed"}
    return {**item, "content": content, **({"phase": phase} if phase else {})}


def called(name: str, arguments: Mapping[str, Any] | str, call_id: str = "") -> dict[str, Any]:
    """A call as it is when it is done."""
    number = next(_numbers)
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": call_id or f"call_{number}", "name": name}
    return {**item, "arguments": written, "status": "completed"}


def answer(
    *items: Mapping[str, Any],
    chunks: int | Sequence[str] = 1,
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "completed",
) -> Answer:
    """An answer with these items, streamed as the service does; `finish` is its status, or why it is incomplete."""
    return events(*streamed(*items, chunks=chunks), ended(*items, usage=usage, finish=finish))


def streamed(*items: Mapping[str, Any], chunks: int | Sequence[str] = 1) -> list[Mapping[str, Any]]:
    """The events of an answer up to its end."""
    found: list[Mapping[str, Any]] = [
        {"type": f"response.{kind}", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
        for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(items):
        found += _item(index, item, chunks)
    return found


def ended(
    *items: Mapping[str, Any], usage: Mapping[str, Any] | None = USAGE, finish: str = "completed"
) -> dict[str, Any]:
    """The event at the end of an answer."""
    status = finish if finish == "completed" else "incomplete"
    details = None if finish == "completed" else {"reason": finish}
    response = {"id": "resp_1", "object": "response", "status": status, "error": None, "incomplete_details": details}
    return {"type": f"response.{status}", "response": {**response, "output": list(items), "usage": usage}}


def failed(code: str, message: str) -> dict[str, Any]:
    """The event of an answer that failed."""
    error = {"code": code, "message": message}
    return {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": error, "usage": None}}


def _item(index: int, item: Mapping[str, Any], chunks: int | Sequence[str]) -> list[dict[str, Any]]:
    place = {"output_index": index, "item_id": item["id"]}
    emptied: dict[str, Any] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {},
        "tool_search_call": {"arguments": {}},
        "tool_search_output": {"tools": []},
    }
    begun = {**item, **emptied[item["type"]], "status": "in_progress"}
    found = [{"type": "response.output_item.added", "output_index": index, "item": begun}]
    if item["type"] == "message":
        pieces = _pieces(item["content"][0]["text"], chunks)
        found.append({"type": "response.content_part.added", **place, "content_index": 0, "part": {}})
        found += [
            {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece} for piece in pieces
        ]
    elif item["type"] == "function_call":
        pieces = _pieces(item["arguments"], chunks)
        found += [{"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces]
        found.append({"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]})
    elif item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            found.append({"type": "response.reasoning_summary_part.added", **place, "summary_index": number})
            delta = {"summary_index": number, "delta": part["text"]}
            found.append({"type": "response.reasoning_summary_text.delta", **place, **delta})
    return [*found, {"type": "response.output_item.done", "output_index": index, "item": dict(item)}]


def _pieces(text: str, chunks: int | Sequence[str]) -> Sequence[str]:
    if not isinstance(chunks, int):
        return chunks
    size = max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]
