"""Finds the lines of a file for the headings of a patch, such as `@@ class A` and `@@ def f`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from .document import Document


class Headings:
    """Finds headings in one document, with a cache."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._named: dict[str, list[int]] = {}

    def lines(self, headings: Sequence[str]) -> list[int]:
        """The lines, from 0 on, of the last heading, each below lines of the headings before it."""
        below: list[int] | None = None
        for heading in headings:
            found = self._lines_named(" ".join(heading.split()))
            if below is None:
                below = found
            else:
                nearest = [bisect_right(found, above) for above in below]
                below = [found[index] for index in dict.fromkeys(nearest) if index < len(found)]
        return below or []

    def _lines_named(self, heading: str) -> list[int]:
        """The lines equal to a heading, else those that begin with it, else those that contain it."""
        if heading not in self._named:
            forms = (f"\n{heading}\n", f"\n{heading}", heading) if heading else ()
            self._named[heading] = next(filter(None, map(self._bare_lines_with, forms)), [])
        return self._named[heading]

    def _bare_lines_with(self, form: str) -> list[int]:
        bare = self._bare_lines
        numbers: list[int] = []
        at = bare.text.find(form)
        while at >= 0:
            numbers.append(bare.line_at(at + form.startswith("\n")) - 2)
            at = bare.text.find(form, at + 1)
        return list(dict.fromkeys(numbers))

    @cached_property
    def _bare_lines(self) -> Document:
        """The lines without indentation, below an empty one, so that a newline is before each."""
        return Document("".join(["\n", *(f"{' '.join(line.split())}\n" for line in self._document.lines)]))
