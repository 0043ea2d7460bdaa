"""The tool git_commit."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from marvin_core import ProcessResult, ToolContext, ToolError, ToolResult, call_of, in_thread, output_text, tool

from .adapters import COMMIT_NAMES, GIT_IGNORED, commit_arguments
from .contents import (
    FILE_MODES,
    Stored,
    differing,
    in_commit,
    in_index,
    staged_as_is,
    unresolve,
    unstage,
    why_differing,
)
from .place import Place, find
from .running import ERROR_LIMIT, failure, names, try_write
from .staging import Staged, shortened, stage, summary
from .undo import Before, Newest, forget, newest, resume, state_before, taken_back, undo_commit

_TEXT_STAGES = ({"1", "2", "3"}, {"2", "3"})
_SAMPLE = 8_000
_COMMANDS = 5
"""How many commands an answer lists."""


@tool(
    access=["write", "exec"],
    group="git",
    requires=["program:git"],
    aliases=COMMIT_NAMES,
    ignores=GIT_IGNORED,
    adapt=commit_arguments,
    unlisted=["take_back"],
)
async def git_commit(
    context: ToolContext,
    message: Annotated[str, "What changes, and why"],
    add_all: Annotated[bool, "Stage all changes here first; false: commit only what is staged"] = True,
    paths: Annotated[list[str] | None, "Commit only these files or folders, staged or not"] = None,
    take_back: Annotated[str, "For /undo: the newest commit to undo, and after a space the index before it"] = "",
) -> ToolResult:
    """Stage and commit; hooks run. A ticket in work is named in the message.

    New keys, logs, dumps and node_modules are left out, unless paths names them.
    """
    if not message.strip():
        raise ToolError("The commit message is empty. Describe in one line what changes, and why.")
    place = await find(context, "git commit")
    if take_back:
        return await _undone(context, place, take_back)
    before = await state_before(context, place)
    scope = [context.paths.locate(path) for path in paths or ()]
    await _refuse_conflicts(context, place)
    if place.below:
        await _refuse_staged_above(context, place, add_all=add_all or bool(scope))
    only = scope or (place.scope if add_all and place.below else [])
    staged, files = await _staged(context, place, scope, before, add_all=add_all)
    what = summary(one.summary for one in files)
    result = await _commit(context, place, only, (before, files), message)
    if result.exit_code != 0:
        said = await _stage_as_before(context, place, only, (before, files))
        error = _nothing_to_commit(result, place, staged=add_all or bool(scope)) or failure(
            context, "git commit", result
        )
        what = what and (f"Files: {what}. They are staged as before this call." if before.index else f"Staged: {what}.")
        raise ToolError("\n".join(filter(None, (str(error), staged.note, what, said))))
    made, own = await newest(context), _made(result)
    if own and not made.commit.startswith(own) and list(made.parents[:1]) != ([before.head] if before.head else []):
        made = await newest(context, own)  # somebody else has committed since; a hook only amends
    said = await _confirm(context, place, only, (before, files), made)
    told = _committed(result, what, "\n".join(filter(None, (staged.note, said))), place)
    back = taken_back(made, before, own)
    return told.replace(undo=call_of(git_commit, message=message, take_back=back)) if back else told


async def _undone(context: ToolContext, place: Place, take_back: str) -> ToolResult:
    if step := place.next_step():  # `git merge --abort` would then discard what was committed
        raise ToolError(f"The commit was not undone. {step}")
    return await undo_commit(context, *take_back.partition(" ")[::2])


async def _commit(
    context: ToolContext, place: Place, scope: Sequence[str], staged: tuple[Before, Sequence[Stored]], message: str
) -> ProcessResult:
    """Commit what is staged, or the paths if any are given."""
    arguments = ["commit", "--file=-", "--cleanup=whitespace", *(["--only", "--", *scope] if scope else [])]
    stdin = _with_ticket(message, context.session.ticket).encode("utf-8", "replace")
    try:
        return await try_write(context, arguments, stdin=stdin)
    except asyncio.CancelledError:
        with suppress(ToolError):
            if (await newest(context)).commit == staged[0].head:
                await _stage_as_before(context, place, scope, staged)
        raise


async def _staged(
    context: ToolContext, place: Place, scope: Sequence[str], before: Before, *, add_all: bool
) -> tuple[Staged, Sequence[Stored]]:
    """Stage the paths, or everything with `add_all`; returns what was left out, and what is to be committed."""
    if not scope and not add_all:
        return Staged(), await in_index(context, place, place.scope)
    staged = Staged()

    async def work() -> None:
        nonlocal staged
        staged = await stage(context, place, scope)

    files = await staged_as_is(context, place, scope or place.scope, before.index, work)
    return staged, files


async def _confirm(
    context: ToolContext,
    place: Place,
    scope: Sequence[str],
    staged: tuple[Before, Sequence[Stored]],
    made: Newest,
) -> str:
    """Undo the commit just made if it has other content than was staged and than is in the files.

    Given paths, git reads each file twice, for the commit and for the index. Without them, only a hook may have read
    files, and one that deletes a file from the index may mean it.

    Returns:
        What is not staged any more; empty if all of it is.

    Args:
        staged: the state before the call, and what was staged for the commit.
    """
    before, files = staged
    changed: Sequence[Stored] = ()
    wrong: Sequence[str] = ()
    if made.tree != before.index:  # otherwise the commit has what was staged before the call
        changed = await in_commit(context, place, made.commit, made.parents)
        wrong = await differing(context, [one for one in changed if scope or one.status != "D"], files)
    if not wrong:
        return await _clear_index(context, place, scope, files)
    why = why_differing(wrong)
    index = before.index if list(made.parents[:1]) == ([before.head] if before.head else []) else ""
    try:
        await undo_commit(context, made.commit, index, is_own=True)
    except ToolError as error:
        raise ToolError(f"The commit {made.commit[:8]} was made, but {why}\n{error}") from error
    await forget(context, place.git_dir, made.commit)
    await in_thread(lambda: resume(place.git_dir, before))
    # Without an index before, as after conflicts, what was merged stays staged: some of it may be ignored.
    staged_here = [one.path for one in files if one.path] if index else []
    await unstage(context, list({*wrong, *staged_here}), index)
    if not index:
        await unresolve(context, wrong)
    said = _unstaged(changed, wrong) if before.index else ""
    raise ToolError("\n".join(filter(None, (f"The commit was undone: {why}", said))))


async def _clear_index(context: ToolContext, place: Place, scope: Sequence[str], staged: Sequence[Stored]) -> str:
    """Stage as in the newest commit what is staged with another content than it had and the files have.

    A commit of some paths may have read it, or a hook. Returns how to stage it again: it may be from somebody else.
    """
    now = await in_index(context, place, scope)
    other = await differing(context, now, staged)
    await unstage(context, other)
    return _unstaged(now, other)


async def _stage_as_before(
    context: ToolContext, place: Place, scope: Sequence[str], staged: tuple[Before, Sequence[Stored]]
) -> str:
    """The same once a commit has failed, but as before the call, together with what the call has staged."""
    before, files = staged
    now = await in_index(context, place, scope or place.scope)
    other = await differing(context, now, files)
    known = {(one.name, one.hash) for one in files} if before.index else set()
    ours = [one.path for one in now if one.path and (one.name, one.hash) in known]
    try:
        await unstage(context, [*other, *ours], before.index)
    except ToolError as error:  # why there is no commit is to be told as well
        return str(error)
    return _unstaged(now, other)


def _unstaged(stored: Sequence[Stored], paths: Sequence[str]) -> str:
    """How to stage again what of some paths was staged; empty without paths."""
    told = [
        f"git update-index --add --cacheinfo {one.mode},{one.hash},{shlex.quote(one.name)}"
        for one in stored
        if one.path in paths and one.status != "D"
    ]
    if not told:
        return ""
    rest = f" ({len(told) - _COMMANDS:,} more are not listed)" if len(told) > _COMMANDS else ""
    return (
        "This was staged during the call, with other content than the files have, and is not staged any more. If the "
        f"user staged it on purpose, it can be staged again{rest}: {'; '.join(told[:_COMMANDS])}"
    )


def _committed(result: ProcessResult, what: str, notes: str, place: Place) -> ToolResult:
    text = output_text(result.output, result.omitted, "git_log and git_diff show more.").strip()
    said = output_text(result.stderr, 0, "")[:ERROR_LIMIT].strip()
    parts = (
        f"Committed: {text}",
        what and f"Files: {what}.",
        notes,
        place.next_step(),
        said and f"git and its hooks say:\n{said}",
    )
    return ToolResult(content="\n".join(filter(None, parts)), details={"commit": _made(result)})


def _made(result: ProcessResult) -> str:
    """The abbreviated name of the commit that git says it has made; empty if it does not."""
    found = re.match(r"\[.*?([0-9a-f]{4,40})\] ", result.output.decode("utf-8", "replace").lstrip())
    return found[1] if found else ""


def _nothing_to_commit(result: ProcessResult, place: Place, *, staged: bool) -> ToolError | None:
    said = result.output.decode("utf-8", "replace")
    if not re.search("^(nothing to commit|nothing added|no changes added)", said, re.MULTILINE):
        return None
    if staged:
        rest = f" {place.unseen}." if place.unseen else ""
        return ToolError(f"Nothing to commit: there are no changes. git_log shows the existing commits.{rest}")
    return ToolError("Nothing to commit: nothing is staged. Pass paths, or add_all=true.")


def _with_ticket(message: str, ticket: str) -> str:
    """The message, with the ticket's id as a trailer unless the message names the ticket."""
    message = message.strip()
    if not ticket or re.search(rf"(?<![\w-]){re.escape(ticket)}(?![\w-])", message):
        return message + "\n"
    last = message.rpartition("\n\n")[2] if "\n\n" in message else ""
    is_trailer = bool(last) and all(re.match(r"[A-Za-z][A-Za-z-]*: \S", line) for line in last.splitlines())
    return f"{message}\n{'' if is_trailer else chr(10)}Ticket: {ticket}\n"


