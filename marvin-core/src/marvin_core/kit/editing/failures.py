"""Errors of patches, with what to do so that the next try succeeds."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.errors import ToolError
from ...api.record import Record
from ...util.text import one_line
from .document import Document
from .locating import Ambiguous
from .near import advice
from .patch import FilePatch

SHOWN = 5
"""The maximum number of problems in an error."""
_NAMED = 60


class EditFailed(ToolError):
    """A patch was not applied, or only in part; the text says what is wrong and what was changed.

    `occurs_often` says that the only problem is a text that occurs more than once.
    """

    occurs_often = False


class Problem(Record):
    """A problem of a patch. `alone` is its text as the only problem; `among` is its text among others."""

    path: str
    alone: str
    among: str
    cause: ToolError | None = None


def whole_problem(path: str, text: str, cause: ToolError | None = None) -> Problem:
    """A problem of a whole file."""
    return Problem(path=path, alone=text, among=text, cause=cause)


def problem_of(patch: FilePatch, number: int, error: ToolError, document: Document, *, secret: bool = False) -> Problem:
    """A problem of one change of a file."""
    hunk = patch.hunks[number - 1]
    name = f"Change {number} of {len(patch.hunks)} in {patch.path!r} ({one_line(hunk.old.strip(), _NAMED)!r})"
    if isinstance(error, Ambiguous):
        lines = ", ".join(map(str, error.lines[:20])) + (", ..." if error.count > len(error.lines) else "")
        where = f", at line {lines}" if error.lines else ""
        count = f"occurs {error.count} times" if error.count else str(error)
        if error.wanted:
            count += f" instead of {error.wanted}"
        how = "Add lines before or after it, in the new text too, until it is unique"
        if hunk.in_order:
            how += ", or write the function or class above it after @@"
        return Problem(
            path=patch.path,
            alone=f"The text to be replaced {count} in {patch.path!r}{where}; nothing was changed. {how}.",
            among=f"{name} {count}{where}. {how}.",
            cause=error,
        )
    said = str(error)
    hint = _earlier(patch, number) or advice(document, hunk, secret=secret)
    return Problem(
        path=patch.path,
        alone=f"The text to be replaced {said} in {patch.path!r}; nothing was changed. {hint}",
        among=f"{name} {said}. {hint}",
    )


def _earlier(patch: FilePatch, number: int) -> str:
    """What to do if a change looks for the result of another one."""
    old = patch.hunks[number - 1].old.strip()
    for other, hunk in enumerate(patch.hunks[: number - 1], 1):
        if old and old in hunk.new:
            return (
                f"Change {other} writes it: all changes are searched for in the file as it is now. Combine the "
                "two into one change."
            )
    return ""


def failed(problems: Sequence[Problem], placed: int, applied: Sequence[str] = ()) -> EditFailed:
    """The error for all problems.

    Args:
        placed: the number of changes that were located.
        applied: the files that were changed nevertheless.
    """
    first = problems[0]
    if len(problems) == 1 and not placed and not applied:
        error = EditFailed(first.alone)
        error.occurs_often = isinstance(first.cause, Ambiguous)
    else:
        lines = [f"- {problem.among}" for problem in problems[:SHOWN]]
        if len(problems) > SHOWN:
            lines.append(f"- and {len(problems) - SHOWN} more")
        error = EditFailed("\n".join([_head(problems, placed, applied), *lines]))
    error.__cause__ = first.cause.__cause__ if first.cause is not None else None
    return error


def _head(problems: Sequence[Problem], placed: int, applied: Sequence[str]) -> str:
    if applied:
        return f"Changed: {', '.join(applied)}. The rest was not changed, because of these problems:"
    others = "" if not placed else f" The other {placed} would work; send them again with the corrected change."
    if len(problems) == 1 and placed:
        return f"Nothing was changed, because one change cannot be made.{others}"
    return f"Nothing was changed, because {len(problems)} changes cannot be made.{others}"
