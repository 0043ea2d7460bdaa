"""A program that searches files like ripgrep, for machines without it.

It reads its query as JSON from standard input and writes the same as `rg --null --column --byte-offset` or
`rg --null --count`. The paths are relative to its working directory. It holds a few lines of a file at a time.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

from ...guard.files.no_links import open_without_links
from .encodings import Codec, codec_of
from .expressions import UnsupportedExpressionError, without_ripgrep

if TYPE_CHECKING:
    import regex  # type: ignore[import-untyped]

NO_EXPRESSION = 2
"""The exit code for an invalid regular expression."""
TOO_LONG = 3
"""The exit code for a pattern that takes too long."""
UNSUPPORTED = 4
"""The exit code for a regular expression that ripgrep may know, and this program does not."""

_BINARY_HEAD = 65_536
_LINE_BYTES = 4_000_000
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_CONVERTED = 20_000_000
"""The maximum size in bytes of a file in another encoding than UTF-8; a larger one is shown as Latin-1."""


class _TooLongError(Exception):
    pass


def main(source: BinaryIO, target: BinaryIO) -> int:
    """Search; returns the exit code. Errors of the pattern go to standard error."""
    import regex  # whoever uses ripgrep does not wait for it

    query = json.loads(source.read())
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, query["seconds"])
    try:
        _search(_compiled(query), query, target)
    except _TooLongError:
        return TOO_LONG
    except UnsupportedExpressionError as error:
        sys.stderr.write(str(error))
        return UNSUPPORTED
    except (OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        return NO_EXPRESSION
    except regex.error as error:
        sys.stderr.write(error.msg)
        return NO_EXPRESSION
    return 0


def _compiled(query: dict[str, Any]) -> regex.Pattern[str]:
    """The expression with the sets of ripgrep, or else, as ripgrep tries it, with those of PCRE2."""
    import regex

    case = regex.IGNORECASE if query["ignore_case"] else 0
    if query["literal"]:
        return regex.compile(f"(?-f){regex.escape(query['pattern'])}", case | regex.VERSION1)
    pattern = without_ripgrep(query["pattern"])
    try:
        return regex.compile(f"(?-f){pattern}", case | regex.VERSION1)
    except regex.error:
        return regex.compile(pattern, case | regex.VERSION0)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise _TooLongError


def _search(expression: regex.Pattern[str], query: dict[str, Any], target: BinaryIO) -> None:
    left = query["max_results"] + 1
    for path in query["files"]:
        name = path.encode("utf-8", "surrogateescape")
        if query["count"]:
            if number := sum(1 for line in _lines(path) if expression.search(line)):
                target.write(b"%s\0%d\n" % (name, number))
            continue
        for number, column, line in _found(expression, path, query["context_lines"], min(left, query["of_each"])):
            left -= column >= 0
            text = line.encode("utf-8", "surrogateescape")
            place = b"-0-" if column < 0 else b":%d:0:" % (1 + len(line[:column].encode("utf-8", "surrogateescape")))
            target.write(b"%s\0%d%s%s\n" % (name, number, place, text))
        if left <= 0:
            break


def _found(expression: regex.Pattern[str], path: str, around: int, most: int) -> Iterator[tuple[int, int, str]]:
    """The matching lines and their context: number, column of the match or -1, and text."""
    before: deque[tuple[int, str]] = deque(maxlen=around)
    after = 0
    for number, line in enumerate(_lines(path), 1):
        match = expression.search(line) if most > 0 else None
        if match is not None:
            for earlier, text in before:
                yield earlier, -1, text
            before.clear()
            yield number, match.start(), line
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
    """The lines of a file's content up to a NUL, as a search shows them; none if it is binary."""
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
        yield data.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
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
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
