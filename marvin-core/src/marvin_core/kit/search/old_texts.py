"""Joins files in legacy encodings into one UTF-8 text, so that one program run searches many of them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...guard.files.no_links import open_without_links
from .lines import RawLine
from .program import old_text

_FILES = 50
_BYTES = 2_000_000


class OldTexts:
    """The joined texts. `data` is the input of the search program; `others` are files that are not in a legacy
    encoding.
    """

    def __init__(self) -> None:
        self.data = b""
        self.others: list[str] = []
        self._paths: list[bytes] = []
        self._starts: list[int] = []

    @classmethod
    def read(cls, root: Path, paths: Sequence[bytes]) -> tuple[OldTexts, int]:
        """Read the first of some files; returns the texts and the number of files read. Blocks."""
        made, texts, line = cls(), list[bytes](), 1
        done = size = 0
        for path in paths[:_FILES]:
            text = _text(root, path)
            if text is None:
                made.others.append(os.fsdecode(path))
            elif text:
                made._paths.append(path)
                made._starts.append(line)
                texts.append(text)
                line += text.count(b"\n")
                size += len(text)
            done += 1
            if size > _BYTES:
                break
        made.data = b"".join(texts)
        return made, done

    def apart(self, lines: Iterable[RawLine], around: int) -> Iterator[RawLine]:
        """Matching lines and their context, each assigned to its own file."""
        owned = [self._owned(line) for line in lines]
        matches = {(line.path, line.number) for line in owned if line.is_match}
        for line in owned:  # beside a match at the edge of a file stand lines of the next one
            if any((line.path, line.number + step) in matches for step in range(-around, around + 1)):
                yield line

    def _owned(self, line: RawLine) -> RawLine:
        place = bisect_right(self._starts, line.number) - 1
        return line.replace(path=self._paths[place], number=line.number - self._starts[place] + 1)


def _text(root: Path, path: bytes) -> bytes | None:
    """The content of a file in a legacy encoding as UTF-8, with a final line end; None for any other file."""
    try:
        with open_without_links(root, os.fsdecode(path)) as file:
            text = old_text(file)
    except OSError:
        return None
    return text if text is None else (text if text.endswith("\n") or not text else f"{text}\n").encode()
