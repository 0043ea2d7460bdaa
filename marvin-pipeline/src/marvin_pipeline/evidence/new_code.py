"""Finds new code: what was written since the implementation began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from marvin_core import in_thread

from ..progress import Progress
from .criteria import is_test_file

if TYPE_CHECKING:
    from ..run.context import Run

_BEGUN = ("3", "2a")
"""The phases whose start marks the implementation's; the first recorded one counts."""


async def new_files(run: Run) -> Sequence[str] | None:
    """The files that were added or changed from the begin of the implementation to the last checkpoint, without tests.

    None if its start is not recorded.

    Raises:
        GitFault: git fails.
    """
    since = await _since(run)
    if not since:
        return None
    return [name for name in await run.git.changed_since(since) if not name.startswith(".") and not is_test_file(name)]


async def new_lines(run: Run) -> Mapping[str, Sequence[int]] | None:
    """The numbers of their new lines, by file; None as for `new_files`. Raises `GitFault`."""
    since, names = await _since(run), await new_files(run)
    if names is None:
        return None
    lines = {name: await run.git.new_lines(since, name) for name in names if "." in name}
    return {name: numbers for name, numbers in lines.items() if numbers}


async def _since(run: Run) -> str:
    since = await in_thread(lambda: _begun(run))
    return since if await run.git.knows(since) else ""


def _begun(run: Run) -> str:
    for phase in _BEGUN:
        notes = reversed(Progress(run.files, phase, "writers").read())
        if begun := next((str(note["begun"]) for note in notes if "begun" in note), ""):
            return begun
    return ""
