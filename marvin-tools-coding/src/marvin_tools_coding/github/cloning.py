"""Makes clones: complete or not at all, one at a time for each repository, and without running anything of it."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from marvin_core import (
    GIT_ASKS_NOBODY,
    ProcessResult,
    Record,
    ToolContext,
    ToolError,
    git_command,
    in_thread,
    one_line,
)

from .api import environment, program
from .repositories import FOLDER, Clones, Repository, host_of

_OUTPUT = 100_000
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_SAID = 800
_MOST_FILES = 2_000_000
_MOST_BYTES = 20_000_000_000
_KEPT_FREE = 500_000_000
"""Bytes of the disk that are left free."""
_ENTRY = 10_000
_SIZE = re.compile(rb"\d+ blob \w+ +(\d+)\t")
_PERCENT = re.compile(r"(?:remote: )?(\w[\w ]*):\s+(\d+)% \((\d+)/(\d+)\)")
# Neither the user's automatic git actions nor those that a repository requests: the clone is only for reading.
_GIT = git_command()
_UNFILTERED = ("-c", "filter.lfs.process=", "-c", "filter.lfs.smudge=", "-c", "filter.lfs.required=false")
_ENVIRONMENT = {**GIT_ASKS_NOBODY, "GIT_ASKPASS": "true", "SSH_ASKPASS": "true"}
# The user's filters would run on third-party content.
_OF_NOBODY = {
    **_ENVIRONMENT,
    **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"), os.devnull),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
}


class Order(Record):
    """What to clone. `kilobytes` is the size that GitHub gives, for people.

    `replaces` says whether the clone takes the place of an existing one.
    """

    repository: Repository
    shallow: bool
    replaces: bool = False
    kilobytes: int = 0


class Workshop:
    """The folder in which the clones of one session are made before they are moved to their places.

    It belongs to the pack, and commands in the sandbox do not see it: none of them can set git's configuration
    there.
    """

    def __init__(self, context: ToolContext, clones: Clones) -> None:
        self._context = context
        self._clones = clones
        self._folder = context.folders.cache / "clones"

    @asynccontextmanager
    async def alone(self, repository: Repository) -> AsyncIterator[None]:
        """Keep other Marvins from cloning the same repository meanwhile, and remove what a killed one left."""
        with _explained(self._folder):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self._folder / f"{_key(repository)}.lock", _LOCK, 0o600)
        try:
            waits = False
            while not _taken(lock):
                if not waits:
                    self._context.progress(f"waiting: {repository} is being cloned by another Marvin")
                waits = True
                await asyncio.sleep(self._context.timeouts.job_poll)
            await in_thread(lambda: self._sweep(repository))
            yield
        finally:
            os.close(lock)

    def _sweep(self, repository: Repository) -> None:
        for folder, begin in ((self._folder, ""), (self._clones.root, ".")):
            for name in os.listdir(folder) if folder.is_dir() else ():
                if name.startswith(f"{begin}{_key(repository)},"):
                    shutil.rmtree(folder / name, ignore_errors=True)

    async def clone(self, order: Order, place: Path) -> None:
        """Clone, and move the clone to its place; it replaces the old one if the order says so.

        Raises:
            ToolError: it fails; nothing is left of the attempt.
        """
        name = f"{_key(order.repository)},{os.urandom(4).hex()}"
        made, brought = self._folder / name, self._clones.root / f".{name}"
        try:
            await _fetch(self._context, self._folder, order, made)
            if await _has_commit(self._context, made):
                await _check_size(self._context, made)
                await _check_out(self._context, made)
            with _explained(place):
                await in_thread(lambda: _put(made, brought, place, replaces=order.replaces))
        finally:
            # The thread continues if the call is cancelled a second time; the next clone removes what it leaves.
            await in_thread(lambda: _remove(made, brought))


def _key(repository: Repository) -> str:
    return f"{repository.owner},{repository.name}".lower()  # no name has a comma


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ToolError(
            f"Nothing was cloned: ~/{FOLDER} cannot be locked ({error.strerror}). Tell the user."
        ) from error
    return True


async def _fetch(context: ToolContext, cwd: Path, order: Order, folder: Path) -> None:
    host = host_of(context)
    helper = f"credential.https://{host}.helper="
    asked = f"{helper}!{shlex.quote(program(context))} auth git-credential"
    login = ("-c", "credential.helper=", "-c", helper, "-c", asked)
    depth = ("--depth=1", "--no-tags") if order.shallow else ()
    argv = [
        *(*_GIT, *login, "clone", "--no-checkout", "--progress", "--template=", "--no-recurse-submodules"),
        *("--origin=origin", *depth, "--", f"https://{host}/{order.repository}.git", str(folder)),
    ]
    size = f" ({_size(order.kilobytes)} on GitHub)" if order.kilobytes else ""
    context.progress(f"cloning {order.repository}{size}")
    result = await _run(context, argv, cwd, {**environment(context), **_ENVIRONMENT})
    if result.exit_code != 0:
        raise _failure(order, result)


def _size(kilobytes: int) -> str:
    return f"{kilobytes:,} KB" if kilobytes < 10_000 else f"{kilobytes // 1000:,} MB"


async def _has_commit(context: ToolContext, folder: Path) -> bool:
    """Whether there is a commit to check out: an empty repository has none."""
    argv = [*_GIT, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"]
    return (await _run(context, argv, folder, _OF_NOBODY)).exit_code == 0


async def _check_size(context: ToolContext, folder: Path) -> None:
    """Refuse repositories that are small in git and fill the disk when checked out."""
    room = shutil.disk_usage(folder).free - _KEPT_FREE
    files, size, rest = 0, 0, b""

    def is_too_much(piece: bytes) -> bool:
        nonlocal files, size, rest
        *lines, rest = (rest + piece).split(b"\0")
        rest = rest[-_ENTRY:]
        files += len(lines)
        size += sum(int(found[1]) for found in map(_SIZE.match, lines) if found is not None)
        return files > _MOST_FILES or size > min(room, _MOST_BYTES)

    argv = [*_GIT, "ls-tree", "-r", "-l", "-z", "HEAD", "--"]
    await context.processes.run(argv, cwd=folder, env=_OF_NOBODY, output_limit=1, outside=True, enough=is_too_much)
    if is_too_much(b""):
        raise ToolError(
            f"Nothing was kept: it has {files:,} files of {size:,} bytes or more; the limits are {_MOST_FILES:,} and "
            f"{min(room, _MOST_BYTES):,}. Search it with github_search and search_type='code' instead."
        )


async def _check_out(context: ToolContext, folder: Path) -> None:
    argv = [*_GIT, *_UNFILTERED, "checkout", "--force", "--progress", "HEAD", "--"]
    result = await _run(context, argv, folder, _OF_NOBODY)
    if result.exit_code != 0:
        raise ToolError(f"Its files cannot be written, so nothing was kept. git says: {_said(result)}")


async def _run(context: ToolContext, argv: list[str], cwd: Path, env: Mapping[str, str]) -> ProcessResult:
    """Run git outside of the sandbox, in which it could neither log in nor write there."""

    def tell(text: str) -> None:
        for line in reversed(text.replace("\r", "\n").split("\n")):
            if found := _PERCENT.match(line):
                context.progress(found[1], int(found[3]), int(found[4]))
                break

    return await context.processes.run(
        argv, cwd=cwd, env=env, output_limit=_OUTPUT, merge_stderr=True, outside=True, on_output=tell
    )


def _failure(order: Order, result: ProcessResult) -> ToolError:
    said = _said(result)
    advice = "Try again later."
    if "No space left" in said:
        advice = "The disk is full: ask the user to free space."
    elif any(sign in said for sign in ("not found", "Authentication failed", "could not read Username", "denied")):
        advice = "The account of gh may not read it: ask the user to run gh auth login or gh auth refresh."
    elif not order.shallow:
        advice = "Try again later, or with shallow=true, which fetches much less."
    return ToolError(f"{order.repository} was not cloned, and no part of it was kept. {advice} git says: {said}")


def _said(result: ProcessResult) -> str:
    """git's output without its progress."""
    lines = result.output.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    kept = [line for line in map(one_line, lines) if line and "%" not in line and not line.startswith("Cloning into")]
    return "\n".join(kept[-10:])[-_SAID:] or "(nothing)"


def _put(made: Path, brought: Path, place: Path, *, replaces: bool) -> None:
    """Move a clone to its place, through a folder beside it. If that fails the old clone stays. Blocks."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(brought)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copytree(made, brought, symlinks=True)
    old = _old(brought)
    if replaces:
        place.rename(old)
    try:
        brought.rename(place)  # fails if another Marvin has created it meanwhile
    except OSError:
        if replaces:
            old.rename(place)
        raise


def _old(brought: Path) -> Path:
    return brought.with_name(f"{brought.name}-old")


def _remove(made: Path, brought: Path) -> None:
    for left in (made, brought, _old(brought)):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(f"{place} cannot be created: {error.strerror}. Nothing was kept.") from error
