"""Scripted answers of the model server, with the exact bytes of a chat completions service."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..api.record import Record

Step: TypeAlias = bytes | float | threading.Event
"""Bytes that are sent in one write as one HTTP chunk; or a pause, in seconds or until an event is set."""

USAGE: Mapping[str, int] = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
_STREAM = (("content-type", "text/event-stream"),)
_JSON = (("content-type", "application/json"),)
_numbers = itertools.count(1)


class Answer(Record):
    """One answer.

    `framing` defines how the client detects the end: by HTTP chunks, by a content-length, or by the end of the
    connection. `ending` defines what happens after the last step: the answer is completed; the connection is cut, or
    stays open without data; or the answer is completed and the connection is closed without notice, as servers
    close idle ones. A `silent` answer does not even have a status line.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = _STREAM
    steps: tuple[Step, ...] = ()
    framing: Literal["chunked", "length", "close"] = "chunked"
    ending: Literal["complete", "cut", "hang", "close"] = "complete"
    silent: bool = False

    @property
    def body(self) -> bytes:
        """The complete body."""
        return b"".join(step for step in self.steps if isinstance(step, bytes))


def text(
    text: str,
    *,
    chunks: int | Sequence[str] = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "stop",
) -> Answer:
    """A text answer, in `chunks` pieces of about the same size, or in the given pieces."""
    pieces = [{"content": piece} for piece in _pieces(text, chunks)]
    before = [{"reasoning_content": thinking}] if thinking else []
    return _answer([*before, *pieces], finish, usage)


def calls(
    *calls: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    chunks: int = 1,
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "tool_calls",
) -> Answer:
    """An answer with tool calls, each a name and its arguments (an object, or text that is sent unchanged).

    The arguments of each call are sent in `chunks` pieces, after `text`.
    """
    deltas: list[dict[str, Any]] = [{"content": text}] if text else []
    for index, (name, arguments) in enumerate(calls):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        begin = {"id": f"call_{next(_numbers)}", "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **begin}]})
        pieces = [{"index": index, "function": {"arguments": piece}} for piece in _pieces(written, chunks)]
        deltas += [{"tool_calls": [piece]} for piece in pieces]
    return _answer(deltas, finish, usage)


def events(*payloads: Mapping[str, Any] | str, done: bool = True) -> Answer:
    """A stream of these chunks: objects are sent as JSON, text unchanged."""
    written = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    steps = [f"data: {payload}\n\n".encode() for payload in written]
    return Answer(steps=(*steps, b"data: [DONE]\n\n") if done else tuple(steps))


def raw(body: bytes, headers: Mapping[str, str] | None = None, *, status: int = 200) -> Answer:
    """An answer with exactly this body; the headers default to those of an event stream."""
    return Answer(status=status, headers=tuple((headers or dict(_STREAM)).items()), steps=(body,))


def document(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer that is a single JSON document, not a stream."""
    body = json.dumps(content).encode()
    fields = (*_JSON, *(headers or {}).items())
    return Answer(status=status, headers=fields, steps=(body,), framing="length")


def error(status: int, body: object = "scripted error", headers: Mapping[str, str] | None = None) -> Answer:
    """An error; a string becomes the message of the usual error object, anything else is sent as JSON."""
    content = {"error": {"message": body, "type": "", "code": None}} if isinstance(body, str) else body
    return document(content, status=status, headers=headers)


def html(status: int = 200) -> Answer:
    """A web page instead of an answer."""
    page = b"<!DOCTYPE html><html><head><title>Home</title></head><body><h1>Welcome</h1></body></html>"
    return Answer(status=status, headers=(("content-type", "text/html"),), steps=(page,), framing="length")


def hang() -> Answer:
    """No answer; the connection stays open."""
    return Answer(silent=True, ending="hang")


def drop() -> Answer:
    """No answer; the connection is closed."""
    return Answer(silent=True, ending="cut")


def cut_after(size: int, answer: Answer) -> Answer:
    """The first `size` bytes of the answer's body, then the connection is cut."""
    return answer.replace(steps=_first(size, answer.steps), ending="cut")


def hang_after(size: int, answer: Answer) -> Answer:
    """The first `size` bytes of the answer's body, then no more data on an open connection."""
    return answer.replace(steps=_first(size, answer.steps), ending="hang")


def closing(answer: Answer) -> Answer:
    """The answer, after which the connection is closed without notice."""
    return answer.replace(ending="close")


def burst(answer: Answer) -> Answer:
    """The answer in one write."""
    return answer.replace(steps=(answer.body,))


def split(answer: Answer, *positions: int) -> Answer:
    """The answer's body, split into separate writes at these positions."""
    body, edges = answer.body, (0, *positions, len(answer.body))
    return answer.replace(steps=tuple(body[a:b] for a, b in itertools.pairwise(edges) if a < b))


def paced(seconds: float, answer: Answer) -> Answer:
    """The answer with a pause before each of its writes."""
    return answer.replace(steps=tuple(part for step in answer.steps for part in (seconds, step)))


def pause(until: float | threading.Event, answer: Answer) -> Answer:
    """The answer's status line at once, and its body after `until` seconds or when the event is set."""
    return answer.replace(steps=(until, *answer.steps))


def from_json(item: Mapping[str, Any]) -> Answer:
    """An answer from its form in a script file.

    It has one of `text`, `calls` (a list of `[name, arguments]`, optionally with `text`), `error` (a status, with
    `body` and `headers`), `raw`, `html` and `hang`; `chunks` and `usage` as in the functions here. Then these are
    applied in this order: `burst: true`, `cut_after: BYTES`, `hang_after: BYTES`, `paced: SECONDS`.
    """
    options = {key: item[key] for key in ("chunks", "usage", "finish") if key in item}
    if "calls" in item:
        answer = calls(*((name, given) for name, given in item["calls"]), text=item.get("text", ""), **options)
    elif "text" in item:
        answer = text(item["text"], thinking=item.get("thinking", ""), **options)
    elif "error" in item:
        answer = error(item["error"], item.get("body", "scripted error"), item.get("headers"))
    elif "raw" in item:
        answer = raw(item["raw"].encode(), item.get("headers"))
    elif "html" in item:
        answer = html()
    elif "hang" in item:
        answer = hang()
    else:
        raise ValueError(f"no answer: {dict(item)!r} has none of text, calls, error, raw, html, hang")
    answer = burst(answer) if item.get("burst") else answer
    answer = cut_after(item["cut_after"], answer) if "cut_after" in item else answer
    answer = hang_after(item["hang_after"], answer) if "hang_after" in item else answer
    return paced(item["paced"], answer) if "paced" in item else answer


def _answer(deltas: Sequence[Mapping[str, Any]], finish: str, usage: Mapping[str, Any] | None) -> Answer:
    chunks = [_chunk([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])]
    chunks += [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if usage is not None:
        chunks.append({**_chunk([]), "usage": dict(usage)})
    return events(*chunks)


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return {**head, "choices": choices}


def _pieces(text: str, chunks: int | Sequence[str]) -> Sequence[str]:
    if not isinstance(chunks, int):
        return chunks
    size = max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _first(size: int, steps: Sequence[Step]) -> tuple[Step, ...]:
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, bytes):
            step, size = step[:size], size - len(step[:size])
        if step:
            kept.append(step)
        if not size:
            break
    return tuple(kept)
