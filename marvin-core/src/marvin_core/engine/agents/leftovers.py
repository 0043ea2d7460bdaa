"""Finds the changes that an agent left uncommitted, and commits those that belong into a commit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ...api.record import Record
from ...guard.files.no_links import READ, is_there, opened_folder
from ...kit.files.committable import (
    HABITUALLY_IGNORED,
    KEY_SAMPLE,
    NAME_REFUSED,
    is_marvins,
    refused_names,
    usually_ignored,
    why_content_left_out,
    why_left_out,
)
from ...util.text import one_line
from ...util.threads import in_thread
from .git import Git, Repository, checked, text_of

_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
_NO_BRANCH = ("## HEAD (no branch)", "## No commits yet on ")
_IGNORED = "!!"
_REPOSITORY = "160000"
"""The mode of a submodule, and of another repository that was added like a file."""
_TITLE = 60
"""The maximum length of a ticket in the first line of a message, in characters."""


class Change(Record):
    """A file that differs from the newest commit, according to `git status`; its path is relative to the top."""

    code: str
    name: str

    @property
    def is_new(self) -> bool:
        """Whether the file is untracked."""
        return self.code == "??"

    @property
    def is_unmerged(self) -> bool:
        """Whether it has an unresolved conflict."""
        return "U" in self.code or self.code in ("AA", "DD")

    @property
    def counts(self) -> bool:
        """Whether its loss would matter: the content of `node_modules` and the like can be made again."""
        made_again = any(part in HABITUALLY_IGNORED for part in self.name.split("/")[:-1])
        return not (self.is_new and (made_again or is_marvins(self.name)))


class Leftovers(Record):
    """The result for uncommitted files."""

    commit: str = ""
    """The commit that contains them; empty if there is none."""
    committed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of the other files, each with the reason, for people."""


async def changes(git: Git, at: Repository, *, folders: bool = False) -> list[Change]:
    """The uncommitted changes of a working tree, without files that git ignores.

    Args:
        folders: list a new folder instead of its files.

    Raises:
        GitFailure: git fails, or there are too many.
    """
    untracked = f"--untracked-files={'normal' if folders else 'all'}"
    return _parsed(await git.names(at, "git status", *_STATUS, untracked))


async def ignored_files(git: Git, at: Repository) -> list[str]:
    """The ignored files of a working tree, folders as a whole, without those that can be made again and Marvin's own.

    Raises:
        GitFailure: git fails, or there are too many.
    """
    options = ("--untracked-files=normal", "--ignored=matching")
    found = _parsed(await git.names(at, "git status", *_STATUS, *options))
    made_again = {*HABITUALLY_IGNORED, ".marvin"}
    names = [change.name for change in found if change.code == _IGNORED]
    return [name for name in names if made_again.isdisjoint(name.rstrip("/").split("/"))]


async def changes_on_branch(git: Git, folder: Path) -> list[Change] | None:
    """The same for the repository of a folder, by a single git command; None if it is on no branch with a commit."""
    if not any(map(os.path.lexists, (place / ".git" for place in (folder, *folder.parents)))):
        return None  # every writing agent waits for this, and git may need a new sandbox
    looked = await git.look(folder, *_STATUS, "--untracked-files=all", "--branch")
    heading, *fields = text_of(looked).split("\0")
    is_usable = looked.exit_code == 0 and not looked.omitted and not heading.startswith(_NO_BRANCH)
    return _parsed(filter(None, fields)) if is_usable else None


def _parsed(fields: Iterable[str]) -> list[Change]:
    return [Change(code=field[:2], name=field[3:]) for field in fields]


