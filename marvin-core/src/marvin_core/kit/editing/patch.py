"""The common form of all patch formats: hunks, by file."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ...api.errors import ToolError
from ...api.record import Record

PatchKind: TypeAlias = Literal["update", "add", "delete"]


class PatchError(ToolError):
    """A patch cannot be parsed; no file was searched yet."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text} Nothing was changed.")


class Hunk(Record):
    """One change in a file: `old` is replaced by `new`.

    With `by_lines` both are whole lines with their line endings; otherwise any texts.
    """

    old: str
    new: str
    by_lines: bool = False
    every: bool = False
    """Replace every occurrence, not exactly one."""
    times: int = 0
    """The expected number of occurrences; 0 for any number."""
    headings: tuple[str, ...] = ()
    """Lines above the change, from the outermost on, such as `@@ class A` and `@@ def f`."""
    line: int = 0
    """The line number in the patch, from 1 on; 0 if it has none."""
    at_end: bool = False
    """The change is at the end of the file."""
    in_order: bool = False
    """The change comes after the previous one."""
    closes_file: bool = False
    """A file that ends with this change ends in a newline, whether or not it did before."""
    open_end: bool = False
    """The new last line of the file has no newline."""


class FilePatch(Record):
    """The changes of one file.

    `content` is that of a new file; with `is_new` it must not exist yet. `move_to` is the new path of a moved file.
    """

    path: str
    kind: PatchKind = "update"
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    is_new: bool = False
    move_to: str = ""
    notes: tuple[str, ...] = ()
    """The parts of the patch that are not applied, for the result."""
