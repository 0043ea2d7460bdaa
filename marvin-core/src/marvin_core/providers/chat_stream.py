"""Streamed chat completions: from the bytes of an answer to its deltas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any, Literal, TypeAlias

from ..errors import ProviderError, StreamBroken
from ..messages import StopReason, Usage
from .base import Delta, Endpoint, Stop, TextDelta, ThinkingDelta, UsageDelta
from .chat_calls import Call, Calls
from .sse import SSEParser

_Kind: TypeAlias = Literal["text", "thinking"] | Call
_decode = json.JSONDecoder().decode
_BOM = b"\xef\xbb\xbf"
_REASONS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


class ChatStream:
    """Reads one answer. `feed` it what arrives, then call `finish`.

    All that one read brings of the same kind becomes one delta. `done` is true once the server said
    that the answer is complete; `failure` is the error that ended it, to be raised after the deltas
    that came before it.
    """

    def __init__(self, endpoint: Endpoint, url: str, taken_ids: Callable[[], Collection[str]] = tuple) -> None:
        self.done = False
        self.failure: ProviderError | None = None
        self._endpoint = endpoint
        self._url = url
        self._sse = SSEParser()
        self._calls = Calls(endpoint.provider, taken_ids)
        self._plain: list[bytes] | None = None
        self._begun = False
        self._reason = ""
        self._refused = False
        self._usage: Usage | None = None
        self._kind: _Kind = "text"
        self._parts: list[str] = []
        self._out: list[Delta] = []

    def feed(self, data: bytes) -> list[Delta]:
        """The deltas in what was read; look at `failure` afterwards."""
        try:
            if not self._begun:
                data = self._begin(data)
            if self._plain is not None:
                self._plain.append(data)
            else:
                for payload in self._sse.feed(data):
                    self._event(payload)
        except ProviderError as error:
            self.failure = error
        return self._take()

    def finish(self) -> list[Delta]:
        """The last deltas, at the end of the response: the very last is `Stop`, or else `failure` is set."""
        try:
            if self._plain is not None:
                self._document(self._parsed(b"".join(self._plain)))
            else:
                self._leftover()
            self._flush(last=True)
            if not self.is_complete:
                self.failure = self._broken("broke off before the answer was complete")
        except ProviderError as error:
            self.failure = error
        self._out.extend(piece for call in self._calls.all if (piece := call.piece(last=True)))
        return self._take() if self.failure else [*self._take(), Stop(reason=self._stop_reason())]

    @property
    def is_complete(self) -> bool:
        """Whether the model gave its reason to stop, so that a connection lost now loses nothing."""
        return self.done or bool(self._reason)

    def _begin(self, data: bytes) -> bytes:
        """Look at the first byte: some servers answer 200 with a web page, or with one JSON document."""
        start = data.removeprefix(_BOM).lstrip()
        if start:
            self._begun = True
            if start.startswith(b"<"):
                raise self._broken(
                    "answered with a web page instead of a model's answer. Check the base URL: it usually ends in /v1",
                    start,
                )
            if start.startswith((b"{", b"[")):
                self._plain = []
        return data

    def _document(self, document: Any) -> None:
        """An answer that is one JSON document and no stream."""
        self._chunk(document)
        if not isinstance(document, dict) or not document.get("choices"):
            raise self._broken("answered with JSON that is no chat completion", b"".join(self._plain or ()))
        self._reason = self._reason or "stop"

    def _leftover(self) -> None:
        for payload in self._sse.finish():
            try:
                self._event(payload)
            except StreamBroken:
                return  # cut off inside its last event

    def _event(self, payload: bytes) -> None:
        if payload.startswith(b"[DONE]"):
            self.done = True
        elif not self.done and payload.strip():
            self._chunk(self._parsed(payload))

    def _parsed(self, payload: bytes) -> Any:
        try:
            # "replace": a server that splits a character between two events costs that character only.
            return _decode(payload.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise self._broken("sent something that is not JSON", payload) from None

    def _chunk(self, chunk: Any) -> None:
        if isinstance(chunk, list) and chunk:
            chunk = chunk[0]  # Gemini wraps its errors in a list
        try:
            error = chunk if chunk.get("object") == "error" else chunk.get("error")
            if usage := chunk.get("usage"):
                self._usage = _usage(usage)
            if error:
                from .failures import from_error

                raise from_error(self._endpoint, self._url, error)
            if choices := chunk.get("choices"):
                self._choice(choices[0])
        except (AttributeError, TypeError, KeyError, IndexError):
            raise self._broken("sent an answer of an unknown shape", json.dumps(chunk).encode()) from None

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or choice.get("message") or {}
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if thinking:
            self._add("thinking", _text(thinking))
        content = delta.get("content")
        if content:
            self._add("text", _text(content))
        if delta.get("refusal"):
            self._refused = True
            self._add("text", _text(delta["refusal"]))
        for item in delta.get("tool_calls") or ():
            self._switch(self._calls.take(item))
        if delta.get("function_call"):
            self._switch(self._calls.take({"function": delta["function_call"], "index": 0}))
        self._reason = choice.get("finish_reason") or self._reason
        if self._reason == "error":
            raise self._broken("reported an error inside the answer", json.dumps(choice).encode())

    def _add(self, kind: _Kind, text: str) -> None:
        self._switch(kind)
        self._parts.append(text)

    def _switch(self, kind: _Kind) -> None:
        if kind != self._kind:
            self._flush(last=True)
            self._kind = kind

    def _flush(self, *, last: bool = False) -> None:
        """Turn what was gathered into a delta. `last` when nothing can be added to it any more."""
        kind = self._kind
        if isinstance(kind, Call):
            piece = kind.piece()
            if piece is not None:
                self._out.append(piece)
        elif self._parts:
            text, held = _mended("".join(self._parts), last=last)
            self._parts = [held] if held else []
            if text:
                self._out.append(TextDelta(text=text) if kind == "text" else ThinkingDelta(text=text))

    def _take(self) -> list[Delta]:
        self._flush()
        out, self._out = self._out, []
        if self._usage is not None:
            out.append(UsageDelta(usage=self._usage))
            self._usage = None
        return out

    def _stop_reason(self) -> StopReason:
        if self._refused:
            return "refused"
        # Many servers say "stop" after calls as well.
        return _REASONS.get(self._reason) or ("tool_calls" if self._calls.all else "stop")

    def _broken(self, what: str, payload: bytes = b"") -> StreamBroken:
        from .failures import broken

        return broken(self._endpoint, self._url, what, payload)


def _text(content: Any) -> str:
    """Text that is sent as a string, or as a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content)


def _mended(text: str, *, last: bool) -> tuple[str, str]:
    """The text with split surrogate pairs joined, and a first half that must wait for the next piece.

    Servers that count in UTF-16 may cut between the two halves of a character.
    """
    try:
        text.encode()
        return text, ""
    except UnicodeEncodeError:
        held = text[-1] if "\ud800" <= text[-1] <= "\udbff" and not last else ""
        whole = text[: len(text) - len(held)]
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), held


def _usage(counts: dict[str, Any]) -> Usage:
    read = counts.get("prompt_tokens_details") or {}
    written = counts.get("completion_tokens_details") or {}
    prompt = counts.get("prompt_tokens") or 0
    completion = counts.get("completion_tokens") or 0
    return Usage(
        input_tokens=prompt,
        # Some services count reasoning in the total only.
        output_tokens=max(completion, (counts.get("total_tokens") or 0) - prompt),
        cache_read_tokens=read.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or 0,
        cache_write_tokens=read.get("cache_write_tokens") or 0,
        reasoning_tokens=written.get("reasoning_tokens") or 0,
        cost=counts.get("cost"),
    )
