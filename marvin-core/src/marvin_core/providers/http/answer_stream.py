"""The common part of the readers of streamed answers: from bytes to events, and from pieces to deltas."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ...api.errors import ProviderError, StreamBroken, Unreachable
from ...api.messages import StopReason, Usage
from ...api.providers import Delta, Endpoint, Stop, TextDelta, ThinkingDelta, UsageDelta
from .call_fragments import CallAssembler, PartialCall
from .sse import EventTooLong, SSEParser

if TYPE_CHECKING:

    class Splitter(Protocol):
        """Splits a byte stream into the data of its events."""

        def feed(self, data: bytes) -> list[bytes]:
            """Process received bytes; returns the data of each event that they complete."""
            ...

        def finish(self) -> list[bytes]:
            """The data of the rest at the end of the stream."""
            ...


Kind: TypeAlias = Literal["text", "thinking"] | PartialCall
_decode = json.JSONDecoder().decode
_BOM = b"\xef\xbb\xbf"


class AnswerStream(ABC):
    """Reads one answer. Call `feed` with the received data, then `finish`.

    All data of the same kind in one read become one delta. `done` is true once the server has said that the answer is
    complete. `failure` is the error that ended it, to be raised after the deltas before it. An answer that exceeds the
    limits of the endpoint fails.
    """

    def __init__(self, endpoint: Endpoint, url: str, taken_ids: Callable[[], Collection[str]] = tuple) -> None:
        self.done = False
        self.failure: ProviderError | None = None
        self._endpoint = endpoint
        self._url = url
        self._limits = endpoint.limits
        self._splitter: Splitter = SSEParser(self._limits.event)
        self._calls = CallAssembler(endpoint.provider, taken_ids)
        self._plain: bytearray | None = None
        self._read = 0
        self._size = 0
        self._begun = False
        self._usage: Usage | None = None
        self._kind: Kind = "text"
        self._parts: list[str] = []
        self._out: list[Delta] = []

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the model has given its reason to stop, so that nothing is lost if the connection breaks now."""

    @abstractmethod
    def _event(self, payload: bytes) -> None:
        """Process the data of one event."""

    @abstractmethod
    def _document(self, document: Any) -> None:
        """Process an answer that is one JSON document instead of a stream."""

    @abstractmethod
    def _stop_reason(self) -> StopReason:
        """Why a complete answer ended."""

    @property
    def progress(self) -> int:
        """The size of the answer so far, without data that only keep the connection alive."""
        return self._size + self._calls.size

    def feed(self, data: bytes) -> list[Delta]:
        """The deltas in received bytes; check `failure` afterwards."""
        self._read += len(data)
        try:
            if not self._begun:
                data = self._begin(data)
            if self._plain is not None:
                self._plain += data
            else:
                for payload in self._splitter.feed(data):
                    self._event(payload)
            self._check_size()
        except EventTooLong:
            self.failure = self._too_large("event", self._limits.event)
        except ProviderError as error:
            self.failure = error
        return self._take()

    def _check_size(self) -> None:
        limits = self._limits
        if self._size > limits.answer:
            raise self._too_large("answer", limits.answer)
        if self._calls.size > limits.arguments:
            raise self._too_large("arguments", limits.arguments)
        if self._plain is not None and len(self._plain) > limits.document:
            raise self._too_large("document", limits.document)
        if self._read > limits.stream:
            raise self._too_large("stream", limits.stream)

    def _weigh(self, size: int) -> None:
        """Count data that are kept but are not text: they use memory as well."""
        self._size += size

    def finish(self) -> list[Delta]:
        """The last deltas, at the end of the response: the last one is `Stop`, otherwise `failure` is set."""
        try:
            if self._plain is not None:
                self._document(self._parsed(bytes(self._plain)))
            else:
                self._leftover()
            self._flush(last=True)
            self._check_size()
            if not self.is_complete:
                self.failure = self._broken("broke off before the answer was complete")
        except ProviderError as error:
            self.failure = error
        except (AttributeError, TypeError, KeyError, IndexError):
            self.failure = self._broken("sent an answer of an unknown shape", bytes(self._plain or b""))
        self._out.extend(piece for call in self._calls.all if (piece := call.piece(last=True)))
        return self._take() if self.failure else [*self._take(), Stop(reason=self._stop_reason())]

    def _begin(self, data: bytes) -> bytes:
        """Check the first byte: some servers answer 200 with a web page, or with one JSON document."""
        start = data.removeprefix(_BOM).lstrip()
        if start:
            self._begun = True
            if start.startswith(b"<"):
                raise self._web_page("the base URL: it usually ends in /v1", start)
            if start.startswith((b"{", b"[")):
                self._plain = bytearray()
        return data

    def _leftover(self) -> None:
        for payload in self._splitter.finish():
            try:
                self._event(payload)
            except StreamBroken:
                return  # cut off inside its last event

    def _parsed(self, payload: bytes) -> Any:
        most = self._limits.values
        if len(payload) > most and payload.count(b"{") + payload.count(b"[") > most:
            raise self._too_large("values", most)
        try:
            # "replace": a server that splits a character between two events loses only that character.
            return _decode(payload.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise self._broken("sent something that is not JSON", payload) from None

    def _add(self, kind: Kind, text: str) -> None:
        """Add text to the answer. Raises `TypeError` if the service sent something else."""
        if not isinstance(text, str):
            raise TypeError
        self._switch(kind)
        self._parts.append(text)
        self._size += len(text)

    def _switch(self, kind: Kind) -> None:
        if kind != self._kind:
            self._flush(last=True)
            self._kind = kind

    def _flush(self, *, last: bool = False) -> None:
        """Convert the collected data to a delta. With `last`, nothing can be added any more."""
        kind = self._kind
        if isinstance(kind, PartialCall):
            piece = kind.piece(last=last and bool(kind.name))
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

    def _check_error(self, document: Any) -> None:
        """Raise an error that an answer contains instead of content."""
        from .error_reports import error_in

        error = error_in(document)
        if error is not None:
            from .error_mapping import from_error

            raise from_error(self._endpoint, self._url, error)

    def _web_page(self, check: str, start: bytes) -> Unreachable:
        """The error for a web page: the address belongs to something else, so a retry would not help."""
        from .error_mapping import broken

        told = broken(
            self._endpoint, self._url, f"answered with a web page instead of a model's answer. Check {check}", start
        )
        return Unreachable(str(told), provider=told.provider)

    def _broken(self, what: str, payload: bytes = b"", *, final: bool = False) -> StreamBroken:
        from .error_mapping import broken

        error = broken(self._endpoint, self._url, what, payload)
        error.final = final
        return error

    def _too_large(self, name: str, limit: int) -> StreamBroken:
        from .past_limits import too_large

        return too_large(self._endpoint, self._url, name, limit)


def _mended(text: str, *, last: bool) -> tuple[str, str]:
    """The text with split surrogate pairs joined, and a first half that waits for the next piece.

    Servers that count in UTF-16 may cut between the two halves of a character.
    """
    try:
        text.encode()
        return text, ""
    except UnicodeEncodeError:
        held = text[-1] if "\ud800" <= text[-1] <= "\udbff" and not last else ""
        whole = text[: len(text) - len(held)]
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), held
