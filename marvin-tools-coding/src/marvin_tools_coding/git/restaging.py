"""Puts back what was staged before a call of git_commit: of a file staged in part, the index has the only copy."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress

from marvin_core import Record, ToolContext, ToolError

from .contents import FILE_MODES, SUBMODULE, Stored, differing, in_index, put_back, why_differing
from .place import Place
from .running import failure, keep_unlocked, names
from .staging import shortened
from .undo import Before, newest

_TRIES = 3
_AT_ONCE = 500
"""The number of paths in one command line."""
_COMMANDS = 5
"""How many commands an answer lists."""
_CAN_BE_STAGED = (*FILE_MODES, "120000", SUBMODULE)


class Attempt(Record):
    """What a call of git_commit found staged, and what it has staged itself."""

    before: Before
    only: Sequence[str]
    """The paths that git is given, empty if it commits what is staged."""
    known: Sequence[Stored]
    """What was staged before the call, compared with the commit of the branch."""
    files: Sequence[Stored]
    """What is to be committed."""

    @property
    def checked(self) -> Sequence[Stored]:
        """What the call has staged, also where that is what the commit of the branch has."""
        return [*self.files, *_as_committed(self.known, self.files)]


def _as_committed(stored: Iterable[Stored], others: Iterable[Stored]) -> Sequence[Stored]:
    """Those files that the others do not name, as they are in the commit."""
    named = {one.name for one in others}
    return [one.committed for one in stored if one.name not in named]


async def staged_as_is(
    context: ToolContext, place: Place, before: Before, only: Sequence[str], stage: Callable[[], Awaitable[None]]
) -> Attempt:
    """Stage, and return what is staged, once it is what the files contain.

    What was staged before is not compared: it may differ from the files.

    Raises:
        ToolError: it never was; what was staged before is staged again.
    """
    known = await in_index(context, place, place.scope, before.head)
    attempt = Attempt(before=before, only=only, known=known, files=within(known, only))
    other: Sequence[str] = ()
    try:
        for _ in range(_TRIES):
            await stage()
            staged = within(await in_index(context, place, place.scope, before.head), only)
            other = await differing(context, staged, known)
            if not other:
                return attempt.replace(files=staged)
        raise ToolError(f"Nothing was committed: {why_differing(other)}")
    except ToolError as error:
        try:
            await stage_as_before(context, place, attempt, everything=True)
        except ToolError as failed:
            raise ToolError(f"{error}\n{failed}") from error
        raise
    except asyncio.CancelledError:
        with suppress(ToolError):
            await stage_as_before(context, place, attempt, everything=True)
        raise


async def stage_as_before(
    context: ToolContext,
    place: Place,
    attempt: Attempt,
    *,
    wrong: Sequence[str] = (),
    head: str = "",
    everything: bool = False,
) -> str:
    """Stage what was staged before a call of git_commit that has failed.

    What somebody else has staged meanwhile stays, if the files have it as well: nothing of it is lost. After conflicts,
    what was merged stays staged: some of it may be ignored.

    Args:
        wrong: files whose staged content is known not to be that of the files.
        head: the commit of the branch, if somebody else has committed during the call; then nothing is known of what
            was staged before.
        everything: whether all that is staged in addition is of the call.

    Returns:
        What is not staged any more although the call has not staged it; empty if there is none.

    Raises:
        ToolError: it could not be staged; the text says how to.
    """
    before, bad = attempt.before, set(wrong)
    base = () if head else attempt.known if before.index or everything else attempt.files
    changed = await _changed_since(context, place, attempt, base, (head, bad))
    other = set(await differing(context, [one for one, _ in changed], attempt.checked))
    bad |= other
    ours = {one.name for one in (*attempt.known, *attempt.files) if before.index and not head}
    ours = {one.name for one, _ in changed} if everything else ours
    ours -= {one.name for one in attempt.known if one.status == "U"}
    back = [then for one, then in changed if one.name in ours or one.path in bad]
    try:
        await put_back(context, back)
        if not before.index:
            await _unresolve(context, [*bad])
    except ToolError as error:
        said = f" To stage what was staged before, run_command: git read-tree --reset {before.index}"
        raise ToolError(f"{error}{said if before.index else ''}") from error
    return unstaged(attempt, [one for one, _ in changed], other)


async def _changed_since(
    context: ToolContext, place: Place, attempt: Attempt, base: Iterable[Stored], given: tuple[str, set[str]]
) -> Sequence[tuple[Stored, Stored]]:
    """What the call, a hook or somebody else has staged since, as in `_changed`.

    Args:
        given: `head` and `wrong` of `stage_as_before`.
    """
    head, wrong = given
    now = await in_index(context, place, place.scope, head or attempt.before.head)
    changed = _changed(base, now)
    inside = {one.name for one in within([one for one, _ in changed], attempt.only)}
    if not head and (await newest(context)).commit != attempt.before.head:
        # Somebody else has committed since: what is staged as in that commit is theirs.
        inside &= {one.name for one in await in_index(context, place, place.scope)}
    return [pair for pair in changed if pair[0].name in inside or pair[0].path in wrong]


def within(stored: Iterable[Stored], only: Sequence[str]) -> Sequence[Stored]:
    """Those of the files that are below the paths; all without paths."""
    folders, named = tuple(f"{path}/" for path in only), set(only)
    all_here = not only or "." in named
    return [one for one in stored if all_here or one.path in named or one.path.startswith(folders)]


def _changed(base: Iterable[Stored], now: Iterable[Stored]) -> Sequence[tuple[Stored, Stored]]:
    """The files of the working directory that are staged otherwise than in `base`, each as it is and as it was.

    Of a conflict, as it was means as in the commit of the branch.
    """
    then, current = ({one.name: one for one in stored if one.path} for stored in (base, now))
    was = {name: then.get(name, one.committed) for name, one in current.items() if one.status != "U"}
    pairs = [(current[name], one if one.status != "U" else one.committed) for name, one in was.items()]
    pairs += [(one.committed, one) for name, one in then.items() if name not in current and one.status != "U"]
    return [(one, was) for one, was in pairs if (one.mode, one.hash) != (was.mode, was.hash)]


async def clear_index(context: ToolContext, place: Place, attempt: Attempt) -> str:
    """Stage as in the newest commit what is staged with another content than it had and the files have.

    A commit of some paths may have read it, or a hook. Returns how to stage it again: it may be from somebody else.
    """
    now = await in_index(context, place, attempt.only)
    other = set(await differing(context, now, attempt.files))
    await put_back(context, [one.committed for one in now if one.path in other])
    return unstaged(attempt, now, other)


async def _unresolve(context: ToolContext, paths: Sequence[str]) -> None:
    """Have files be in conflict again whose conflicts were resolved: their resolution is in the files only."""
    entries: list[str] = []
    for start in range(0, len(paths), _AT_ONCE):
        asked = ["ls-files", "--resolve-undo", "--full-name", "-z", "--", *paths[start : start + _AT_ONCE]]
        entries += await names(context, "git ls-files", asked)
    if not entries:
        return
    gone = {f"0 {'0' * len(entry.split(' ')[1])}\t{entry.partition(chr(9))[2]}": None for entry in entries}
    stdin = "".join(f"{entry}\0" for entry in (*gone, *entries)).encode("utf-8", "surrogateescape")
    result = await keep_unlocked(context, ["update-index", "-z", "--index-info"], stdin)
    if result.exit_code != 0:
        raise failure(context, "Having the files be in conflict again", result)


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
