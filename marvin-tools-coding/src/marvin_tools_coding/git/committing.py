"""The tool git_commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from marvin_core import ProcessResult, ToolContext, ToolError, ToolResult, call_of, in_thread, output_text, tool

from .adapters import COMMIT_NAMES, GIT_IGNORED, commit_arguments
from .contents import FILE_MODES, Stored, differing, in_commit, in_index, not_formatted, why_differing
from .in_progress import resume
from .place import Place, find
from .restaging import Attempt, begun, clear_index, stage_as_before, staged_as_is, unstaged, within
from .running import ERROR_LIMIT, completed, failure, literal, names, try_read, try_write
from .staging import Staged, is_never_committed, shortened, stage, summary
from .undo import Before, Newest, forget, newest, taken_back, undo_commit

_TEXT_STAGES = ({"1", "2", "3"}, {"2", "3"})
_SAMPLE = 8_000
_NOT_MADE = re.compile(rb"^fatal: cannot lock ref", re.MULTILINE)
"""What git says if somebody else commits in the same moment."""
_ENDED = (
    "The call was cancelled, and with it the hooks. A hook that had put changes in files aside, as lint-staged and "
    "pre-commit do, had time to restore them. If they are not back, its output says where they are, or run_command: "
    "git stash list"
)
_MISSING = "Not in the commit, because a hook or another program has unstaged it: {}."
_MARKER = re.compile(rb"(?:<{7,}|>{7,}) ")  # longer with the attribute conflict-marker-size


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
    take_back: Annotated[str, "For /undo: the newest commit to undo, the index before it, and the merge, if any"] = "",
) -> ToolResult:
    """Stage and commit; hooks run. A ticket in work is named in the message.

    New keys, logs, dumps and node_modules are left out, unless paths names them.
    """
    if not message.strip():
        raise ToolError("The commit message is empty. Describe in one line what changes, and why.")
    place = await find(context, "git commit")
    if take_back:
        return await undo_commit(context, place, *take_back.split(" ", 2))
    scope = [context.paths.locate(path) for path in paths or ()]
    await _refuse_conflicts(context, place)
    if place.below:
        await _refuse_staged_above(context, place, add_all=add_all or bool(scope))
    only = scope or (place.scope if add_all and place.below else [])
    async with begun(context, place, message, only) as attempt:
        _refuse_own(place, attempt.files)
        if add_all or scope:
            attempt = await _staged(context, place, scope, attempt)
        return await _commit(context, place, attempt)


async def _staged(context: ToolContext, place: Place, scope: Sequence[str], attempt: Attempt) -> Attempt:
    """Stage the paths, or everything without paths."""
    staged = Staged()

    async def work() -> None:
        nonlocal staged
        staged = await stage(context, place, scope)

    attempt = await staged_as_is(context, place, attempt, work)
    return attempt.replace(note=staged.note)


async def _commit(context: ToolContext, place: Place, attempt: Attempt) -> ToolResult:
    """Commit what is staged, or the paths if any are given."""
    only = ["--only", "--", *literal(attempt.only)] if attempt.only else []
    stdin = _with_ticket(attempt.message, context.session.ticket).encode("utf-8", "replace")
    told: list[str] = []

    def on_output(text: str) -> None:
        told.append(text)
        context.progress(text)

    try:
        arguments = ["commit", "--file=-", "--cleanup=whitespace", *only]
        result = await try_write(context, arguments, stdin=stdin, on_output=on_output, interrupt=True)
    except asyncio.CancelledError as cancelled:
        result = ProcessResult(exit_code=None, output=b"", stderr="\n".join(told).encode("utf-8", "replace"))
        try:  # the commit may be made, and stays unless it has other content than the files
            return await completed(_finished(context, place, attempt, result))
        except ToolError as error:
            if told:
                raise ToolError(f"{_ENDED}\n{error}") from error
            raise cancelled from error
    return await completed(_finished(context, place, attempt, result))


async def _finished(context: ToolContext, place: Place, attempt: Attempt, result: ProcessResult) -> ToolResult:
    """Complete a commit, once git has ended."""
    made, own = await _made_by(context, attempt, result)
    if not made.commit:
        raise await _failed(context, place, attempt, result)
    missing = await _confirm(context, place, attempt, made)
    try:
        said = await clear_index(context, place, attempt)
    except ToolError as error:  # the commit is made
        said = str(error)
    what = summary(one.summary for one in attempt.files if one.name not in missing)
    notes = (what and f"Files: {what}.", _MISSING.format(shortened(missing)) if missing else None, attempt.note, said)
    told = _committed(result, own, "\n".join(filter(None, notes)), place)
    back = await taken_back(context, place, made, attempt.before, own)
    return told.replace(undo=call_of(git_commit, message=attempt.message, take_back=back)) if back else told


async def _failed(context: ToolContext, place: Place, attempt: Attempt, result: ProcessResult) -> ToolError:
    """The error of a commit that was not made; what was staged before is staged again."""
    if attempt.note and b"did not match any file" in result.stderr:
        why = ToolError("Nothing was committed: one of the paths has no other files than those that are left out.")
    else:
        nothing = _nothing_to_commit(result, place, staged=attempt.note is not None)
        why = nothing or failure(context, "git commit", result)
    what = summary(one.summary for one in attempt.files)
    try:
        said = await stage_as_before(context, place, attempt)
        what = what and f"Files: {what}. The index is as before this call."
    except ToolError as error:  # why there is no commit is to be told as well
        what, said = what and f"Files: {what}.", str(error)
    return ToolError("\n".join(filter(None, (str(why), attempt.note, what, said))))


async def _made_by(context: ToolContext, attempt: Attempt, result: ProcessResult) -> tuple[Newest, str]:
    """The commit that git has made, and its name as git tells it, or in full; without a commit both are empty.

    git may fail afterwards, as when a hook ends it.
    """
    if result.exit_code == 1 or (result.exit_code and _NOT_MADE.search(result.stderr)):
        return Newest(), ""  # the newest commit is somebody else's
    made, own = await newest(context), _told(result)
    if result.exit_code != 0:
        return (made, made.commit) if await _is_own(context, attempt, made) else (Newest(), "")
    if own and not made.commit.startswith(own) and not _is_next(made, attempt.before):
        made = await newest(context, own)  # somebody else has committed since; a hook only amends
    return made, own


def _is_next(made: Newest, before: Before) -> bool:
    return list(made.parents[:1]) == ([before.head] if before.head else [])


async def _is_own(context: ToolContext, attempt: Attempt, made: Newest) -> bool:
    """Whether the newest commit is that of the call: it has its message, to which a hook may have added something."""
    if not made.commit or made.commit == attempt.before.head or not _is_next(made, attempt.before):
        return False
    said = await try_read(context, ["log", "-1", "--no-patch", "--format=%B", made.commit, "--"])
    return attempt.message.strip().splitlines()[0].rstrip() in said.output.decode("utf-8", "replace")


async def _confirm(context: ToolContext, place: Place, attempt: Attempt, made: Newest) -> Sequence[str]:
    """Undo the commit just made if it has other content than was staged and than is in the files.

    Given paths, git reads each file twice, for the commit and for the index. Without them, only a hook may have read
    files, and one that deletes a file from the index may mean it.

    Returns:
        The files that were staged and are not in the commit.
    """
    before = attempt.before
    if made.tree == before.index and attempt.files == within(attempt.known, attempt.only):
        return ()  # the commit has what was staged before the call
    try:
        changed = await in_commit(context, place, made.commit, made.parents)
        wrong = await differing(context, [one for one in changed if attempt.only or one.status != "D"], attempt.files)
        wrong = wrong if attempt.only else await not_formatted(context, changed, attempt.files, wrong)
    except ToolError as error:
        raise ToolError(
            f"The commit {made.commit[:8]} was made, but was not compared with the files. {error}"
        ) from error
    if not wrong:
        missing = {one.name for one in attempt.files} - {one.name for one in changed}
        return sorted(missing) if _is_next(made, before) else ()
    why = why_differing(wrong)
    try:
        await undo_commit(context, place, made.commit, is_own=True)
    except ToolError as error:
        raise ToolError(f"The commit {made.commit[:8]} was made, but {why}\n{error}") from error
    await forget(context, place.git_dir, made.commit)
    with suppress(OSError):
        await in_thread(lambda: resume(place.git_dir, before.files, []))
    try:
        await stage_as_before(context, place, attempt, wrong)
    except ToolError as error:
        raise ToolError(f"The commit was undone: {why}\n{error}") from error
    said = unstaged(attempt, changed, set(wrong))
    raise ToolError("\n".join(filter(None, (f"The commit was undone: {why}", said))))


def _committed(result: ProcessResult, own: str, notes: str, place: Place) -> ToolResult:
    text = output_text(result.output, result.omitted, "git_log and git_diff show more.").strip()
    said = output_text(result.stderr, 0, "")[:ERROR_LIMIT].strip()
    parts = (
        f"Committed: {text or own}",
        notes,
        result.exit_code and f"git itself failed afterwards, with exit code {result.exit_code}.",
        result.exit_code is None and "The call was cancelled once the commit was made.",
        place.next_step(),
        said and f"git and its hooks say:\n{said}",
    )
    return ToolResult(content="\n".join(part for part in parts if part), details={"commit": own})


def _told(result: ProcessResult) -> str:
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
    staged = await in_index(context, place, [place.up])
    above = [one.name for one in staged if not one.name.startswith(place.prefix)]
    if above:
        raise ToolError(
            f"Nothing was committed: {shortened(above)} outside of the working directory is also staged. Change to "
            f"{place.top} with set_working_dir, or pass add_all=true if no merge is in progress."
        )


def _refuse_own(place: Place, staged: Sequence[Stored]) -> None:
    """Refuse Marvin's own files that somebody else staged. What is merged is committed as a whole."""
    own = [one.name for one in staged if one.status == "A" and is_never_committed(one.name)]
    if own and not place.next_step():
        raise ToolError(
            f"Nothing was committed: {shortened(own)} is staged, and Marvin's logs, memories and undo copies are never "
            "committed. To unstage a file and keep it, run_command: git rm --cached FILE"
        )


async def _refuse_conflicts(context: ToolContext, place: Place) -> None:
    """Refuse files whose conflicts may not be resolved, because staging a file marks its conflict as resolved.

    A file with conflict markers is not resolved. Where git wrote no markers, nothing tells whether it is.
    """
    fields = await names(context, "git commit", ["ls-files", "--unmerged", "--full-name", "-z", "--", place.up or "."])
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
            return any(_MARKER.match(line) for line in file)
    except ToolError:  # deleted on one side: there is nothing to mark
        return False
