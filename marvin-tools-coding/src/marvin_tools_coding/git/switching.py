"""The tool git_checkout, and the snapshot that it makes before it discards changes."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from functools import partial
from typing import Annotated

from marvin_core import (
    NeverUndone,
    ProcessResult,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    in_thread,
    is_there,
    output_text,
    tool,
)

from .adapters import CHECKOUT_NAMES, GIT_IGNORED, checkout_arguments
from .contents import (
    changed_since,
    differing,
    in_index,
    in_tree,
    put_back,
    unchecked,
)
from .inspecting import changes_since
from .place import Place, find
from .replacing import check_restore, check_switch, commit_of, has_path, replaced_by
from .restaging import within
from .running import (
    LIST_LIMIT,
    change_files,
    completed,
    hash_of,
    literal,
    names,
    read,
    try_read,
    write,
)
from .snapshots import SNAPSHOTS, conflicts_in, saved, stage_conflicts
from .staging import shortened
from .undo import newest

_CANCELLED = "The call was cancelled."


@tool(
    access=["write", "exec"],
    group="git",
    requires=["program:git"],
    aliases=CHECKOUT_NAMES,
    ignores=GIT_IGNORED,
    adapt=checkout_arguments,
    unlisted=["expected"],
)
async def git_checkout(
    context: ToolContext,
    target: Annotated[str, "Branch, commit or tag; '-' is the previous branch"],
    create_branch: Annotated[bool, "Create target as a new branch here; uncommitted changes are kept"] = False,
    path: Annotated[str | None, "Only restore this file or folder from target"] = None,
    expected: Annotated[str, "For /undo: only from this branch or commit; with path, only if unchanged since it"] = "",
) -> ToolResult:
    """Switch branch or commit, or restore a file. Switching never discards changes.

    What a restored file loses is kept in a snapshot, which the answer names.
    """
    place = await find(context, "git checkout")
    if path is not None and create_branch:
        raise ToolError("create_branch and path cannot be combined: create the branch first, then restore the file.")
    if path is not None:
        return await _restored(context, place, target, path, expected)
    before = await current(context)
    await _check_switch(context, target, expected, before)
    is_error = False
    try:
        text = await (_created(context, place, target) if create_branch else _switched(context, place, target))
    except (ToolError, asyncio.CancelledError) as error:  # such as that of a hook, once the branch was switched
        text, is_error = str(error) or _CANCELLED, True
        if await completed(current(context)) == before:
            if expected and isinstance(error, ToolError):
                raise ToolError(f"{text}\n{await _changed_in_the_way(context, place, target)}".rstrip()) from error
            raise
    after = await current(context)
    back, here = (before[0] if _can_be_named(before[0]) else "-"), (after[0] if _can_be_named(after[0]) else after[-1])
    if is_error:
        text += f"\n{here} is checked out now nevertheless. To switch back: git_checkout(target={back!r})"
        # An undo that is done must not be reported as failed: it would be offered again, before all earlier ones.
        is_error = not (expected and target in ("-", *after))
    here = here if back == before[0] else f"{here} {_mark(before[0])}"
    undo = call_of(git_checkout, target=back, expected=here) if before[1:] and before[0] != after[0] else None
    return ToolResult(content=text, undo=undo, is_error=is_error)


async def _changed_in_the_way(context: ToolContext, place: Place, target: str) -> str:
    """The diff of what somebody has changed since the checkout, in the files that switching back would change."""
    here, there = await commit_of(context, "HEAD"), await commit_of(context, target)
    changed = await differing(context, await in_tree(context, place, here, there), grows=False)
    return await changes_since(context, place, here, changed) if changed else ""


def _can_be_named(branch: str) -> bool:
    """Whether a call and its record can have the name of a branch, as they cannot if it is no UTF-8."""
    return branch.encode("utf-8", "replace").decode() == branch


def _mark(branch: str) -> str:
    """What tells a branch from others if it cannot be named."""
    return hashlib.sha256(branch.encode("utf-8", "surrogateescape")).hexdigest()[:20]


async def _check_switch(context: ToolContext, target: str, expected: str, now: tuple[str, ...]) -> None:
    """Refuse to switch if another branch is current than expected, or `-` leads to another one than before."""
    here, _, mark = expected.partition(" ")
    if not expected:
        return
    for name in (here, target):
        await _check_is_left(context, name)
    if here not in now:
        raise ToolError(
            f"Nothing was switched: {now[0] or 'a new branch'} is the current branch now, not {here}. Switch by hand, "
            "without expected."
        )
    if mark and target == "-":
        said = await try_read(context, ["rev-parse", "--symbolic-full-name", "@{-1}"])
        branch = said.output.decode("utf-8", "surrogateescape").strip().removeprefix("refs/heads/")
        if _mark(branch) != mark:
            raise ToolError("Nothing was switched: somebody has switched branches since then. Switch by hand.")


async def _check_is_left(context: ToolContext, name: str) -> None:
    """Check that a branch or commit that an undo needs still exists."""
    if name != "-" and not await commit_of(context, name):
        raise NeverUndone(f"It cannot be undone: there is no {name} any more. Only git reflog may still show it.")


async def current(context: ToolContext) -> tuple[str, ...]:
    """The current branch and its commit; the commit alone if HEAD is detached, the branch alone before the first
    commit."""
    branch = await try_read(context, ["symbolic-ref", "--quiet", "HEAD"])  # a short name may be that of a tag
    commit = await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])
    name = branch.output.decode("utf-8", "surrogateescape").strip().removeprefix("refs/heads/")
    found = commit.output.decode().strip()
    return ((name or found), found) if found else (name,)


async def _created(context: ToolContext, place: Place, name: str) -> str:
    if name.startswith("-") or "\0" in name:
        raise ToolError(f"{name!r} is not a branch name: names do not start with '-'.")
    result = await write(context, "git checkout", ["switch", "--create", name])
    return _told(result, place)


async def _switched(context: ToolContext, place: Place, target: str) -> str:
    if place.below:
        raise ToolError(
            f"Nothing was switched: the top folder of the repository is {place.top}, and switching would change "
            f"files outside of the working directory. Change to {place.top} with set_working_dir; to restore single "
            "files here, pass path."
        )
    what, options = "git checkout", ["switch", "--no-overwrite-ignore", "--no-recurse-submodules"]
    if target != "-" and (target.startswith("-") or "\0" in target):
        raise ToolError(f"{target!r} is not a branch or commit: names do not start with '-'. git_branch lists them.")
    await check_switch(context, target)
    if target == "-":
        return _told(await change_files(context, what, [*options, "-"], place.changed_folders), place)
    if await _is_branch(context, target):
        return _told(await change_files(context, what, [*options, "--guess", target], place.changed_folders), place)
    commit = await hash_of(context, target)
    result = await change_files(context, what, [*options, "--detach", commit], place.changed_folders)
    hint = "[No branch is current now. Use git_checkout with create_branch=true to keep commits that you make here.]"
    return f"{_told(result, place)}\n{hint}"


async def _is_branch(context: ToolContext, name: str) -> bool:
    """Whether it is a branch, or a remote branch of exactly one remote, from which git creates one."""
    local = await try_read(context, ["show-ref", "--verify", "--quiet", f"refs/heads/{name}"])
    if local.exit_code == 0:
        return True
    known = await try_read(context, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"])
    if known.exit_code == 0:
        return False
    remote = await read(context, "git branch", ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes"])
    return name in remote.output.decode("utf-8", "replace").splitlines()


def _told(result: ProcessResult, place: Place) -> str:
    said = output_text(result.stderr + result.output, result.omitted, "git_status shows the changes.").strip()
    next_step = place.next_step()
    return "\n".join(filter(None, (said or "Done.", next_step and f"[{next_step}]")))


async def _restored(context: ToolContext, place: Place, target: str, path: str, expected: str) -> ToolResult:
    located = context.paths.locate(path)
    for name in filter(None, [expected and target, expected]):
        await _check_is_left(context, name)
    commit = await hash_of(context, target)
    await _check_as_expected(context, place, located, expected)
    is_saved = target.startswith(f"{SNAPSHOTS}/")
    exists = await has_path(context, place, commit, located)
    if not exists and not (is_saved and expected):  # the user had deleted it before it was restored
        raise ToolError(f"There is no {path} in {target}, so nothing was restored. git_show(ref, path) shows a folder.")
    await check_restore(context, located, commit)
    replaced = await replaced_by(context, place, located, (expected, commit))
    what = "git checkout"
    options = ["--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=dirty"]
    changed = await names(context, what, ["status", *options, "--no-renames", "--", located])
    snapshot = await saved(context, place, located) if changed or await _unseen(context, located) else ""
    # What was saved may be ignored, or a key. It must not be staged, or the next commit would have it.
    asked = ["restore", "--worktree", "--overlay", f"--source={commit}"] if is_saved else ["checkout", commit]
    note = f"\n{path} had uncommitted changes, which were saved. To restore them: {_way_back(snapshot, path)}"
    said, note, is_error = "", note if snapshot else "", False
    try:
        if exists and replaced:
            options = [asked[0], "--quiet", "--no-recurse-submodules", *asked[1:]]
            options += ["--pathspec-from-file=-", "--pathspec-file-nul"]
            stdin = "\0".join(literal(replaced)).encode("utf-8", "surrogateescape")
            result = await change_files(context, what, options, place.changed_folders, stdin=stdin)
            said = output_text(result.stderr, 0, "").strip()[:LIST_LIMIT]
    except (ToolError, asyncio.CancelledError) as error:  # such as that of a hook, once the file was restored
        said, is_error = str(error) or _CANCELLED, not expected  # as for a switch
        if await completed(changed_since(context, place, located, commit)):
            raise ToolError(f"{said}{note}") from error
    if is_saved or expected:
        await _remove_restored(context, place, located, (expected, commit))
        await _stage_as_saved(context, place, located, (expected, commit), is_saved=is_saved)
    text = f"Restored {path} from {target} ({commit[:8]}). {said}".rstrip()
    head = await _head_with(context, place, located)
    undo = call_of(git_checkout, target=snapshot or head, path=path, expected=commit) if snapshot or head else None
    return ToolResult(content=f"{text}{note}", undo=undo, is_error=is_error)


async def _remove_restored(context: ToolContext, place: Place, located: str, commits: tuple[str, str]) -> None:
    """Remove the files at a path that only the first of two commits has, if any, from which they were restored."""
    if not commits[0]:
        return
    restored = [one.committed for one in await in_tree(context, place, commits[1], commits[0]) if one.is_deleted]
    here = within(restored, [located])
    kept = {*await differing(context, here, grows=False), *await unchecked(context, [located])}
    for one in here:
        if one.path not in kept:
            with suppress(ToolError):  # somebody has removed it
                await in_thread(partial(context.paths.remove, one.path))


async def _stage_as_saved(
    context: ToolContext, place: Place, located: str, commits: tuple[str, str], *, is_saved: bool
) -> None:
    """Stage of a path what was staged before it was restored, as the second of two commits or its snapshot has it.

    What somebody has staged since stays staged: it is neither in the first commit, if any, nor in that of the branch.
    What somebody has committed since is not staged as reverted.
    """
    since, then = commits
    own = {one.name for one in await in_index(context, place, [located])}
    if since:
        own &= {one.name for one in await in_index(context, place, [located], since)}
    parents = (await newest(context, then)).parents if is_saved else (then,)
    branch = (await newest(context)).commit
    committed = {one.name for one in await in_tree(context, place, branch, parents[0])} if branch else set[str]()
    now = [one for one in await in_index(context, place, [located], parents[-1]) if one.path and one.status != "U"]
    await put_back(context, [one.committed for one in now if one.name not in own | committed])
    if is_saved:
        await stage_conflicts(context, await conflicts_in(context, then), own)


async def _unseen(context: ToolContext, located: str) -> bool:
    """Whether there are files at a path that git does not look at: status does not list changes in them."""
    unseen = await unchecked(context, [located])
    return await in_thread(lambda: any(is_there(context.paths.root, path) for path in unseen))


async def _check_as_expected(context: ToolContext, place: Place, located: str, expected: str) -> None:
    """Refuse to restore a path of which a file has changed since the commit."""
    if not expected:
        return
    changed = await changed_since(context, place, located, await hash_of(context, expected))
    if changed:
        diff = await changes_since(context, place, await hash_of(context, expected), changed)
        raise ToolError(
            f"Nothing was restored: {located} was changed since then. Save that change first: {shortened(changed)}\n"
            f"{diff}"
        )


async def _head_with(context: ToolContext, place: Place, located: str) -> str:
    """The current commit if it contains the path, else empty."""
    before = await current(context)
    return before[1] if before[1:] and await has_path(context, place, before[1], located) else ""


def _way_back(snapshot: str, path: str) -> str:
    return f"git_checkout(target={snapshot!r}, path={path!r})"