async def _refuse_staged_above(context: ToolContext, place: Place, *, add_all: bool) -> None:
    """Refuse to commit what is staged outside of the working directory."""
    if add_all and not place.next_step():
        return  # the commit names the folder, and git leaves out the rest
    staged = await in_index(context, place, [_up(place)])
    above = [one.name for one in staged if not one.name.startswith(place.prefix)]
    if above:
        raise ToolError(
            f"Nothing was committed: {shortened(above)} outside of the working directory is also staged. Change to "
            f"{place.top} with set_working_dir, or pass add_all=true if no merge is in progress."
        )


def _up(place: Place) -> str:
    return "../" * place.prefix.count("/")


async def _refuse_conflicts(context: ToolContext, place: Place) -> None:
    """Refuse files whose conflicts may not be resolved, because staging a file marks its conflict as resolved.

    A file with conflict markers is not resolved. Where git wrote no markers, nothing tells whether it is.
    """
    fields = await names(
        context, "git commit", ["ls-files", "--unmerged", "--full-name", "-z", "--", _up(place) or "."]
    )
    conflicts: dict[str, dict[str, str]] = {}
    above: set[str] = set()
    for field in fields:
        entry, _, name = field.partition("\t")
        mode, _, number = entry.split(" ")
        if name.startswith(place.prefix):
            conflicts.setdefault(name, {})[number] = mode
        else:
            above.add(name)
    if above:
        raise ToolError(
            "Nothing was committed: there are conflicts outside of the working directory, in "
            f"{shortened(sorted(above))}. Change to {place.top} with set_working_dir, and resolve them there."
        )
    await in_thread(lambda: _refuse_undecided(context, place, conflicts))