async def commit_leftovers(
    git: Git, at: Repository, found: Sequence[Change], ticket: str, *, only: bool = False
) -> Leftovers:
    """Commit changes on the current branch of the working tree.

    New key files, logs, dumps, repositories, very large files and folders that programs made are left out.

    Args:
        only: commit no other staged changes.

    Raises:
        GitFailure: git fails.
    """
    reasons = await in_thread(lambda: _reasons(at, [change for change in found if change.counts]))
    names = [name for name, reason in reasons.items() if not reason]
    left_out = tuple(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    if not names:
        return Leftovers(left_out=left_out)
    listed = os.fsencode("\0".join(names))
    options = ("--add", "--remove", "--replace", "-z", "--stdin")
    staged = checked("git update-index", await git.attempt(at, "update-index", *options, stdin=listed))
    refused = refused_names(staged.stderr)
    left_out += tuple(f"{name} ({NAME_REFUSED})" for name in refused)
    if not (names := [name for name in names if name not in refused]):
        return Leftovers(left_out=left_out)
    arguments = ["commit", "--quiet", "--no-verify", f"--message={_message(ticket, len(names))}"]
    arguments += ["--only", "--pathspec-from-file=-", "--pathspec-file-nul"] if only else []
    who = await git.identity(at)
    listed = os.fsencode("\0".join(names))
    checked("git commit", await git.attempt(at, *arguments, stdin=listed if only else None, env=who))
    commit = await git.run(at, "git rev-parse", "rev-parse", "--short", "HEAD")
    return Leftovers(commit=commit.strip(), committed=tuple(names), left_out=left_out)


async def repositories_within(git: Git, at: Repository, base: str) -> list[str]:
    """The repositories in a working tree that its commits since `base` name, each with the reason why that loses them.

    Raises:
        GitFailure: git fails, or too many files differ.
    """
    fields = await git.names(at, "git diff", "diff-tree", "-r", "--no-renames", "-z", base, "HEAD")
    named = [name for modes, name in zip(fields[::2], fields[1::2], strict=True) if modes.split()[1] == _REPOSITORY]
    here = await in_thread(lambda: [name for name in named if os.path.lexists(at.top / name / ".git")])
    return [f"{name}/ (another repository; the commit has its name, but not its files)" for name in here]


def _message(ticket: str, count: int) -> str:
    title = f"{one_line(ticket, _TITLE)}: " if ticket else ""
    files = "a file" if count == 1 else f"{count:,} files"
    trailer = f"\n\nTicket: {one_line(ticket, _TITLE)}" if ticket else ""
    return f"{title}Commit {files} that an agent left uncommitted{trailer}"


def _reasons(at: Repository, changed: Sequence[Change]) -> Mapping[str, str]:
    """The changes, and folders as a whole, each with the reason why it is left out; empty if it is not. Blocks."""
    new = [change.name for change in changed if change.is_new]
    within = usually_ignored(new, partial(is_there, at.top))
    made = {name: f"{folder}/" for name in new if (folder := within[name.rpartition("/")[0]])}
    reasons = {change.name: _reason(at, change) for change in changed if change.name not in made}
    return reasons | dict.fromkeys(made.values(), "usually ignored")


def _reason(at: Repository, change: Change) -> str:
    """Why a change is left out; empty if it is not."""
    if not change.is_new:
        return ""
    return why_left_out(change.name) or _reason_within(at, change.name)


def _reason_within(at: Repository, name: str) -> str:
    folder, _, base = name.rpartition("/")
    try:
        with (
            opened_folder(at.top, folder or ".") as opened,
            os.fdopen(os.open(base, READ, dir_fd=opened), "rb") as file,
        ):
            return why_content_left_out(os.fstat(file.fileno()).st_size, file.read(KEY_SAMPLE))
    except OSError:
        return ""  # a link, which git stores as one, or a file that git itself reports as unreadable


async def head_of(git: Git, at: Repository) -> tuple[str, str]:
    """The current branch of the working tree (empty for none) and its commit (empty before the first)."""
    branch = await git.attempt(at, "symbolic-ref", "--quiet", "HEAD")
    commit = await git.attempt(at, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    named = [text_of(one).strip() if one.exit_code == 0 else "" for one in (branch, commit)]
    return named[0], named[1]
