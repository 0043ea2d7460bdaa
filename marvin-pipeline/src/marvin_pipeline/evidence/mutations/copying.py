"""A copy of the project in which its code may be broken, and whether its tests are of that copy."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from marvin_core import in_thread

from ...checks.running import CommandRun, run_command
from .tried import NotMeasured

if TYPE_CHECKING:
    from ...checks.commands import ProjectCommand
    from ...run.context import Run

_LEFT = re.compile(r"mutations-[a-z0-9_]{8}")
"""As `tempfile` names a folder."""
_MODULES = "node_modules"


@asynccontextmanager
async def copied(run: Run) -> AsyncIterator[Path]:
    """A copy of what git has of the project, below `.marvin`, where the sandbox lets it be changed.

    What a package manager fetched for JavaScript is linked to.

    Raises:
        GitFault: git fails.
    """
    folder = Path(await in_thread(lambda: tempfile.mkdtemp(prefix="mutations-", dir=run.folder / ".marvin")))
    try:
        await run.git.copy_to(folder)
        await in_thread(lambda: _link_modules(run.folder, folder))
        yield folder
    finally:
        await in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))


def _link_modules(root: Path, copy: Path) -> None:
    for place in (root, *(entry for entry in root.iterdir() if entry.is_dir() and not entry.is_symlink())):
        target = copy / place.relative_to(root)
        if (place / _MODULES).is_dir() and target.is_dir():
            with suppress(OSError):  # the project has committed them
                os.symlink(place / _MODULES, target / _MODULES)


def remove_copies(root: Path) -> None:
    """Remove the copies of runs that were killed. Blocks."""
    for left in (root / ".marvin").glob("mutations-*"):
        if _LEFT.fullmatch(left.name) and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def in_copy(command: ProjectCommand, root: Path, copy: Path) -> ProjectCommand:
    """A command of the project for the copy: the same programs, and modules of Python from the copy alone."""
    argv = list(command.argv)
    folder = root / command.folder
    if "/" in argv[0] and not argv[0].startswith("/"):
        argv[0] = str(folder / argv[0])
    place = copy / command.folder
    path = os.pathsep.join(map(str, (place / "src", place)))
    added = (("PYTHONPATH", path), ("PYTHONDONTWRITEBYTECODE", "1"))
    return command.replace(argv=tuple(argv), environment=(*command.environment, *added))


async def check_copy(run: Run, copy: Path, command: ProjectCommand, files: Sequence[str], timeout: float) -> CommandRun:
    """See to it that the tests pass in the copy, and that they are of the copy; returns how they passed.

    Args:
        files: the files of the code. All of them are broken for a moment: one alone may be a script that no test uses.

    Raises:
        NotMeasured: they do not pass there, or pass with broken code.
    """
    processes = run.control.session.processes
    well = await run_command(processes, copy, command, timeout)
    if not well.passed:
        raise NotMeasured(
            f"In a copy of the project its tests do not pass, so nothing tells what they catch ({well.ending})."
        )
    contents = await in_thread(lambda: break_code(copy, files))
    try:
        broken = await run_command(processes, copy, command, timeout)
    finally:
        await in_thread(lambda: [path.write_bytes(content) for path, content in contents.items()])
    if broken.passed:
        more = f" and {len(files) - 1} more files that are" if len(files) > 1 else " that is"
        raise NotMeasured(f"The tests pass with {files[0]}{more} no code at all: they do not use the new code.")
    return well


def break_code(copy: Path, files: Sequence[str]) -> Mapping[Path, bytes]:
    """Have no code in files; returns what they held. A link is left alone: it may lead anywhere. Blocks."""
    paths = [copy / file for file in files]
    contents = {path: path.read_bytes() for path in paths if path.resolve() == copy.resolve() / path.relative_to(copy)}
    for path in contents:
        path.write_bytes(b"\x00 this is no code {{{ (\n")
    return contents
