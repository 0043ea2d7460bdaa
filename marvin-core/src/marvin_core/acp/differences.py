"""Diffs in the form of the protocol: a path, the text before and the text after."""

from __future__ import annotations

from pathlib import Path

from ..api.record import Record
from ..kit.editing.patch import FilePatch, PatchError
from ..kit.editing.unified_format import read_unified

_MOST = 100
"""The maximum number of changes; use `git diff` for more."""


class Difference(Record):
    """One change of a file. `line` is its first line, counted from 1; `old` is None for a new file."""

    path: str
    old: str | None
    new: str
    line: int = 1


def differences(diff: str, root: Path) -> list[Difference]:
    """The changes of unified diffs, with absolute paths; empty if the text is not a diff."""
    if not diff.strip():
        return []
    try:
        patches = read_unified(diff)
    except PatchError:
        return []
    return [change for patch in patches for change in _changes(patch, str(root / (patch.move_to or patch.path)))][
        :_MOST
    ]


def _changes(patch: FilePatch, path: str) -> list[Difference]:
    if patch.kind == "add":
        return [Difference(path=path, old=None, new=patch.content)]
    if len(patch.hunks) == 1 and not patch.hunks[0].old:
        return [Difference(path=path, old=None, new=patch.hunks[0].new)]
    return [Difference(path=path, old=hunk.old, new=hunk.new, line=max(1, hunk.line or 1)) for hunk in patch.hunks]
