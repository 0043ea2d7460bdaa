"""Puts back what was staged before a call of git_commit: of a file staged in part, the index has the only copy.

The call keeps a copy of the index as it was. Had it an index of its own, hooks would use that in other repositories
too, and git would commit from it even after Marvin was killed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from marvin_core import Record, ToolContext, ToolError, in_thread

from .contents import FILE_MODES, SUBMODULE, Stored, differing, empty_tree, in_index, put_back, why_differing
from .copies import check_left, copied, is_copy_of, owed, way_back
from .place import Place
from .running import LOCK_PAUSE, LOCK_TRIES, completed, read
from .staging import shortened
from .undo import Before, newest, state_before

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
    copy: Path | None
    """A copy of the index as it was before the call; None if there was no index."""
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
    before = await state_before(context, place)
    await in_thread(lambda: check_left(place.git_dir, index, before.head))
    known = await in_index(context, place, [], before.head)
    with ExitStack() as held:
        copy = await in_thread(
            lambda: copied(index, place.git_dir, before.head, held, is_staged=bool(known)), to_the_end=True
        )
        yield Attempt(
            message=message,
            before=before,
            only=only,
            index=index,
            copy=copy,
            known=known,
            files=within(known, only),
            staged=known,
        )


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
        What is staged, or not any more, although the call has not done it; empty if there is none.

    Raises:
        ToolError: it could not be staged; the text says how to.
    """
    if await in_thread(lambda: is_copy_of(attempt.copy, attempt.index)):
        return ""
    attempt = attempt.replace(copy=await in_thread(lambda: owed(attempt.copy), to_the_end=True))
    try:
        async with _locked(attempt):
            now = await in_index(context, place, [], attempt.before.head or await empty_tree(context))
            kept = await _committed_since(context, place, attempt, now)
            await in_thread(lambda: _replace(attempt), to_the_end=True)
    except (ToolError, OSError) as error:
        raise ToolError(f"{error}\n{await _way_back(context, attempt)}") from error
    changed = _changed(attempt.known if attempt.staged is None else attempt.staged, now)
    ours = {one.name for one in (*attempt.known, *attempt.files)} | {one.name for one in kept}
    others = [one for one in changed if one.name not in ours]
    if attempt.staged is None:  # nothing tells what the call itself has staged below the paths
        own = {one.name for one in within(changed, attempt.only)}
        apart = {one.name for one in others} - own
        kept = [*kept, *(one for one in others if one.name in apart)]
        changed, others = [one for one in changed if one.name not in apart], []
    await put_back(context, kept)
    bad = {*wrong, *await differing(context, changed, [*attempt.files, *attempt.known, *kept])}
    stay = [one for one in others if one.path not in bad]
    await put_back(context, stay)
    staged = shortened([one.name for one in stay])
    told = staged and f"A hook or another program has also staged this, and it stays so: {staged}."
    return "\n".join(filter(None, (told, unstaged(attempt, changed, bad))))


async def _way_back(context: ToolContext, attempt: Attempt) -> str:
    if attempt.copy is None:
        return "What the call has staged is still staged."
    lock = f"rm -f {shlex.quote(f'{attempt.index}.lock')}; "
    how = way_back(attempt.copy, attempt.index, (await newest(context)).commit, lock=lock)
    return f"What was staged before is not staged again. It is kept in {attempt.copy}. Wait until no git runs. {how}"


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
async def _locked(attempt: Attempt) -> AsyncIterator[None]:
    """Hold the lock of the index, as git does.

    Raises:
        ToolError: another git holds it for too long.
    """
    lock = attempt.index.with_name(f"{attempt.index.name}.lock")
    with await _opened(lock) as file:  # as long as it is open, no other lock is taken for it
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.lstat(lock)):
                    lock.unlink()


async def _opened(lock: Path) -> BinaryIO:
    for _ in range(LOCK_TRIES):
        with suppress(FileExistsError):
            return lock.open("xb")
        await asyncio.sleep(LOCK_PAUSE)
    raise ToolError(f"Another git holds {lock}.")


def _replace(attempt: Attempt) -> None:
    """Have the index be as it was, with its time. Blocks."""
    if attempt.copy is None:
        attempt.index.unlink(missing_ok=True)
    else:
        attempt.copy.replace(attempt.index)  # a second copy may have no room on the disk by now


async def clear_index(context: ToolContext, place: Place, attempt: Attempt) -> str:
    """Stage as in the newest commit what is staged with another content than it had and the files have.

    A commit of some paths may have read it, or a hook. The hooks of such a commit have an index of their own: what they
    format and stage there is committed, and the next commit would revert it. Returns how to stage again what the call
    has not staged: it may be from somebody else.
    """
    everything = await in_index(context, place, [])
    now = within(everything, attempt.only)
    other = set(await differing(context, now, () if attempt.only else attempt.files))
    behind = await _as_before(context, place, attempt, everything) if attempt.only else ()
    await put_back(context, [*(one.committed for one in now if one.path in other), *(one.committed for one in behind)])
    own = {(one.name, one.hash) for one in attempt.files}
    return unstaged(attempt, [one for one in now if (one.name, one.hash) not in own], other)


async def _as_before(
    context: ToolContext, place: Place, attempt: Attempt, staged: Sequence[Stored]
) -> Sequence[Stored]:
    """Those of the staged files that are as in the commit before the call: a hook has committed others."""
    head = attempt.before.head or await empty_tree(context)
    changed = {one.name for one in await in_index(context, place, [], head)}
    return [one for one in staged if one.name not in changed]


def within(stored: Iterable[Stored], only: Sequence[str]) -> Sequence[Stored]:
    """Those of the files of the working directory that are below the paths; all without paths."""
    folders, named = tuple(f"{path}/" for path in only), set(only)
    all_here = not only or "." in named
    return [one for one in stored if one.path and (all_here or one.path in named or one.path.startswith(folders))]


def unstaged(attempt: Attempt, stored: Sequence[Stored], paths: Collection[str]) -> str:
    """How to stage again what of some paths was staged; empty without paths.

    If git was given paths, or staging fails, git may itself have read what it staged, and elsewhere. Then nothing leads
    to that content.
    """
    found = [one for one in stored if one.path in paths and one.mode in _CAN_BE_STAGED]
    if not found:
        return ""
    said = "was staged during the call, with other content than the files have, and is not staged any more"
    may_be_elsewhere = bool(attempt.only) or attempt.staged is None
    told = [
        f"git update-index --add --cacheinfo {one.mode},{one.hash},{shlex.quote(one.name)}"
        for one in found
        if not may_be_elsewhere and one.name.encode("utf-8", "replace").decode() == one.name
    ][:_COMMANDS]
    if not told:
        return f"This {said}: {shortened([one.path for one in found])}."
    rest = f" ({len(found) - len(told):,} more are not listed)" if len(found) > len(told) else ""
    return f"This {said}. If the user staged it on purpose, it can be staged again{rest}: {'; '.join(told)}"
