"""Undo of a commit that git_commit made: the branch moves back by one, files stay as they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
from .place import Place, remove_left
from .running import failure, is_locked, keep, keep_unlocked, read, try_read

_LATEST = 10
"""The number of newest entries of a reflog in which a commit just made is looked for."""
_IN_PROGRESS = (
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"),
    *("sequencer/head", "sequencer/todo", "sequencer/opts", "sequencer/abort-safety"),
)
"""The files of an operation in progress that git removes once its commit, or the last of several, is made."""


class Before(Record):
    """A repository before a commit: the commit of its branch, and the staged tree, empty if unknown."""

    head: str
    index: str
    is_plain: bool
    files: tuple[tuple[str, bytes], ...]
    """The names and contents of files of a merge, cherry-pick or revert in progress."""


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


async def staged_tree(context: ToolContext, what: str) -> str:
    """The tree of what is staged; empty during conflicts. Raises `ToolError` if another git changes it right now."""
    result = await keep_unlocked(context, ["write-tree"])
    if is_locked(result):
        raise failure(context, what, result)
    return result.output.decode().strip() if result.exit_code == 0 else ""


async def state_before(context: ToolContext, place: Place) -> Before:
    """The current state of the repository. Raises `ToolError` if another git changes what is staged."""
    head = await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])
    index = await staged_tree(context, "git commit")
    await in_thread(lambda: remove_left(place.git_dir))
    is_plain = not place.next_step()  # in a merge or a rebase, moving the branch back would not be enough
    return Before(
        head=head.output.decode().strip() if head.exit_code == 0 else "",
        index=index,
        is_plain=is_plain,
        files=() if is_plain else await in_thread(lambda: _in_progress(place.git_dir)),
    )


def _in_progress(git_dir: Path) -> tuple[tuple[str, bytes], ...]:
    found = []
    for name in _IN_PROGRESS:
        with suppress(OSError), open_without_links(git_dir, name) as file:
            found.append((name, file.read()))
    return tuple(found)


def resume(git_dir: Path, before: Before) -> None:
    """Have a merge, cherry-pick or revert be in progress again, whose commit was undone."""
    for name, content in before.files:
        with suppress(OSError):
            (git_dir / name).parent.mkdir(exist_ok=True)
            descriptor = os.open(git_dir / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
            with open(descriptor, "wb") as file:
                file.write(content)


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


def taken_back(made: Newest, before: Before, own: str) -> str:
    """The new commit, and what was staged before it, as `take_back` takes it; empty if there is nothing to undo.

    If somebody else has committed in between, what was staged before is not what they left staged.

    Args:
        own: the abbreviated name of the commit, as git has told it.
    """
    if not made.commit or not before.is_plain:
        return ""
    if made.parents == ([before.head] if before.head else []):
        return f"{made.commit} {before.index}".rstrip()
    return made.commit if own and made.commit.startswith(own) and len(made.parents) == 1 else ""


async def _check_newest(context: ToolContext, commit: str, head: Newest, *, is_own: bool) -> None:
    """Refuse to undo a commit that is not the newest one, or has been pushed."""
    why = ""
    if head.commit != commit or (len(head.parents) > 1 and not is_own):
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
    """Whether the current branch has the commit by other means, such as a merge, and another branch has it, too."""
    said = await try_read(context, ["symbolic-ref", "--quiet", "HEAD"])
    branch = said.output.decode("utf-8", "surrogateescape").strip()
    tips = await try_read(context, ["for-each-ref", "--points-at", commit, "--count=2", "refs/heads"])
    if not branch or len(tips.output.splitlines()) < 2:
        return False
    log = await try_read(context, ["log", "-g", f"--max-count={_LATEST}", "--format=%H %gs", branch, "--"])
    entries = log.output.decode("utf-8", "replace").splitlines()
    ways = [way for name, _, way in (entry.partition(" ") for entry in entries) if name == commit]
    return bool(ways) and not ways[-1].startswith("commit")


async def undo_commit(
    context: ToolContext, place: Place, commit: str, index: str, *, is_own: bool = False
) -> ToolResult:
    """Move the branch to the commit before, and stage what was staged before of all that was not staged since.

    Args:
        is_own: whether the call that undoes it has made it; then it may be a merge.

    Raises:
        NeverUndone: the commit is no longer the newest one of a branch, or was pushed.
    """
    head = await newest(context)
    await _check_newest(context, commit, head, is_own=is_own)
    if index and not is_own:
        await staged_tree(context, "Taking back the commit")  # another git may change it right now
    move = ["update-ref", "-m", "git_commit: undone"]
    back = ["HEAD", head.parents[0], commit] if head.parents else ["-d", "HEAD", commit]
    moved = await keep(context, [*move, *back], {})
    if moved.exit_code != 0:
        raise failure(context, "Taking back the commit", moved)
    said = f"Commit {commit[:8]} was undone; the files were not changed. git_status shows them."
    if index:
        try:
            since = {one.name for one in await in_index(context, place, [], commit)}
            changed = await in_tree(context, place, head.tree, index)
            await put_back(context, [one.committed for one in changed if one.name not in since])
        except ToolError as error:
            said += f"\n{error}"
        await keep(context, ["update-index", "-q", "--refresh"], {})
    held = ["for-each-ref", "--contains", commit, "--count=5", "--format=%(refname:short)", "refs/heads", "refs/tags"]
    others = await try_read(context, held)
    if names := others.output.decode("utf-8", "replace").split():
        said += f"\nThese still have it: {', '.join(names)}."
    return ToolResult(content=said)
