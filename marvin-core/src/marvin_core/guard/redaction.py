"""Redacts secrets in texts, values and messages, also while they are streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..api.messages import Image, Message
from ..api.record import Record
from ..util.threads import in_thread
from .message_texts import with_texts
from .spellings import PIECE, SHORTEST, SIGNS, Reading, Span, Spellings, merged, readings, unfinished

REDACTED = "[redacted]"
_IMAGE = 200_000
"""The maximum length of base64 text that is searched, in characters. Longer data is an image, and takes too long."""
_LONGEST_SIGN = 32
_MUCH, _PARTS = 64, 8
"""More than 64 held-back characters are searched again only after an eighth of their length has arrived."""
_FEW = 2
"""The maximum length that is held back for overlapping secrets, in lengths of the longest one."""
_LONG = 2_000
"""The minimum length of a large text, in characters. The results for the last large texts are cached."""
_REMEMBERED = 16


def _without(text: str, spans: Sequence[Span]) -> str:
    if not spans:
        return text
    pieces, place = [], 0
    for start, end in spans:
        pieces += [text[place:start], REDACTED]
        place = end
    return "".join([*pieces, text[place:]])


class Redactor:
    """Removes secrets from texts.

    Args:
        known: returns the current secrets. It is called each time, because tools, services and other programs may add
            secrets. An unchanged result costs nothing but a look at the files that may hold some.
        learnt: returns the secrets without that look.
    """

    def __init__(self, known: Callable[[], Sequence[str]], learnt: Callable[[], Sequence[str]] | None = None) -> None:
        self._known = known
        self._learnt = learnt or known
        self._values: Sequence[str] = ()
        self._spellings = Spellings(())
        self._seen: dict[str, str] = {}

    def _current(self, *, look: bool = True) -> Spellings:
        values = self._known() if look else self._learnt()
        if values is not self._values:
            self._spellings, self._values, self._seen = Spellings(values), values, {}
        return self._spellings

    async def prepare(self, *values: Any, look: bool = True) -> Spellings:
        """Search the large texts in these values in a thread, so that the next `text` or `value` is fast.

        Args:
            look: whether files may hold secrets that were not known when these values came.

        Returns:
            the secrets to pass to that call, so that the files with secrets are looked at only once.
        """
        spellings = self._current(look=look)
        if not spellings.texts:
            return spellings
        large = [text for text in _texts_in(values) if len(text) > PIECE and text not in self._seen]
        if not large:
            return spellings
        read = await in_thread(lambda: {text: _without(text, spellings.spans(text)) for text in large})
        now = self._current(look=look)
        if now is spellings:  # else there are more by now
            for text, clean in read.items():
                self._remember(text, clean)
        return now

    def text(self, text: str, looked: Spellings | None = None) -> str:
        """The text without the current secrets, or without those that `prepare` returned."""
        return self._text(text, self._current() if looked is None else looked)

    def _text(self, text: str, spellings: Spellings) -> str:
        if not spellings.texts:
            return text
        if len(text) < _LONG:
            return _without(text, spellings.spans(text))
        is_current = spellings is self._spellings  # what was found is kept for these only
        clean = self._seen.get(text) if is_current else None
        if clean is None:  # an output is searched when its call ends, and again when it is stored
            clean = _without(text, spellings.spans(text))
            if is_current:
                self._remember(text, clean)
        return clean

    def _remember(self, text: str, clean: str) -> None:
        self._seen[text] = clean
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def texts(self, texts: Sequence[str], looked: Spellings | None = None) -> list[str]:
        """Consecutive texts without secrets; a secret that is split over several of them is removed as well.

        `looked` is as for `text`.
        """
        spellings = self._current() if looked is None else looked
        if len(texts) == 1:
            return [self._text(texts[0], spellings)]
        whole = "".join(texts)
        spans = [
            (begin + start, begin + stop)
            for begin, end in self._unread(texts, spellings.margin)
            for start, stop in spellings.spans(whole[begin:end])
        ]
        if not spans:
            return list(texts)
        found, begin = [], 0
        for text in texts:
            end = begin + len(text)
            own = [(max(start, begin) - begin, min(stop, end) - begin) for start, stop in spans if start < end > begin]
            found.append(_without(text, [span for span in own if span[0] < span[1]]))
            begin = end
        return found

    def _unread(self, texts: Sequence[str], margin: int) -> Iterator[Span]:
        """The ranges of consecutive texts that may contain a secret, as positions in the joined text.

        A text without a secret need not be searched again, but a secret may begin or end in it.
        """
        begin = end = 0
        for text in texts:
            if len(text) > max(_LONG, 2 * margin) and self._seen.get(text) == text:
                yield begin, end + margin
                begin = end + len(text) - margin
            end += len(text)
        yield begin, end

    def message(self, message: Message) -> Message:
        """The message without secrets, including secrets that are split over its blocks.

        For the outputs of tools no file is looked at: that was done when each of them came.
        """
        looked = self._current(look=message.role != "tool")
        return with_texts(message, lambda texts: self.texts(texts, looked)) if looked.texts else message

    def messages(self, messages: Sequence[Message]) -> list[Message]:
        """All of these messages without secrets."""
        return [*map(self.message, messages)] if self.knows_any else list(messages)

    def image(self, image: Image) -> Image:
        """The image without secrets: data that is declared as an image may be any text."""
        data = image.data if len(image.data) > _IMAGE else self.text(image.data)
        return image.replace(media_type=self.text(image.media_type), data=data)

    def value(self, value: Any, looked: Spellings | None = None) -> Any:
        """A copy of the value without secrets: a text, or the texts in lists, mappings (keys too) and records."""
        if value is None:
            return None
        spellings = self._current() if looked is None else looked
        if not spellings.texts:
            return _cleaned(value, _same)  # who gets it may change it
        known: dict[str, str] = {}

        def clean(text: str) -> str:
            found = known.get(text)
            if found is None:  # names and short values recur
                found = known[text] = self._text(text, spellings)
            return found

        return _cleaned(value, clean)

    @property
    def has_learnt_any(self) -> bool:
        """Whether any secret is known, without a look at the files that may hold some."""
        return bool(self._current(look=False).texts)

    @property
    def knows_any(self) -> bool:
        """Whether any secret is known."""
        return bool(self._current().texts)

    def stream(self) -> StreamRedactor:
        """A `StreamRedactor` for a text that arrives in pieces."""
        return StreamRedactor(self._current())


def _same(text: str) -> str:
    return text


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)([_cleaned(inner, clean) for inner in value])
    if isinstance(value, Mapping):
        return {_cleaned(name, clean): _cleaned(inner, clean) for name, inner in value.items()}
    if isinstance(value, Record):
        return value.replace(**_cleaned(value.as_dict(), clean))
    return value


class StreamRedactor:
    """Removes secrets from one text that arrives in pieces.

    The possible beginning of a secret is held back until it turns out to be none.
    """

    def __init__(self, spellings: Spellings) -> None:
        self._spellings = spellings
        self._held = ""
        self._unread: list[str] = []
        self._more = 0
        self.changed = False
        """Whether a secret was removed."""

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece."""
        if len(self._held) > _MUCH:  # searching all of it for each word would take longer and longer
            self._unread.append(piece)
            self._more += len(piece)
            if self._more * _PARTS < len(self._held):
                return ""
            piece, self._unread, self._more = "".join(self._unread), [], 0
        text = self._held + piece
        found: list[Span] = []
        if not SIGNS.search(text):
            cut = self._look(text, None, found, len(text))
            if cut == len(text) and not found:
                self._held = ""
                return text
            return self._shown(text, cut, found)
        rest = unfinished().search(text, max(0, len(text) - _LONGEST_SIGN))
        cut = whole = len(text) if rest is None else rest.start()
        for reading in readings(text[:whole]):
            cut = self._look(reading.text, reading, found, cut)
        return self._shown(text, cut, found)

    def _look(self, text: str, reading: Reading | None, found: list[Span], cut: int) -> int:
        """Add the secrets in a text to `found`; returns the start of one that may continue, otherwise the `cut`.

        Args:
            reading: the decoded text, if it differs from the given one.
        """
        length, spellings = len(text), self._spellings
        begins = length
        beginnings = spellings.beginnings
        for place in range(max(0, length - SHORTEST + 1), length):
            if text[place:] in beginnings:
                begins = place
                break
        if length >= SHORTEST:
            for start, spelling in spellings.candidates(text):
                if text.startswith(spelling, start):
                    end = start + len(spelling)
                    found.append((start, end) if reading is None else reading.span(start, end))
                elif length - start < len(spelling) and start < begins and spelling.startswith(text[start:]):
                    begins = start
        if begins == length:
            return cut
        return min(cut, begins if reading is None else reading.place(begins))

    def _shown(self, text: str, cut: int, found: list[Span]) -> str:
        spans = merged(found) if found else []
        longest = self._spellings.longest
        if len(text) - cut > self._spellings.margin:
            cut = len(text)  # no secret has so many line breaks, and each piece would have all of it searched again
        for start, end in spans:
            if start < cut < end:  # its end may be the beginning of another one
                cut = start if len(text) - start <= _FEW * longest else end
        self._held = text[cut:]
        shown = [span for span in spans if span[1] <= cut]
        self.changed = self.changed or bool(shown)
        return _without(text[:cut], shown)

    def end(self) -> str:
        """The text that is still held back, at the end of the stream."""
        text, self._held, self._unread = "".join([self._held, *self._unread]), "", []
        spans = self._spellings.spans(text)
        self.changed = self.changed or bool(spans)
        return _without(text, spans)


def _texts_in(value: Any) -> Iterator[str]:
    """The texts in lists, mappings and records, in any order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, (list, tuple)):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, Record):
            waiting.append(one.as_dict())
