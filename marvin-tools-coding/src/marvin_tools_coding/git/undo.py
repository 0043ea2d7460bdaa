"""Undo of a commit that git_commit made: the branch moves back by one, files stay as they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from marvin_core import (
    NeverUndone,
    Record,
    ToolContext,
    ToolError,
    ToolResult,
    in_thread,
    open_without_links,
    opened_folder,
)

from .contents import in_index, in_tree, put_back
from .in_progress import Operation, files_in_progress, kept_operation, operation_of, resumed, steps_in_progress
from .place import Place, remove_left
from .running import failure, keep, read, try_read
from .snapshots import stage_conflicts, staged_tree, staged_with_conflicts

_LATEST = 10
"""The number of newest entries of a reflog in which a commit just made is looked for."""


class Before(Record):
    """A repository before a commit: the commit of its branch, and the staged tree with files in conflict as in it."""

    head: str
    index: str
    conflicts: Sequence[str]
    """The entries of files in conflict."""
    files: Mapping[str, bytes]
    """The files of a merge, cherry-pick or revert in progress, by their names in the git directory."""
    has_autostash: bool
    """Whether git changes files as soon as the commit is made: those that it has put aside for the merge."""


class Newest(Record):
    """The commit of the branch; empty if it has none."""

    commit: str = ""
    tree: str = ""
    parents: Sequence[str] = ()


async def newest(context: ToolContext, commit: str = "HEAD") -> Newest:
    """The current commit of the branch, or another one."""
    said = await try_read(context, ["log", "-1", "--no-patch", "--format=%H %T %P", commit, "--"])
    commit, tree, *parents = said.output.decode().split() if said.exit_code == 0 else ("", "")
    return Newest(commit=commit, tree=tree, parents=parents)


async def state_before(context: ToolContext, place: Place) -> Before:
    """The current state of the repository. Raises `ToolError` if another git changes what is staged."""
    said = await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])
    head = said.output.decode().strip() if said.exit_code == 0 else ""
    index, conflicts = await staged_with_conflicts(context, place, "git commit", head, place.up or ".")
    await in_thread(lambda: remove_left(place.git_dir))
    return Before(
        head=head,
        index=index,
        conflicts=conflicts,
        files=await in_thread(lambda: files_in_progress(place.git_dir)),
        has_autostash=await in_thread((place.git_dir / "MERGE_AUTOSTASH").exists),
    )


async def forget(context: ToolContext, git_dir: Path, commit: str) -> None:
    """Delete a commit that was undone from the reflogs, by which `HEAD@{1}` would show it."""
    branch = await try_read(context, ["symbolic-ref", "--quiet", "HEAD"])
    for ref in ("HEAD", *branch.output.decode("utf-8", "surrogateescape").splitlines()):
        listed = await try_read(context, ["log", "-g", f"--max-count={_LATEST}", "--format=%H", ref, "--"])
        entries = listed.output.decode().split() if listed.exit_code == 0 else []
        for number in reversed([number for number, name in enumerate(entries) if name == commit]):
            await keep(context, ["reflog", "delete", "--rewrite", f"{ref}@{{{number}}}"], {})
    if (await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])).exit_code != 0:
        await in_thread(lambda: _forget_first(git_dir, commit.encode()))


def _forget_first(git_dir: Path, commit: bytes) -> None:
    """The same for the first commit: without a commit git refuses to look at the reflog of HEAD."""
    lock = git_dir / "HEAD.lock"  # as git does before it changes that reflog
    with suppress(OSError), lock.open("xb") as file:
        try:
            with open_without_links(git_dir, "logs/HEAD") as log:
                kept = [line for line in log if commit not in line[: line.find(b"\t")]]
            with opened_folder(git_dir, "logs") as folder:
                file.writelines(kept)
                file.flush()
                os.rename(lock, "HEAD", dst_dir_fd=folder)
        finally:
            lock.unlink(missing_ok=True)


async def taken_back(context: ToolContext, place: Place, made: Newest, before: Before, own: str) -> str:
    """What `take_back` takes: the new commit, what was staged before it, and the operation in progress, if any.

    If somebody else has committed in between, what was staged before is not what they left staged.

    Args:
        own: the abbreviated name of the commit, as git has told it.

    Returns:
        Empty if there is nothing to undo, or it cannot be undone.
    """
    if not made.commit or before.has_autostash:
        return ""
    merged = before.files.get("MERGE_HEAD", b"").decode().split()
    if list(made.parents) == [*filter(None, [before.head]), *merged]:
        operation = await kept_operation(context, place, before.files, before.conflicts)
        return "" if operation is None else f"{made.commit} {before.index} {operation}".rstrip()
    is_plain = not before.files and not place.next_step()
    return made.commit if is_plain and own and made.commit.startswith(own) and len(made.parents) == 1 else ""


async def _check_since(context: ToolContext, place: Place, commit: str, head: Newest, kept: Operation) -> None:
    """Refuse to undo a commit if somebody has committed or pushed since, or begun or continued a merge or rebase."""
    if not kept.steps and (step := place.next_step()):  # `git merge --abort` would then discard what was committed
        raise ToolError(f"The commit was not undone. {step}")
    await _check_newest(context, commit, head, is_own=False)
    if await in_thread(lambda: steps_in_progress(place.git_dir)) != kept.steps:
        raise NeverUndone(
            f"The commit was not undone: the operation in which {commit[:8]} was made has gone on since. Create a "
            f"commit that reverts it: git revert {commit[:8]}"
        )


async def _check_newest(context: ToolContext, commit: str, head: Newest, *, is_own: bool) -> None:
    """Refuse to undo a commit that is not the newest one, or has been pushed."""
    why = ""
    if head.commit != commit:
        why = (
            f"{commit[:8]} is no longer the newest commit of this branch. Switch to its branch, or create a commit "
            f"that reverts it: git revert {commit[:8]}"
        )
    elif not head.parents and (await try_read(context, ["symbolic-ref", "--quiet", "HEAD"])).exit_code != 0:
        why = f"{commit[:8]} is the first one, and no branch is checked out."
    elif not is_own and await _is_of_another_branch(context, commit):
        why = f"{commit[:8]} was made on another branch than the current one. Switch to its branch."
    pushed = await read(context, "git branch", ["for-each-ref", "--contains", commit, "--count=1", "refs/remotes"])
    if pushed.output.strip():
        why = f"{commit[:8]} was already pushed. Create a commit that reverts it: git revert {commit[:8]}"
    elif why:
        tips = await try_read(context, ["for-each-ref", "--points-at", commit, "--count=1", "refs/heads"])
        if tips.output.strip():  # it can be undone once that branch is checked out
            raise ToolError(f"The commit was not undone: {why}")
    if why:
        raise NeverUndone(f"The commit was not undone: {why}")


async def _is_of_another_branch(context: ToolContext, commit: str) -> bool:
    """Whether the commit was made on another branch, whose newest one it is, than the current one, if any."""
    said = await try_read(context, ["symbolic-ref", "--quiet", "HEAD"])
    current = said.output.decode("utf-8", "surrogateescape").strip()
    listed = ["for-each-ref", "--points-at", commit, "--format=%(refname)", "refs/heads"]
    tips = (await try_read(context, listed)).output.decode("utf-8", "surrogateescape").splitlines()
    return any([await _is_made_on(context, branch, commit) for branch in tips if branch != current])


async def _is_made_on(context: ToolContext, branch: str, commit: str) -> bool:
    """Whether the branch has the commit since it was made, and not by other means, such as a merge."""
    log = await try_read(context, ["log", "-g", f"--max-count={_LATEST}", "--format=%H %gs", branch, "--"])
    entries = log.output.decode("utf-8", "replace").splitlines()
    ways = [way for name, _, way in (entry.partition(" ") for entry in entries) if name == commit]
    return bool(ways) and ways[-1].startswith("commit")


async def undo_commit(
    context: ToolContext, place: Place, commit: str, index: str = "", operation: str = "", *, is_own: bool = False
) -> ToolResult:
    """Move the branch to the commit before, and stage what was staged before of all that was not staged since.

    Args:
        operation: what `kept_operation` has kept.
        is_own: whether the call that undoes it has made it.

    Raises:
        NeverUndone: the commit is no longer the newest one of a branch, or was pushed, or a rebase has gone on since.
    """
    head = await newest(context)
    kept = await operation_of(context, operation)
    if is_own:
        await _check_newest(context, commit, head, is_own=True)
    else:
        await _check_since(context, place, commit, head, kept)
    if index and not is_own:
        await staged_tree(context, "Taking back the commit")  # another git may change it right now
    async with resumed(place.git_dir, kept.files):
        await _move_back(context, commit, head)
    said = f"Commit {commit[:8]} was undone; the files were not changed. git_status shows them."
    if index:
        try:
            since = {one.name for one in await in_index(context, place, [], commit)}
            changed = await in_tree(context, place, head.tree, index)
            await put_back(context, [one.committed for one in changed if one.name not in since])
            await stage_conflicts(context, kept.conflicts, since)
        except ToolError as error:
            said += f"\n{error}"
        await keep(context, ["update-index", "-q", "--refresh"], {})
    return ToolResult(content="\n".join(filter(None, (said, await _holders(context, commit), place.next_step()))))


async def _move_back(context: ToolContext, commit: str, head: Newest) -> None:
    back = ["HEAD", head.parents[0], commit] if head.parents else ["-d", "HEAD", commit]
    moved = await keep(context, ["update-ref", "-m", "git_commit: undone", *back], {})
    if moved.exit_code != 0:
        raise failure(context, "Taking back the commit", moved)


async def _holders(context: ToolContext, commit: str) -> str:
    """Which branches and tags still have a commit; empty if none has."""
    held = ["for-each-ref", "--contains", commit, "--count=5", "--format=%(refname:short)", "refs/heads", "refs/tags"]
    others = (await try_read(context, held)).output.decode("utf-8", "replace").split()
    return f"These still have it: {', '.join(others)}." if others else ""
