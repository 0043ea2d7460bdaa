"""Scripted answers of the server, as the bytes that a chat completions service streams.

The suite describes an answer by a small dictionary (`text`, `call`); the server makes its bytes of
that before the clock runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Description: TypeAlias = "dict[str, Any]"

PIECE = " word"
"""One token of text."""
LAST = "the end"
"""The last text of a paced answer."""
_LINE = 12
"""Tokens in a line of a paced answer."""
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


class Write(NamedTuple):
    """Bytes that are sent at once, `pause` seconds after the bytes before them.

    The moment before the sending is stamped under the name `mark`, if there is one.
    """

    data: bytes
    mark: str = ""
    pause: float = 0.0


def text(chunks: int, pause: float = 0.0) -> Description:
    """An answer of this many tokens, in one burst; `pause` is the time before the first."""
    return {"chunks": chunks, "pause": pause}


def paced(chunks: int, every: float) -> Description:
    """An answer of this many tokens, one every `every` seconds, in lines as prose has them; it ends with `LAST`."""
    return {"chunks": chunks, "pause": 0.0, "every": every}


def call(name: str, arguments: Mapping[str, Any], *, size: int = 16, pause: float = 0.0) -> Description:
    """An answer with one tool call, its arguments in pieces of `size` characters.

    `pause` is the time before the call begins, and before the answer ends.
    """
    return {"name": name, "arguments": json.dumps(arguments), "size": size, "pause": pause}


def writes(description: Description, number: int) -> list[Write]:
    """The bytes of an answer. Its content starts at the mark `content`, and it ends with the mark `last`."""
    if "every" in description:
        return _paced(description["chunks"], description["every"])
    if "chunks" in description:
        deltas: list[dict[str, Any]] = [{"content": PIECE}] * description["chunks"]
        finish = "stop"
    else:
        deltas, finish = _call_deltas(description, f"call_{number}"), "tool_calls"
    pause = description["pause"]
    return [
        _BEGIN,
        Write(b"".join(map(_event, deltas)), mark="content", pause=pause),
        Write(_end(finish, len(deltas)), mark="last", pause=pause),
    ]


def _paced(chunks: int, every: float) -> list[Write]:
    pieces = [f"{PIECE}\n" if number % _LINE == 0 else PIECE for number in range(1, chunks)]
    deltas = [*pieces, f"\n{LAST}\n"]
    return [_BEGIN, *(Write(_event({"content": piece}), pause=every) for piece in deltas), Write(_end("stop", chunks))]


_CHUNK: Mapping[str, Any] = {
    "id": "chatcmpl-benchmark",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "scripted",
}


def _end(finish: str, tokens: int) -> bytes:
    usage = {"prompt_tokens": 11, "completion_tokens": tokens, "total_tokens": 11 + tokens}
    return _event({}, finish) + _frame({**_CHUNK, "choices": [], "usage": usage}) + _chunked(b"data: [DONE]\n\n") + _END


def _call_deltas(description: Description, call_id: str) -> list[dict[str, Any]]:
    written, size = description["arguments"], description["size"]
    begin = {"id": call_id, "type": "function", "function": {"name": description["name"], "arguments": ""}}
    pieces = [written[start : start + size] for start in range(0, len(written), size)]
    return [
        {"tool_calls": [{"index": 0, **begin}]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces),
    ]


def _event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    return _frame({**_CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _frame(payload: Mapping[str, Any]) -> bytes:
    return _chunked(b"data: %b\n\n" % json.dumps(payload).encode())


def _chunked(data: bytes) -> bytes:
    """Each event is an HTTP chunk of its own, as services send them."""
    return b"%x\r\n%b\r\n" % (len(data), data)


_BEGIN = Write(_HEAD + _event({"role": "assistant", "content": ""}))
