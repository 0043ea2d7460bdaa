"""Applying patches to files: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ...api.errors import FileChanged
from ...api.tool_context import Paths
from .failures import EditFailed, Problem, failed, whole_problem
from .known import KnownFiles
from .patch import FilePatch
from .planning import EditedFile, Plan

_TRIES = 50
"""How often the changes are located again because another program wrote a file first."""


def edit_files(
    paths: Paths,
    patches: Sequence[FilePatch],
    *,
    known: KnownFiles | None = None,
    keep_earlier: bool = False,
    dry_run: bool = False,
) -> tuple[EditedFile, ...]:
    """Apply patches to files. Blocks.

    All changes are located first; then all files are written, or none. If another program writes one of them meanwhile,
    all changes are located again.

    Args:
        known: the files that the session knows. A file changed since it was read is neither replaced or deleted as a
            whole, nor edited where a text matches only approximately. Written files are noted there; one that was not
            known before is not known afterwards either, unless all of it was replaced.
        dry_run: write nothing; return the planned changes.
        keep_earlier: write one file after the other, and keep those before the first failure, as Codex does.

    Raises:
        EditFailed: a change matches no place or several; the text shows similar lines.
        ToolError: a file cannot be read or written.
    """
    if not keep_earlier:
        return _together(paths, patches, known, dry_run=dry_run)
    done: list[EditedFile] = []
    for patch in patches:
        try:
            done += _together(paths, [patch], known, dry_run=dry_run)
        except EditFailed as error:
            if not done:
                raise
            names = [file.path for file in done]
            raise failed([whole_problem(patch.path, str(error))], 0, names) from error
    return tuple(done)


def _together(
    paths: Paths, patches: Sequence[FilePatch], known: KnownFiles | None, *, dry_run: bool
) -> tuple[EditedFile, ...]:
    for left in reversed(range(_TRIES)):
        with ExitStack() as stack:
            plan = Plan(paths, stack, known)
            problems: list[Problem] = []
            for patch in patches:
                problems += plan.add(patch)
            if problems:
                raise failed(problems, plan.placed)
            writes = plan.writes()
            if not writes:
                raise EditFailed(
                    "Nothing was changed: the files already have the content that the patch would give "
                    "them. Read them to check."
                )
            result = plan.result()
            if dry_run:
                return result
            try:
                paths.write_together(writes)
            except FileChanged:
                if not left:
                    raise
                continue
            plan.note_written()
            return result
    raise AssertionError("the last try returns or raises")
