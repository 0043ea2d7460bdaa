"""What a call of git_commit stages: in a copy of the index, so that what the user has staged is lost in no case.

Of a file staged in part, the index has the only copy. Once the commit is made, what the call has staged is staged in
the repository's index too. A call that fails, is cancelled or is killed leaves that index as it was.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError, in_thread

from .contents import FILE_MODES, SUBMODULE, Stored, differing, empty_tree, in_index, put_back, why_differing
from .place import Place
from .running import keep, read
from .staging import shortened
from .undo import Before, Newest, newest

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
    env: Mapping[str, str]
    """The variables by which git uses the index of the call."""
    known: Sequence[Stored]
    """What was staged before the call, compared with the commit of the branch."""
    files: Sequence[Stored]
    """What is to be committed."""
    note: str | None = None
    """What was left out; None if the call stages nothing."""


@asynccontextmanager
async def own_index(context: ToolContext, place: Place) -> AsyncIterator[Mapping[str, str]]:
    """A copy of the index for the time of a call. Returns the variables by which git uses it.

    Raises:
        ToolError: it cannot be made.
    """
    said = await read(context, "git commit", ["rev-parse", "--path-format=absolute", "--git-path", "index"])
    index = Path(said.output.decode("utf-8", "surrogateescape").rstrip("\n"))  # the user may have set another one
    copy = place.git_dir / f"marvin-index-{os.getpid()}-{time.monotonic_ns()}"
    try:
        await in_thread(lambda: _copy(index, copy))
        yield {"GIT_INDEX_FILE": str(copy)}
    finally:
        for path in (copy, copy.with_name(f"{copy.name}.lock")):  # git leaves its lock if it is killed
            path.unlink(missing_ok=True)


def _copy(index: Path, copy: Path) -> None:
    """Copy an index with its time, by which git knows the files that have changed in the moment it was written."""
    try:
        with suppress(FileNotFoundError):  # nothing was ever staged
            shutil.copy2(index, copy)
    except OSError as error:
        raise ToolError(f"Nothing was committed: the index cannot be copied: {error.strerror}.") from error


async def staged_as_is(
    context: ToolContext, place: Place, attempt: Attempt, stage: Callable[[], Awaitable[None]]
) -> Attempt:
    """Stage, and return the attempt with what is staged, once it is what the files contain.

    What was staged before is not compared: it may differ from the files. Raises `ToolError` if it never was.
    """
    other: Sequence[str] = ()
    for _ in range(_TRIES):
        await stage()
        found = await in_index(context, place, place.scope, attempt.before.head, attempt.env)
        staged = within(found, attempt.only)
        other = await differing(context, staged, attempt.known)
        if not other:
            return attempt.replace(files=staged)
    raise ToolError(f"Nothing was committed: {why_differing(other)}")


def within(stored: Iterable[Stored], only: Sequence[str]) -> Sequence[Stored]:
    """Those of the files of the working directory that are below the paths; all without paths."""
    folders, named = tuple(f"{path}/" for path in only), set(only)
    all_here = not only or "." in named
    return [one for one in stored if one.path and (all_here or one.path in named or one.path.startswith(folders))]


async def stage_for_all(context: ToolContext, place: Place, attempt: Attempt, made: Newest) -> str:
    """Stage in the repository's index what the call has staged, once the commit is made.

    What a hook, or git for the commit of some paths, has read and the files do not have is staged as in the commit.

    Returns:
        How to stage again what is not staged any more, as it may be staged on purpose; or why nothing could be staged.
    """
    found = await in_index(context, place, attempt.only, made.commit, attempt.env)
    other = set(await differing(context, found, attempt.files))
    await put_back(context, [one.committed for one in found if one.path in other], attempt.env)
    return await _stage_for_all(context, place, attempt) or unstaged(attempt, found, other)


async def stage_what_others_committed(context: ToolContext, place: Place, attempt: Attempt) -> str:
    """Stage what a hook has committed of what the call had staged; otherwise it would be staged as reverted."""
    if (await newest(context)).commit == attempt.before.head:
        return ""
    found = await in_index(context, place, [], "HEAD", attempt.env)
    return await _stage_for_all(context, place, attempt, {one.name for one in found})


async def _stage_for_all(context: ToolContext, place: Place, attempt: Attempt, without: Collection[str] = ()) -> str:
    """Stage what the call has staged, but what somebody else has staged meanwhile stays.

    Returns:
        Why it could not be staged; empty if it is.
    """
    base = attempt.before.head or await empty_tree(context)
    now, theirs = [
        {one.name: one for one in await in_index(context, place, [], base, env)} for env in (attempt.env, {})
    ]
    then = {one.name: one for one in attempt.known}
    entries = [
        now[name] if name in now else then[name].committed
        for name in {**then, **now}
        if name not in without and _content(now.get(name)) != _content(then.get(name)) == _content(theirs.get(name))
    ]
    try:
        await put_back(context, entries)
    except ToolError as error:
        tree = (await keep(context, ["write-tree"], attempt.env)).output.decode().strip()
        return f"{error}\nThen, to stage what is committed, run_command: git read-tree --reset {tree}"
    await keep(context, ["update-index", "-q", "--refresh"], {})
    return ""


def _content(stored: Stored | None) -> tuple[bool, str, str] | None:
    """What is staged of a file, or that it is in conflict; None if it is as in the commit before."""
    return None if stored is None else (stored.status == "U", stored.mode, stored.hash)


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
