"""The tools git_status, git_diff, git_log and git_branch: changes, commits and branches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated

from marvin_core import Field, ProcessResult, ToolContext, ToolError, output_text, tool

from .adapters import (
    BRANCH_NAMES,
    DIFF_NAMES,
    GIT_IGNORED,
    LOG_NAMES,
    STATUS_NAMES,
    branch_arguments,
    diff_arguments,
    log_arguments,
    status_arguments,
)
from .confirming import confirmed, confirmed_diff, has_names
from .place import Place, find
from .running import DIFF_LIMIT, ERROR_LIMIT, WITHOUT_INDEX, hash_of, read, read_staged

_STAT_LIMIT = 10_000
_SUBMODULES = "--ignore-submodules=dirty"
"""Reports a submodule only if its commit changed. Looking for changes in it would run programs that its config
names."""
_DIFF = (
    *("diff", _SUBMODULES, "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_BRANCH = (
    "%(HEAD) %(refname:short) %(objectname:short)%(if)%(upstream)%(then) [%(upstream:short)"
    "%(if)%(upstream:track)%(then) %(upstream:track,nobracket)%(end)]%(end) %(contents:subject)"
)


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=STATUS_NAMES,
    unlisted=["path"],
    ignores=GIT_IGNORED,
    adapt=status_arguments,
)
async def git_status(context: ToolContext, path: str | None = None) -> str:
    """Branch, merge or rebase in progress and its next step, staged, changed and untracked files here."""
    place = await find(context, "git status")
    options = ["--long", "--untracked-files=normal", "--no-column", _SUBMODULES]
    scope = [context.paths.locate(path)] if path else place.scope
    result = await confirmed(
        "git status",
        lambda: read(context, "git status", ["status", *options, "--", *scope]),
        partial(has_names, context),
    )
    shown = output_text(result.output, result.omitted, "Run git status -- FOLDER for a part.").strip()
    above = f"[Only files in {place.prefix} of the repository {place.top} are listed.]" if place.below else ""
    next_step = place.next_step(unmerged="nmerged paths" in shown)
    notes = [f"[{note}]" for note in (next_step, place.unseen) if note]
    return "\n".join(filter(None, (shown, *notes, above)))


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=DIFF_NAMES,
    ignores=GIT_IGNORED,
    adapt=diff_arguments,
)
async def git_diff(
    context: ToolContext,
    staged: Annotated[bool, "Show staged changes instead of unstaged ones"] = False,
    path: Annotated[str | None, "Only this file or folder"] = None,
    ref: Annotated[str | None, "Commit or branch to compare with, or A..B"] = None,
) -> str:
    """Show changes in the working directory as a unified diff, 50 KB at most. For one commit use git_show.

    Untracked files are left out.
    """
    place = await find(context, "git diff")
    is_between = ref is not None and ".." in ref
    if staged and is_between:
        raise ToolError(f"staged compares with one commit, and {ref!r} names two. Leave out staged, or name one.")
    revision = await _resolved(context, ref) if ref else []
    located = context.paths.locate(path) if path else "."
    named = [located] if path else place.scope
    ask = partial(read, context, "git diff")
    if staged:
        ask = partial(read_staged, context, place.git_dir, "git diff")
        named = [*filter(None, [place.name_of(located)])]
    elif is_between:
        ask = partial(ask, env=WITHOUT_INDEX)
    options = [*(["--cached"] if staged else []), *revision, "--", *named]
    shown = partial(ask, [*_DIFF, *options], 2 * DIFF_LIMIT)
    result = await (shown() if staged or is_between else confirmed_diff(context, place.prefix, shown))
    if not result.output:
        where = f" in {path}" if path else ""
        if staged:
            return await _nothing_staged(context, place, where, ref)
        rest = f" {place.unseen}." if place.unseen else ""
        return f"No differences{where}. Staged changes show with staged=true, untracked files in git_status.{rest}"
    if len(result.output) + result.omitted <= DIFF_LIMIT:
        return result.output.decode("utf-8", "replace")
    overview = await ask([*_DIFF, "--stat=100", *options], _STAT_LIMIT)
    return _beginning(result, overview)


async def changes_since(context: ToolContext, place: Place, commit: str, paths: Sequence[str]) -> str:
    """The changes of some files since a commit, for an error message; empty if they cannot be shown."""
    ask = partial(read, context, "git diff", [*_DIFF, commit, "--", *paths], 2 * DIFF_LIMIT)
    with suppress(ToolError):
        result = await confirmed_diff(context, place.prefix, ask)
        shown = result.output[:ERROR_LIMIT]
        return output_text(shown, len(result.output) - len(shown) + result.omitted, "See git_diff.").rstrip()
    return ""


async def _nothing_staged(context: ToolContext, place: Place, where: str, ref: str | None) -> str:
    if ref:
        return f"No differences between {ref} and what is staged{where}."
    names = ["diff", "--cached", "--name-only", "--no-color", _SUBMODULES]
    other = await read_staged(context, place.git_dir, "git diff", [*names, "--"]) if where or place.below else None
    if other is None or not other.output:
        return "Nothing is staged. git_diff shows what is changed, git_status also new files."
    # Names outside of the working directory are not told.
    return f"Nothing is staged{where or ' in this folder'}. Something is staged elsewhere in the repository."


def _beginning(diff: ProcessResult, overview: ProcessResult) -> str:
    """The list of files, and as many whole lines of the diff as fit."""
    stat = output_text(overview.output, overview.omitted, "Pass path for one folder.").rstrip()
    room = DIFF_LIMIT - len(stat.encode())
    shown = diff.output[: diff.output.rfind(b"\n", 0, room) + 1] or diff.output[:room]
    rest = len(diff.output) + diff.omitted - len(shown)
    text = shown.decode("utf-8", "replace").rstrip("\n")
    return f"{stat}\n\n{text}\n[... {rest:,} bytes omitted. Pass path to see one file or folder.]"


async def _resolved(context: ToolContext, ref: str) -> list[str]:
    """The commits as hashes: git diff takes an unknown name for a file, even one outside the sandbox."""
    first, dots, second = re.fullmatch(r"(.*?)(?:(\.{2,3})(.*))?", ref, re.DOTALL).groups("")  # type: ignore[union-attr]  # it matches any text
    sides = [await hash_of(context, side or "HEAD") for side in ([first, second] if dots else [first])]
    return [dots.join(sides)]


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=LOG_NAMES,
    unlisted=["ref"],
    ignores=GIT_IGNORED,
    adapt=log_arguments,
)
async def git_log(
    context: ToolContext,
    max_count: Annotated[int, Field(ge=1, le=200), "Commits shown"] = 10,
    oneline: Annotated[bool, "One line a commit, or the whole message"] = True,
    path: Annotated[str | None, "Only changes of this file or folder"] = None,
    ref: str | None = None,
) -> str:
    """Recent commits, newest first: hash, date, author, branches, message. git_show shows one."""
    shape = "%h %ad %an:%d %s" if oneline else "commit %H%d%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B%w()"
    place = await find(context, "git log", files=False)
    revision = await _resolved(context, ref) if ref else []
    scope = ["--", *([context.paths.locate(path)] if path else place.scope)]
    date = "--date=short" if oneline else "--date=iso"
    result = await read(
        context,
        "git log",
        ["log", f"--max-count={max_count}", f"--format={shape}", date, "--no-color", "--no-patch", *revision, *scope],
        limit=DIFF_LIMIT,
    )
    log = output_text(result.output, result.omitted, "Ask for fewer commits.").strip()
    return log or f"No commit changes {path or 'this folder'}. git_status shows uncommitted changes."


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=BRANCH_NAMES,
    ignores=GIT_IGNORED,
    adapt=branch_arguments,
)
async def git_branch(
    context: ToolContext,
    all: Annotated[bool, "Include remote branches"] = False,
) -> str:
    """Branches, the last used first: `*` is the current one, then hash, [upstream, how far apart], subject."""
    place = await find(context, "git branch", files=False)
    options = ["--list", "--no-column", "--sort=-committerdate", f"--format={_BRANCH}", *(["--all"] if all else [])]
    result = await read(context, "git branch", ["branch", *options])
    branches = output_text(result.output, result.omitted, "Run git branch --list PATTERN for a part.").rstrip()
    if not branches:
        current = await read(context, "git branch", ["symbolic-ref", "--short", "HEAD"])
        branches = f"There are no commits yet. The first one creates the branch {current.output.decode().strip()}."
    next_step = place.next_step()
    return f"{branches}\n[{next_step}]" if next_step else branches