def _refuse_undecided(context: ToolContext, place: Place, conflicts: Mapping[str, Mapping[str, str]]) -> None:
    """Check the files with conflicts; `conflicts` has the stages of each, with their modes."""
    marked = sorted(name for name in conflicts if _has_markers(context, place, name))
    if marked:
        raise ToolError(
            f"Nothing was committed: there are conflict markers (<<<<<<<) in {', '.join(marked)}. Resolve each "
            "conflict, then commit again."
        )
    bare = sorted(
        f"{name} ({_conflict(stages)})"
        for name, stages in conflicts.items()
        if _no_markers(context, place, name, stages)
    )
    if bare:
        raise ToolError(
            f"Nothing was committed: there are conflicts without markers in {', '.join(bare)}. Resolve each with "
            "run_command: git add FILE keeps the current file, git rm FILE deletes it, git checkout --ours FILE or "
            "--theirs FILE takes one side. Then commit again."
        )


def _conflict(stages: Mapping[str, str]) -> str:
    if "2" not in stages and "3" not in stages:
        return "deleted or renamed in both"
    if "3" not in stages:
        return "changed here, deleted there" if "1" in stages else "added here"
    if "2" not in stages:
        return "deleted here, changed there" if "1" in stages else "added there"
    return "not a text file"


def _no_markers(context: ToolContext, place: Place, name: str, stages: Mapping[str, str]) -> bool:
    if set(stages) not in _TEXT_STAGES or any(mode not in FILE_MODES for mode in stages.values()):
        return True
    try:
        with context.paths.open(name.removeprefix(place.prefix)) as file:
            return b"\0" in file.read(_SAMPLE)
    except ToolError:
        return True


def _has_markers(context: ToolContext, place: Place, name: str) -> bool:
    try:
        with context.paths.open(name.removeprefix(place.prefix)) as file:
            return any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in file)
    except ToolError:  # deleted on one side: there is nothing to mark
        return False
