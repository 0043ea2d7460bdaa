"""What every format of an edit is read into: hunks, by file."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ...api.errors import ToolError
from ...api.record import Record

PatchKind: TypeAlias = Literal["update", "add", "delete"]


class PatchError(ToolError):
    """A patch that cannot be read; nothing of it was looked for in files."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text} Nothing was changed.")


class Hunk(Record):
    """One change in a file: the text `old` becomes `new`.

    With `by_lines` both are whole lines, each with its line end, and else any texts.
    """

    old: str
    new: str
    by_lines: bool = False
    every: bool = False
    """Replace every occurrence, and not the one that there has to be."""
    times: int = 0
    """How many occurrences there have to be then; 0 for any number."""
    headings: tuple[str, ...] = ()
    """Lines above the change, each below the one before it, as `@@ class A` and `@@ def f` name them."""
    line: int = 0
    """The line, from 1 on, that the patch says the change begins at; 0 where it says nothing."""
    at_end: bool = False
    """The change is meant at the end of the file."""
    in_order: bool = False
    """The change comes behind the one before it."""
    closes_file: bool = False
    """A file that ends with this change ends in a newline, whether or not it did before."""
    open_end: bool = False
    """The new last line of the file has no newline."""


class FilePatch(Record):
    """The changes of one file.

    `content` is that of a new one, which `is_new` says must not be there yet. `move_to` is its new path, where it gets
    one.
    """

    path: str
    kind: PatchKind = "update"
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    is_new: bool = False
    move_to: str = ""
    notes: tuple[str, ...] = ()
    """What of the patch is not done, for the result."""
