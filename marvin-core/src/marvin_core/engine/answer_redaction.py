"""Redacts secrets in an answer while it streams, before any part of it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..api.providers import CallDelta, Delta, Retrying, Stop, Switched, TextDelta, ThinkingDelta
from ..guard.redaction import Redactor, StreamRedactor

_TEXT, _THINKING = "text", "thinking"


class AnswerRedactor:
    """Passes the parts of one answer on without secrets; a part that may begin a secret is held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._streams: dict[str | int, StreamRedactor] = {}

    def feed(self, delta: Delta) -> Sequence[Delta]:
        """The parts to pass on with this one."""
        if isinstance(delta, TextDelta):
            before = self._leave(_TEXT)
            text = self._clean(_TEXT, delta.text)
            return (*before, *((delta if text is delta.text else TextDelta(text=text),) if text else ()))
        if isinstance(delta, CallDelta):
            before = self._leave(delta.key)
            text = self._clean(delta.key, delta.arguments)
            return (*before, delta if text is delta.arguments else delta.replace(arguments=text))
        if isinstance(delta, ThinkingDelta):
            return (*self._leave(_THINKING), self._thought(delta))
        if isinstance(delta, (Retrying, Switched)):
            self._streams.clear()  # nothing that was held back applies any more
        elif isinstance(delta, Stop):
            return (*self.end(), delta)
        return (delta,)

    def end(self) -> list[Delta]:
        """The text held back, once the answer has ended."""
        return [*self._held([*self._streams])]

    def _thought(self, delta: ThinkingDelta) -> ThinkingDelta:
        text = self._clean(_THINKING, delta.text)
        stream = self._streams[_THINKING]
        if text is delta.text and not stream.changed:
            return delta
        # A service that signed its reasoning rejects it after any change.
        return ThinkingDelta(text=text, provider_data=None if stream.changed else delta.provider_data)

    def _clean(self, kind: str | int, piece: str) -> str:
        stream = self._streams.get(kind)
        if stream is None:
            stream = self._streams[kind] = self._redactor.stream()
        return stream.feed(piece)

    def _leave(self, kind: str | int) -> Sequence[Delta]:
        """The text held back from other blocks; the parts of calls may arrive interleaved."""
        if kind in self._streams and len(self._streams) == 1:
            return ()
        others = [other for other in self._streams if other != kind and not (type(other) is type(kind) is int)]
        return [*self._held(others)] if others else ()

    def _held(self, kinds: Sequence[str | int]) -> Iterator[Delta]:
        for kind in kinds:
            text = self._streams.pop(kind).end()
            if not text:
                continue
            if isinstance(kind, int):
                yield CallDelta(key=kind, arguments=text)
            else:
                yield TextDelta(text=text) if kind == _TEXT else ThinkingDelta(text=text)
