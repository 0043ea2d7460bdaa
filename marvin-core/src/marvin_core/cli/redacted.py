"""Removes known secrets from the output of a pack's sub-command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


class RedactedText:
    """A text stream that removes secrets from each written text, and otherwise behaves as the stream it wraps."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self._stream = stream
        self._clean = clean

    def write(self, text: str) -> int:
        """Write a text. A secret that is split over several writes is not removed."""
        self._stream.write(self._clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def redacted_output(clean: Callable[[str], str]) -> Iterator[None]:
    """Remove secrets from texts that `print` and others write to standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", RedactedText(stream, clean)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
