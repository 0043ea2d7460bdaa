"""Undo of a commit that git_commit made: the branch moves back by one, files stay as they are."""

from __future__ import annotations

from marvin_core import Record, ToolContext, ToolError, ToolResult

from .place import Place
from .running import failure, keep, read, try_read


class Before(Record):
    """A repository before a commit: the commit of its branch, and the staged tree, empty if unknown."""

    head: str
    index: str
    is_plain: bool


async def state_before(context: ToolContext, place: Place) -> Before:
    """The current state of the repository."""
    head = await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])
    index = await keep(context, ["write-tree"], {})
    return Before(
        head=head.output.decode().strip() if head.exit_code == 0 else "",
        index=index.output.decode().strip() if index.exit_code == 0 else "",
        is_plain=not place.next_step(),  # in a merge or a rebase, moving the branch back would not be enough
    )


async def made_since(context: ToolContext, before: Before) -> str:
    """The new commit, and what was staged before it, as `take_back` takes it; empty if there is nothing to undo."""
    said = await try_read(context, ["rev-list", "--parents", "--max-count=1", "HEAD"])
    commit, *parents = said.output.decode().split() or [""]
    if said.exit_code != 0 or not before.is_plain or parents != ([before.head] if before.head else []):
        return ""
    return f"{commit} {before.index}".rstrip()


async def undo_commit(context: ToolContext, commit: str, index: str) -> ToolResult:
    """Move the branch to the commit before, and restore the index if nothing was staged since.

    Raises:
        ToolError: the commit is no longer the newest one, or was pushed.
    """
    said = await try_read(context, ["rev-list", "--parents", "--max-count=1", "HEAD"])
    head, *parents = said.output.decode().split() or [""]
    if head != commit or len(parents) > 1:
        raise ToolError(
            f"The commit was not undone: {commit[:8]} is no longer the newest commit of this branch. Switch to its "
            f"branch, or create a commit that reverts it: git revert {commit[:8]}"
        )
    pushed = await read(context, "git branch", ["for-each-ref", "--contains", commit, "--count=1", "refs/remotes"])
    if pushed.output.strip():
        raise ToolError(
            f"The commit was not undone: {commit[:8]} was already pushed. Create a commit that reverts it: git "
            f"revert {commit[:8]}"
        )
    staged = await keep(context, ["write-tree"], {})
    tree = await read(context, "git show", ["rev-parse", f"{commit}^{{tree}}"])
    move = ["update-ref", "-m", "git_commit: undone"]
    moved = await keep(context, [*move, "HEAD", parents[0], commit] if parents else [*move, "-d", "HEAD", commit], {})
    if moved.exit_code != 0:
        raise failure(context, "Taking back the commit", moved)
    if index and staged.output == tree.output:
        await keep(context, ["read-tree", index], {})
        await keep(context, ["update-index", "-q", "--refresh"], {})
    return ToolResult(content=f"Commit {commit[:8]} was undone; the files were not changed. git_status shows them.")
