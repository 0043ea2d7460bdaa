"""Reads ranges of lines, and parts of long lines, from files of any size, in pieces. Everything blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, ClassVar, NamedTuple

from ...api.record import Record

LINE_LIMIT = 2_000
"""The maximum length of a shown line, in characters."""

CHUNK = 262_144
"""The number of bytes of one read."""

_LINE_BYTES = 4 * LINE_LIMIT + 4  # that many characters, whatever their width in UTF-8

Stopped = Callable[[], bool]


class Wanted(NamedTuple):
    """The requested lines from `first` to `last` (None: the end), at most `most`, as many as fit into `limit` bytes of
    UTF-8.
    """

    first: int
    last: int | None
    limit: int
    most: int


class RawLine:
    """The kept part of a line. `size` is the number of bytes read so far, or of all bytes if `is_whole`."""

    __slots__ = ("is_whole", "kept", "size")

    def __init__(self) -> None:
        self.kept = bytearray()
        self.size = 0
        self.is_whole = False

    def extend(self, piece: bytes) -> None:
        """Append bytes to the line."""
        self.size += len(piece)
        self.kept += piece[: max(0, _LINE_BYTES - len(self.kept))]


class RawSection(Record):
    """Lines as bytes. `is_cut` says that not all of them fit, `at_end` that they end the file."""

    lines: tuple[RawLine, ...]
    is_cut: bool = False
    at_end: bool = False
    ends_open: bool = False
    """The last line of the file is among them and has no line end."""


class LinePart(Record):
    """A part of a long line. `first` and `last` count its characters from 1; `is_cut` says that the line continues."""

    text: str
    first: int
    last: int
    is_cut: bool


def seek_line(file: BinaryIO, number: int, stopped: Stopped) -> int | None:
    """Move to the beginning of a line; returns None. If the file has fewer lines, returns their number."""
    before = position = 0
    open_line = False
    file.seek(0)
    while number > 1:
        chunk = file.read(CHUNK)
        if not chunk or stopped():
            return before + open_line
        breaks = chunk.count(b"\n")
        if before + breaks >= number - 1:
            at = -1
            for _ in range(number - 1 - before):
                at = chunk.index(b"\n", at + 1)
            file.seek(position + at + 1)
            break
        before += breaks
        position += len(chunk)
        open_line = not chunk.endswith(b"\n")
    here = file.tell()
    if not file.read(1):
        return number - 1
    file.seek(here)
    return None


def collect(file: BinaryIO, wanted: Wanted, stopped: Stopped) -> RawSection:
    """The requested lines. The file has to be at the beginning of the first one."""
    lines: list[RawLine] = []
    room = wanted.limit
    most = wanted.most if wanted.last is None else min(wanted.most, wanted.last - wanted.first + 1)
    for piece, is_new, ends in _pieces(file, stopped):
        if is_new:
            if len(lines) == most:
                is_cut = wanted.last is None or wanted.first + most - 1 < wanted.last
                return RawSection(lines=tuple(lines), is_cut=is_cut)
            lines.append(RawLine())
            room -= len(str(wanted.first + len(lines) - 1)) + 2
        line = lines[-1]
        room -= min(line.size + len(piece), LINE_LIMIT) - min(line.size, LINE_LIMIT)
        line.extend(piece)
        line.is_whole = ends
        if room < 0:
            return RawSection(lines=tuple(lines[:-1]), is_cut=True)
        if len(lines) == most and line.size > _LINE_BYTES:
            return RawSection(lines=tuple(lines))  # the rest of it is not shown
    ends_open = bool(lines) and not lines[-1].is_whole
    for line in lines[-1:]:
        line.is_whole = True
    return RawSection(lines=tuple(lines), at_end=True, ends_open=ends_open)


def _pieces(file: BinaryIO, stopped: Stopped) -> Iterator[tuple[bytes, bool, bool]]:
    """Parts of lines: the bytes, whether they begin a line, and whether they end it."""
    is_new = True
    while (chunk := file.read(CHUNK)) and not stopped():
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield piece, is_new, True
            is_new = True
        if rest:
            yield rest, is_new, False
            is_new = False


def count_lines_of(file: BinaryIO, most: int, stopped: Stopped) -> tuple[int, int]:
    """The number of lines at the beginning of a file, and the number of bytes read, which is about `most`."""
    file.seek(0)
    lines = size = 0
    tail = b"\n"
    while size < most and (chunk := file.read(CHUNK)) and not stopped():
        lines += chunk.count(b"\n")
        size += len(chunk)
        tail = chunk[-1:]
    return lines + (tail != b"\n"), size


def part_of_line(file: BinaryIO, column: int, limit: int, encoding: tuple[str, str]) -> Iterator[LinePart | None]:
    """A part of the line at whose beginning the file stands, of `limit` bytes of UTF-8.

    It yields None after each piece of the file, so that the caller can stop, and the part at last.

    Args:
        column: its first character, from 1 on.
        encoding: the name of the codec, and what it does with errors.
    """
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder(encoding[0])(encoding[1])
    passed = kept_size = 0
    kept: list[str] = []
    is_over = False
    while not is_over and kept_size <= limit:
        chunk = file.read(CHUNK)
        piece, line_end, _ = chunk.partition(b"\n")
        is_over = not chunk or bool(line_end)
        text = decoder.decode(piece.removesuffix(b"\r") if is_over else piece, final=is_over)
        if passed + len(text) >= column:
            kept.append(text[max(0, column - 1 - passed) :])
            kept_size += len(kept[-1].encode("utf-8", "replace"))
        passed += len(text)
        yield None
    whole = "".join(kept)
    shown = whole.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    is_cut = len(shown) < len(whole)
    last = column - 1 + len(shown) if whole else passed
    yield LinePart(text=shown, first=column, last=last, is_cut=is_cut)


def is_utf8(line: RawLine) -> bool:
    """Whether the kept part of a line is valid UTF-8."""
    try:
        _decoded(line.kept, ("utf-8", "strict"), is_whole=line.size == len(line.kept))
    except UnicodeDecodeError:
        return False
    return True


def _decoded(kept: bytearray, encoding: tuple[str, str], *, is_whole: bool) -> str:
    """The kept part of a line as text. A character that was cut at its end is not an error of the file."""
    if is_whole:
        return kept.decode(*encoding)
    from codecs import getincrementaldecoder

    return getincrementaldecoder(encoding[0])(encoding[1]).decode(bytes(kept))


class TextSection(Record):
    """A range of lines of a file, as text.

    `total` is the number of lines of the file, None if it is too large to count them; `first` and `last` are the
    line numbers of this range. `is_cut` says that not all requested lines fit. `long_lines` are the numbers of lines
    that were cut to `line_limit` characters.
    """

    first: int
    lines: tuple[str, ...]
    total: int | None
    is_cut: bool
    long_lines: tuple[int, ...] = ()
    has_crlf: bool = False
    ends_without_newline: bool = False
    line_limit: ClassVar[int] = LINE_LIMIT

    @property
    def last(self) -> int:
        """The number of the last line in the range; the one before `first` if it is empty."""
        return self.first + len(self.lines) - 1

    def numbered(self) -> str:
        """The lines, each after its number and a tab."""
        return "\n".join([f"{number}\t{line}" for number, line in enumerate(self.lines, self.first)])

    def plain(self) -> str:
        """The lines without numbers."""
        return "".join(f"{line}\n" for line in self.lines)


def as_text(wanted: Wanted, raw: RawSection, total: int | None, encoding: tuple[str, str]) -> TextSection:
    """The lines for display, as many as fit.

    Args:
        encoding: the name of the codec, and its error handler.
    """
    lines: list[str] = []
    long_lines: list[int] = []
    room = wanted.limit
    for number, line in enumerate(raw.lines, wanted.first):
        text, is_long = _text(line, encoding)
        room -= len(str(number)) + 2 + len(text.encode("utf-8", "replace"))
        if room < 0:
            break
        lines.append(text.removeprefix("\ufeff") if number == 1 else text)
        if is_long:
            long_lines.append(number)
    is_short = len(lines) < len(raw.lines)
    ends_open = raw.ends_open and not is_short  # a \r at its end is not one of a line ending
    return TextSection(
        first=wanted.first,
        lines=tuple(lines),
        total=total,
        is_cut=raw.is_cut or is_short,
        long_lines=tuple(long_lines),
        has_crlf=any(line.kept.endswith(b"\r") for line in (raw.lines[:-1] if ends_open else raw.lines[: len(lines)])),
        ends_without_newline=ends_open,
    )


def whole_lines(text: str, wanted: Wanted) -> TextSection | None:
    """The lines of a text in memory, like those of `collect` and `as_text`; None if some have to be cut."""
    lines = text.split("\n")
    ends_open = bool(lines[-1])
    if not ends_open:
        lines.pop()
    total, first = len(lines), wanted.first
    end = total if wanted.last is None else min(wanted.last, total)
    chosen = lines[first - 1 : min(end, first - 1 + wanted.most)]
    numbers = (len(str(first + len(chosen))) + 2) * len(chosen)
    if not chosen or first < 1 or max(map(len, chosen)) > LINE_LIMIT or numbers + _bytes(chosen) > wanted.limit:
        return None
    is_cut = first - 1 + wanted.most < end
    ends_open = ends_open and first - 1 + len(chosen) == total
    with_return = [line.endswith("\r") for line in chosen] if "\r" in text else []
    if any(with_return):
        chosen = [line.removesuffix("\r") for line in chosen]
    if first == 1:
        chosen[0] = chosen[0].removeprefix("\ufeff")
    return TextSection(
        first=first,
        lines=tuple(chosen),
        total=total,
        is_cut=is_cut,
        has_crlf=any(with_return[:-1] if ends_open else with_return),
        ends_without_newline=ends_open,
    )


def _bytes(lines: Sequence[str]) -> int:
    text = "".join(lines)
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _text(line: RawLine, encoding: tuple[str, str]) -> tuple[str, bool]:
    """A line as it is shown, and whether only its beginning is shown."""
    is_kept = line.is_whole and line.size == len(line.kept)
    text = _decoded(line.kept.removesuffix(b"\r") if is_kept else line.kept, encoding, is_whole=is_kept)
    if is_kept and len(text) <= LINE_LIMIT:
        return text, False
    size = f"the line has {line.size:,} bytes" if line.is_whole else "the line is longer"
    return f"{text[:LINE_LIMIT]} [... cut, {size}]", True
