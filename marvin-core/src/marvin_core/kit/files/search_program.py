"""A program that searches files as ripgrep does, for machines without it.

It reads its query as JSON from standard input and writes the lines that `rg --null` would: path, NUL,
number, `:` or `-` for a line beside a match, text. Run in the folder that the paths are relative to.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import BinaryIO

NO_EXPRESSION = 2
"""The exit code for a pattern that is no regular expression."""

_BINARY_HEAD = 65_536
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def main(source: BinaryIO, target: BinaryIO) -> int:
    """Search; returns the exit code. What is wrong with the pattern goes to standard error."""
    query = json.loads(source.read())
    try:
        expression = re.compile(query["pattern"], re.IGNORECASE if query["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        return NO_EXPRESSION
    left = query["max_results"] + 1
    for path in query["files"]:
        lines = _lines(path)
        matching = [number for number, line in enumerate(lines) if expression.search(line)][:left]
        left -= len(matching)
        for number, is_match in _with_context(matching, query["context_lines"], len(lines)):
            mark = ":" if is_match else "-"
            written = f"{path}\0{number + 1}{mark}{lines[number]}\n"
            target.write(written.encode("utf-8", "surrogateescape"))
        if left <= 0:
            break
    return 0


def _lines(path: str) -> list[str]:
    """The lines of a text file; none of one that is binary or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read()
    except OSError:
        return []
    text = _decode(data)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _decode(data: bytes) -> str:
    if data[:2] in _MARKS:
        return data[2:].decode(_MARKS[data[:2]], "replace")
    if b"\0" in data[:_BINARY_HEAD]:
        return ""
    return data.removeprefix(b"\xef\xbb\xbf").partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _with_context(matching: list[int], around: int, total: int) -> Iterator[tuple[int, bool]]:
    wanted: set[int] = set()
    for number in matching:
        wanted.update(range(max(0, number - around), min(total, number + around + 1)))
    chosen = set(matching)
    for number in sorted(wanted):
        yield number, number in chosen


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
