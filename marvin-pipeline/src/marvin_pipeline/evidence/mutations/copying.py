"""A copy of the project in which the code may be broken, and the check that its tests run against that copy."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from marvin_core import in_thread, open_without_links, opened_folder

from ...checks.files import folders_in
from ...checks.running import CommandRun, run_command
from .tried import NotMeasured

if TYPE_CHECKING:
    from ...checks.commands import ProjectCommand
    from ...run.context import Run

_LEFT = re.compile(r"mutations-[a-z0-9_]{8}")
"""The name of a folder made by `tempfile`."""
_MODULES = "node_modules"
_DEEPEST, _MOST = 5, 2_000
"""Depth, and number, of folders that are searched for installed packages."""
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)
"""The errors if there is nothing with a name, or a folder, a link or a pipe."""
_GROUPS = (".bin",)
"""Subfolders whose entries are linked one by one, in addition to scopes such as `@acme`."""
NO_CODE = b"\x00 this is no code {{{ (\n"
"""Invalid code in every language."""


@asynccontextmanager
async def copied(run: Run) -> AsyncIterator[Path]:
    """A copy of the project's tracked files, below `.marvin`, where the sandbox allows changes.

    Installed JavaScript packages are linked; packages of a workspace are those of the copy.

    Raises:
        GitFault: git fails.
    """
    folder = Path(await in_thread(lambda: tempfile.mkdtemp(prefix="mutations-", dir=run.folder / ".marvin")))
    try:
        copy = await run.git.copy_to(folder)
        await in_thread(lambda: link_modules(run.folder, copy))
        yield copy
    finally:
        await in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))


def link_modules(root: Path, copy: Path) -> None:
    """Link the installed packages of the project in its copy. Blocks."""
    for modules in _fetched(root):
        place = copy / modules.parent.relative_to(root)
        if place.is_dir():
            with suppress(OSError):  # the project has committed them
                _link_entries(modules, place / _MODULES, root, copy)


def _fetched(root: Path) -> Iterator[Path]:
    """The `node_modules` folders of a project and its packages."""
    waiting, seen = [(root, 0)], 0
    while waiting and seen < _MOST:
        folder, depth = waiting.pop()
        seen += 1
        if (folder / _MODULES).is_dir():
            yield folder / _MODULES
        if depth < _DEEPEST:
            waiting += [(inner, depth + 1) for inner in folders_in(folder) if inner.name != _MODULES]


def _link_entries(modules: Path, target: Path, root: Path, copy: Path) -> None:
    """Link each entry; packages of the project and their programs are linked to the copy."""
    target.mkdir()
    for entry in modules.iterdir():
        is_group = entry.name.startswith("@") or entry.name in _GROUPS
        if is_group and entry.is_dir() and not entry.is_symlink():
            _link_entries(entry, target / entry.name, root, copy)
            continue
        real = entry.resolve()
        is_own = real.is_relative_to(root) and _MODULES not in real.relative_to(root).parts
        os.symlink(copy / real.relative_to(root) if is_own else entry, target / entry.name)


def remove_copies(root: Path) -> None:
    """Remove the copies that killed runs left. Blocks."""
    for left in (root / ".marvin").glob("mutations-*"):
        if _LEFT.fullmatch(left.name) and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def in_copy(command: ProjectCommand, root: Path, copy: Path) -> ProjectCommand:
    """A command of the project for the copy: the same programs, and Python modules of the copy only."""
    argv = list(command.argv)
    folder = root / command.folder
    if "/" in argv[0] and not argv[0].startswith("/"):
        argv[0] = str(folder / argv[0])
    place = copy / command.folder
    path = os.pathsep.join(map(str, (place / "src", place)))
    added = (("PYTHONPATH", path), ("PYTHONDONTWRITEBYTECODE", "1"))
    return command.replace(argv=tuple(argv), environment=(*command.environment, *added))


async def check_copy(run: Run, copy: Path, command: ProjectCommand, files: Sequence[str], timeout: float) -> CommandRun:
    """Check that the tests pass in the copy, and that they use its code; returns how they passed.

    Args:
        files: the code files. All of them are broken for a moment: one alone may be a script that no test uses.

    Raises:
        NotMeasured: they do not pass there, or pass with broken code.
    """
    processes = run.control.session.processes
    well = await run_command(processes, copy, command, timeout)
    if not well.passed:
        raise NotMeasured(
            f"The tests do not pass in a copy of the project, so mutations cannot be checked ({well.ending})."
        )
    contents = await in_thread(lambda: break_code(copy, files))
    try:
        broken = await run_command(processes, copy, command, timeout)
    finally:
        await in_thread(lambda: restore_code(copy, contents))
    if broken.passed:
        more = f" and {len(files) - 1} more files are" if len(files) > 1 else " is"
        raise NotMeasured(f"The tests pass even if {files[0]}{more} empty: they do not use the new code.")
    return well


def break_code(copy: Path, files: Sequence[str]) -> Mapping[str, bytes]:
    """Break the code in files; returns their original content. Links are skipped: they may lead anywhere. Blocks."""
    contents = dict[str, bytes]()
    for name in files:
        with suppress(OSError), open_without_links(copy, name) as file:
            contents[name] = file.read()
    return {name: content for name, content in contents.items() if write_inside(copy, name, NO_CODE)}


def restore_code(copy: Path, contents: Mapping[str, bytes]) -> None:
    """Write the original content back; tests may have replaced the files by links, which are skipped. Blocks."""
    for name, content in contents.items():
        write_inside(copy, name, content)


def write_inside(copy: Path, name: str, data: bytes) -> bool:
    """Write an existing file of the copy; returns whether it did. Links are skipped. Blocks."""
    folder, _, base = name.rpartition("/")
    try:
        with opened_folder(copy, folder) as opened:
            descriptor = os.open(base, _WRITE, dir_fd=opened)
    except OSError as error:
        if error.errno in _NO_FILE:
            return False
        raise
    with os.fdopen(descriptor, "wb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        file.truncate()
        file.write(data)
    return True


def add_file(copy: Path, name: str, text: str) -> None:
    """Write a new file of the copy; its folder is created. No link is followed. Blocks.

    Raises:
        NotMeasured: it cannot be written.
    """
    folder, _, base = name.rpartition("/")
    around, _, inner = folder.rpartition("/")
    try:
        with opened_folder(copy, around) as opened, suppress(FileExistsError):
            os.mkdir(inner, dir_fd=opened)
        with opened_folder(copy, folder) as opened:
            descriptor = os.open(base, _WRITE | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=opened)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise NotMeasured(
            f"{name} cannot be written in a copy of the project, so mutations cannot be tried: {error.strerror}."
        ) from error
