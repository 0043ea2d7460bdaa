"""A program that searches files like ripgrep, for machines without it.

It reads its query as JSON from standard input and writes the same as `rg --null --column --byte-offset` or
`rg --null --count`. The paths are relative to its working directory. It holds a few lines of a file at a time.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from ...guard.files.no_links import open_without_links
from ..files.encodings import Codec, codec_of
from .expressions import converted
from .sets_of_characters import UnsupportedExpressionError

if TYPE_CHECKING:
    from collections.abc import Callable

NO_EXPRESSION = 2
"""The exit code for an invalid regular expression."""
TOO_LARGE = 3
"""The exit code for a pattern that takes too much memory."""
UNSUPPORTED = 4
"""The exit code for a regular expression that ripgrep may know, and this program does not."""

_BINARY_HEAD = 65_536
_LINE_BYTES = 4_000_000
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_CONVERTED = 20_000_000
"""The maximum size in bytes of a file in another encoding than UTF-8; a larger one is shown as Latin-1."""


_MEMORY = 2_000_000_000
"""The maximum memory of this program in bytes; some counts in counts would take all there is."""
_DOTS = str.maketrans("\u0130\u0131", "\u0197\u019a")
"""The Turkish letters that the library takes for an i in any case; ripgrep does not."""
_Find: TypeAlias = "Callable[[str], int | None]"


def main(source: BinaryIO, target: BinaryIO) -> int:
    """Search; returns the exit code. Errors of the pattern go to standard error."""
    import regex  # type: ignore[import-untyped]  # whoever uses ripgrep does not wait for it

    query = json.loads(source.read())
    try:
        _search(_finder(query), query, target)
    except MemoryError:
        return TOO_LARGE
    except UnsupportedExpressionError as error:
        sys.stderr.write(str(error))
        return UNSUPPORTED
    except (ValueError, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        return NO_EXPRESSION
    except regex.error as error:
        sys.stderr.write(error.msg)
        return NO_EXPRESSION
    return 0


def _finder(query: dict[str, Any]) -> _Find:
    """A function that says where in a line, with its end, the first match begins; None without a match."""
    import regex

    pattern, any_case = query["pattern"], query["ignore_case"]
    text, by_pcre = (regex.escape(pattern), False) if query["literal"] else converted(pattern, ignore_case=any_case)
    case = regex.IGNORECASE if any_case else 0
    find = regex.compile(f"(?-f){text}", case | regex.VERSION1).search
    any_case = any_case or "(?i" in text
    if any_case and not text.isascii() and text != text.translate(_DOTS):
        raise UnsupportedExpressionError("The letters \u0130 and \u0131 are not supported where case is ignored.")

    def in_part(line: str) -> int | None:
        match = find(line if not any_case or line.isascii() else line.translate(_DOTS))
        return None if match is None else match.start()

    def in_line(line: str) -> int | None:
        return in_part(line.removesuffix("\n")) if "\r" not in line else in_parts(line.removesuffix("\n"))

    def in_parts(line: str) -> int | None:
        """Its own engine matches nothing beyond a carriage return."""
        begin = 0
        for part in line.split("\r"):
            if (found := in_part(part)) is not None:
                return begin + found
            begin += len(part) + 1
        return None

    return in_part if by_pcre else in_line


def _search(find: _Find, query: dict[str, Any], target: BinaryIO) -> None:
    left = query["max_results"] + 1
    for path in query["files"]:
        name = path.encode("utf-8", "surrogateescape")
        if query["count"]:
            if number := sum(1 for line in _lines(path) if find(line) is not None):
                target.write(b"%s\0%d\n" % (name, number))
            continue
        for number, column, line in _found(find, path, query["context_lines"], min(left, query["of_each"])):
            left -= column >= 0
            text = line.encode("utf-8", "surrogateescape")
            place = b"-0-" if column < 0 else b":%d:0:" % (1 + len(line[:column].encode("utf-8", "surrogateescape")))
            target.write(b"%s\0%d%s%s\n" % (name, number, place, text))
        if left <= 0:
            break


def _found(find: _Find, path: str, around: int, most: int) -> Iterator[tuple[int, int, str]]:
    """The matching lines and their context: number, column of the match or -1, and text."""
    before: deque[tuple[int, str]] = deque(maxlen=around)
    after = 0
    for number, line in enumerate(_lines(path), 1):
        column = find(line) if most > 0 else None
        line = line.removesuffix("\n")
        if column is not None:
            for earlier, text in before:
                yield earlier, -1, text
            before.clear()
            yield number, min(column, len(line)), line
            after, most = around, most - 1
        elif after:
            yield number, -1, line
            after -= 1
        elif most <= 0:
            return
        else:
            before.append((number, line))


def _lines(path: str) -> Iterator[str]:
    """The lines of a text file; none if it is binary or unreadable."""
    try:
        with open_without_links(".", path) as file:
            yield from lines_of(file)
    except OSError:
        return


def lines_of(file: BinaryIO) -> Iterator[str]:
    """The lines of a file's content up to a NUL; none if it is binary.

    An end of `\\n` is kept and one of `\\r\\n` is not, as ripgrep hands them to PCRE2.
    """
    head = file.read(_BINARY_HEAD)
    file.seek(0)
    if head[:2] in _MARKS:
        yield from _split(file.read(_CONVERTED)[2:].decode(_MARKS[head[:2]], "replace"))
        return
    if b"\0" in head:
        return
    old = old_text(file)
    if old is not None:
        yield from _split(old)
        return
    file.seek(3 if head.startswith(b"\xef\xbb\xbf") else 0)
    while line := file.readline(_LINE_BYTES):
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(_LINE_BYTES)):
            pass  # the rest of a line that is too long
        data, is_end, _ = line.partition(b"\0")
        yield data.removesuffix(b"\r\n").decode("utf-8", "surrogateescape")
        if is_end:
            return


def old_text(file: BinaryIO) -> str | None:
    """The content of a file in a legacy encoding up to a NUL; None for UTF-8, UTF-16 with a byte order mark, and very
    large files. If the encoding is uncertain, each byte is a character of Latin-1.
    """
    file.seek(0)
    data = file.read(_CONVERTED + 1)
    if len(data) > _CONVERTED or data[:2] in _MARKS:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.partition(b"\0")[0]
        codec = codec_of(data) or Codec(name="latin-1")
        return codec.decode(data)
    return None


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*(line[:-1] if line.endswith("\r") else f"{line}\n" for line in lines), *([last] if last else [])]


if __name__ == "__main__":
    with suppress(ValueError, OSError):  # some systems have no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
