"""Which tests of a project name which acceptance criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from marvin_core import in_thread

from ..run.files import ProjectFiles
from .ci.files import text_below
from .criteria import Mention, criteria_of, is_test_file, mentions_in

if TYPE_CHECKING:
    from ..run.context import Run

_FILES, _BYTES = 2_000, 40_000_000
"""Test files that are read, and their bytes in total."""
_NAMED = 30


def mentions_of(files: ProjectFiles, names: Sequence[str]) -> Sequence[Mention]:
    """The places in a project's tests that name criteria. Blocks.

    Args:
        names: the tracked files, relative to the project.
    """
    found: list[Mention] = []
    left = _BYTES
    for name in [name for name in names if is_test_file(name)][:_FILES]:
        text = text_below(files.root, name)
        left -= len(text)
        if left < 0:
            break
        found += mentions_in(name, text)
    return found


async def untested(run: Run) -> tuple[str, ...]:
    """A message about the criteria that no test names, for the report and for later agents; empty if all are named.

    Raises:
        FileFault: the specification cannot be read.
        GitFault: git fails.
    """
    names = await run.git.files()
    ids = await in_thread(lambda: _untested(run.files, names))
    if not ids:
        return ()
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return (f"medium: .marvin/spec.md: No test refers to {', '.join(ids[:_NAMED])}{more}.",)


def _untested(files: ProjectFiles, names: Sequence[str]) -> Sequence[str]:
    named = {mention.criterion for mention in mentions_of(files, names)}
    return [one.id for one in criteria_of(files.text("spec.md")) if one.id not in named]
