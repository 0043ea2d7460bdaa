"""Puts back what was staged before a call of git_commit: of a file staged in part, the index has the only copy.

The call keeps a copy of the index as it was. Had it an index of its own, hooks would use that in other repositories
too, and git would commit from it even after Marvin was killed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError, in_thread

from .contents import FILE_MODES, SUBMODULE, Stored, differing, empty_tree, in_index, put_back, why_differing
from .place import Place
from .running import LOCK_PAUSE, LOCK_TRIES, completed, read
from .staging import shortened
from .undo import Before, newest, state_before

_KEPT = "marvin-staged-"
"""The first characters of the name of a copy with something that the user has staged."""
_TRIES = 3
_COMMANDS = 5
"""How many commands an answer lists."""
_CAN_BE_STAGED = (*FILE_MODES, "120000", SUBMODULE)


class Attempt(Record):
    """A call of git_commit: what it found staged, and what it has staged itself."""

    message: str
    before: Before
    only: Sequence[str]
    """The paths that git is given, empty if it commits what is staged."""
    index: Path
    copy: Path
    """A copy of the index as it was before the call; there is none if there was no index."""
    known: Sequence[Stored]
    """What was staged before the call, compared with the commit of the branch."""
    files: Sequence[Stored]
    """What is to be committed."""
    staged: Sequence[Stored] | None
    """All that is staged since the call has staged its part; None as long as it has not."""
    note: str | None = None
    """What was left out; None if the call stages nothing."""


@asynccontextmanager
async def begun(context: ToolContext, place: Place, message: str, only: Sequence[str]) -> AsyncIterator[Attempt]:
    """A call that is about to stage and commit. Raises `ToolError` if the index cannot be copied."""
    said = await read(context, "git commit", ["rev-parse", "--path-format=absolute", "--git-path", "index"])
    index = Path(said.output.decode("utf-8", "surrogateescape").rstrip("\n"))  # the user may have set another one
    await in_thread(lambda: _check_left(place.git_dir, index))
    before = await state_before(context, place)
    known = await in_index(context, place, [], before.head)
    copy = place.git_dir / f"{_KEPT if known else 'marvin-index-'}{os.getpid()}-{time.monotonic_ns()}"
    attempt = Attempt(
        message=message,
        before=before,
        only=only,
        index=index,
        copy=copy,
        known=known,
        files=within(known, only),
        staged=known,
    )
    try:
        # By its time, git knows the files that have changed in the moment it was written.
        copying = shutil.copy2 if known else shutil.copy
        await in_thread(lambda: _copied(index, copy, copying), to_the_end=True)
        yield attempt
    finally:
        copy.unlink(missing_ok=True)


def _copied(index: Path, copy: Path, copying: Callable[[Path, Path], object]) -> None:
    try:
        with suppress(FileNotFoundError):  # nothing was ever staged
            copying(index, copy)
    except OSError as error:
        raise ToolError(f"Nothing was committed: the index cannot be copied: {error.strerror}.") from error


def _check_left(git_dir: Path, index: Path) -> None:
    """Refuse to commit once a call was killed that has staged something else than the user had."""
    for left in sorted(git_dir.glob(f"{_KEPT}*")):
        try:
            os.kill(int(left.name.removeprefix(_KEPT).partition("-")[0]), 0)
        except (ProcessLookupError, ValueError, OverflowError):
            path = shlex.quote(str(left))
            raise ToolError(
                "Nothing was committed: an earlier git_commit was killed. What the user had staged before it is kept "
                f"in {left}. Ask the user. To stage that again, run_command: mv {path} {shlex.quote(str(index))}; if "
                f"it is not wanted, or git_log shows that the commit was made: rm {path}"
            ) from None
        except PermissionError:
            continue


async def staged_as_is(
    context: ToolContext, place: Place, attempt: Attempt, stage: Callable[[], Awaitable[None]]
) -> Attempt:
    """Stage, and return the attempt with what is staged, once it is what the files contain.

    What was staged before is not compared: it may differ from the files.

    Raises:
        ToolError: it never was; what was staged before is staged again.
    """
    try:
        return await _staged_as_is(context, place, attempt, stage)
    except ToolError as error:
        said = await completed(_tried(stage_as_before(context, place, attempt.replace(staged=None))))
        raise ToolError(f"{error}\n{said}".rstrip()) from error
    except asyncio.CancelledError:
        await completed(_tried(stage_as_before(context, place, attempt.replace(staged=None))))
        raise


async def _tried(work: Awaitable[str]) -> str:
    try:
        return await work
    except ToolError as error:
        return str(error)


async def _staged_as_is(
    context: ToolContext, place: Place, attempt: Attempt, stage: Callable[[], Awaitable[None]]
) -> Attempt:
    other: Sequence[str] = ()
    for _ in range(_TRIES):
        await stage()
        staged = await in_index(context, place, [], attempt.before.head)
        files = within(staged, attempt.only)
        other = await differing(context, files, attempt.known)
        if not other:
            return attempt.replace(files=files, staged=staged)
    raise ToolError(f"Nothing was committed: {why_differing(other)}")


async def stage_as_before(context: ToolContext, place: Place, attempt: Attempt, wrong: Sequence[str] = ()) -> str:
    """Stage what was staged before a call of git_commit that has made no commit.

    What somebody else has staged meanwhile stays if the files have it as well, and what they have committed.

    Args:
        wrong: files whose staged content is known not to be that of the files.

    Returns:
        What is not staged any more although the call has not staged it; empty if there is none.

    Raises:
        ToolError: it could not be staged; the text says how to.
    """
    async with _locked(attempt) as lock:
        base = attempt.before.head or await empty_tree(context)
        now = await in_index(context, place, [], base)
        kept = await _committed_since(context, place, attempt, now)
        changed = [] if attempt.staged is None else _changed(attempt.staged, now)
        ours = {one.name for one in (*attempt.known, *attempt.files)} | {one.name for one in kept}
        others = [one for one in changed if one.name not in ours]
        bad = {*wrong, *await differing(context, changed, [*attempt.files, *attempt.known, *kept])}
        await in_thread(lambda: _replace(attempt, lock), to_the_end=True)
    await put_back(context, [*kept, *(one for one in others if one.path not in bad)])
    return unstaged(attempt, changed, bad)


async def _committed_since(
    context: ToolContext, place: Place, attempt: Attempt, now: Sequence[Stored]
) -> Sequence[Stored]:
    """What somebody else has committed since, and is staged: otherwise it would be staged as reverted."""
    if (await newest(context)).commit == attempt.before.head:
        return ()
    uncommitted = {one.name for one in await in_index(context, place, [])}
    return [one for one in _changed(attempt.known, now) if one.name not in uncommitted]


def _changed(then: Sequence[Stored], now: Sequence[Stored]) -> Sequence[Stored]:
    """The files that are staged otherwise than then, as they are now, without conflicts."""
    was = {one.name: one for one in then}
    changed = [one for one in now if one != was.get(one.name)]
    named = {one.name for one in now}
    changed += [one.committed for one in then if one.name not in named]
    return [one for one in changed if one.status != "U"]


@asynccontextmanager
async def _locked(attempt: Attempt) -> AsyncIterator[Path]:
    """The lock of the index, as git holds it, for `_replace`, which ends it: then it may be that of another git.

    Raises:
        ToolError: another git holds it for too long.
    """
    lock = attempt.index.with_name(f"{attempt.index.name}.lock")
    for left in reversed(range(LOCK_TRIES)):
        with suppress(FileExistsError):
            lock.open("xb").close()
            break
        if not left:
            kept = attempt.copy.with_name(f"{attempt.copy.name}-kept")
            with suppress(FileNotFoundError):
                os.link(attempt.copy, kept)
            raise ToolError(
                f"Another git holds {lock}, so what was staged before could not be staged again. Once no git runs, "
                f"run_command: rm -f {shlex.quote(str(lock))}; mv {shlex.quote(str(kept))} "
                f"{shlex.quote(str(attempt.index))}"
            )
        await asyncio.sleep(LOCK_PAUSE)
    try:
        yield lock
    except BaseException:
        lock.unlink(missing_ok=True)
        raise


def _replace(attempt: Attempt, lock: Path) -> None:
    """Have the index be as it was, with its time. Blocks."""
    if attempt.copy.exists():
        shutil.copy2(attempt.copy, lock)
        lock.replace(attempt.index)
    else:
        attempt.index.unlink(missing_ok=True)
        lock.unlink()


async def clear_index(context: ToolContext, place: Place, attempt: Attempt) -> str:
    """Stage as in the newest commit what is staged with another content than it had and the files have.

    A commit of some paths may have read it, or a hook. Returns how to stage it again: it may be from somebody else.
    """
    now = await in_index(context, place, attempt.only)
    other = set(await differing(context, now, attempt.files))
    await put_back(context, [one.committed for one in now if one.path in other])
    return unstaged(attempt, now, other)


def within(stored: Iterable[Stored], only: Sequence[str]) -> Sequence[Stored]:
    """Those of the files of the working directory that are below the paths; all without paths."""
    folders, named = tuple(f"{path}/" for path in only), set(only)
    all_here = not only or "." in named
    return [one for one in stored if one.path and (all_here or one.path in named or one.path.startswith(folders))]


def unstaged(attempt: Attempt, stored: Sequence[Stored], paths: Collection[str]) -> str:
    """How to stage again what of some paths was staged; empty without paths.

    If git was given paths, it may itself have read what it staged, and elsewhere. Then nothing leads to that content.
    """
    found = [one for one in stored if one.path in paths and one.mode in _CAN_BE_STAGED]
    if not found:
        return ""
    said = "was staged during the call, with other content than the files have, and is not staged any more"
    told = [
        f"git update-index --add --cacheinfo {one.mode},{one.hash},{shlex.quote(one.name)}"
        for one in found
        if not attempt.only and one.name.encode("utf-8", "replace").decode() == one.name
    ][:_COMMANDS]
    if not told:
        return f"This {said}: {shortened([one.path for one in found])}."
    rest = f" ({len(found) - len(told):,} more are not listed)" if len(found) > len(told) else ""
    return f"This {said}. If the user staged it on purpose, it can be staged again{rest}: {'; '.join(told)}"
