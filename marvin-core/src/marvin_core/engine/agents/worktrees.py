"""Git worktrees for agents that write: made from the current commit, and removed once no work in them can be lost.

They are in `.marvin/worktrees`, each with a branch of its own. The record of a worktree is a file in git's folder for
it, which stays locked while the agent works. An unlocked record belongs to a run that was killed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.no_links import own_folder
from ...guard.files.worktree_folders import remove_worktree
from ...util.text import counted, one_line, shortened
from ...util.threads import in_thread
from .documents import BroughtBack, SharedDocuments, differing_documents
from .git import Git, GitFailure, Repository, checked, real, said
from .leftovers import Leftovers, changes, commit_leftovers, head_of, ignored_files, repositories_within
from .merging import Merged, Merging, count_commits
from .turns import Turns
from .worktree_records import (
    FOLDER,
    RecordedWorktree,
    begun_record,
    end_begun,
    forget,
    kept_record,
    left_records,
    note_begun,
)

if TYPE_CHECKING:
    from ...api.processes import Processes
    from ...api.timeouts import Timeouts

_BRANCHES = "refs/heads/"
_PREFIXES = ("marvin/", "marvin-")
"""Prefixes of agents' branches; the second is used if a branch `marvin` exists, which rules out `marvin/...`."""
_SHARED = re.compile(r"(?:^|/)(?:\.marvin|\.tickets)/")
"""Files in the worktree that are not committed: documents are copies, and tickets are those of the main folder."""
_TRIES = 100
_NAME_LENGTH = 60
_SHOWN = 10
_NAME = 200
"""The maximum length of a file name in characters."""


class _TakenError(GitFailure):
    """Another program has created a worktree or a branch of this name meanwhile; it is kept."""


class Worktree(Record):
    """The worktree of an agent."""

    main: Repository
    """The working tree from which it was made, and into which its results are merged."""
    place: Repository
    """The worktree itself; its root is the agent's working directory."""
    known: RecordedWorktree
    documents: SharedDocuments
    lock: int
    """The descriptor of its record, which is locked."""
    lacks: str = ""
    """The parts of the main folder that it lacks; empty for none."""
    left: tuple[str, ...] = ()
    """The worktrees that earlier runs left."""

    @property
    def notes(self) -> list[str]:
        """The information about it for its agent."""
        return [*self.left, *([self.lacks] if self.lacks else [])]


class Worktrees:
    """The worktrees of one session. They are made and merged one at a time; their agents work in parallel."""

    def __init__(self, processes: Processes, timeouts: Timeouts) -> None:
        self._git = Git(processes, timeouts.agent_git)
        self._merging = Merging(self._git)
        self.turns = Turns(timeouts)
        """Held while the repository is changed."""
        self._told: set[str] = set()

    async def open(self, root: Path, ticket: str) -> Worktree:
        """Make a worktree for an agent.

        Args:
            root: the folder in which the agent would work; it works in the corresponding folder of the worktree.
            ticket: the ticket after which its branch is named.

        Raises:
            ToolError: there is no git, no repository or no commit, or the worktree cannot be made.
        """
        if not self._git.is_there:
            raise GitFailure(
                'isolation="worktree" needs git, which is not installed. Install git, or leave isolation out.'
            )
        main = await self._repository(root)
        async with self.turns.one(main.common):
            into, head = await head_of(self._git, main)
            if not head:
                raise GitFailure("There is no commit to create a worktree from. Commit first, or leave isolation out.")
            if await self._is_ignored(main):
                raise GitFailure(
                    f"git ignores {main.root}, so the changes of a worktree would be lost. Leave isolation out."
                )
            found = await changes(self._git, main, folders=True)
            uncommitted = [change.name for change in found if not _SHARED.search(change.name)]
            left = await self._after_interruptions(main)
            made = await self._made(main, into, head, ticket)
        lacks = f"Not in the worktree, because it is not committed: {_names(uncommitted)}." if uncommitted else ""
        return made.replace(lacks=lacks, left=tuple(left))

    async def _repository(self, root: Path) -> Repository:
        try:
            return await self._git.find(real(root))
        except GitFailure as failure:
            raise GitFailure(
                f'isolation="worktree" is not possible here: {failure} Leave isolation out, or create a repository and '
                "commit."
            ) from None

    async def _is_ignored(self, main: Repository) -> bool:
        """Whether git ignores the whole folder in which an agent would work."""
        if not main.prefix:
            return False
        if await self._git.names(main, "git ls-files", "ls-files", "-z", "--", main.prefix):
            return False
        options = ("--no-literal-pathspecs", "check-ignore", "--stdin", "-z")  # it does not support literal names
        ignored = await self._git.attempt(main, *options, stdin=os.fsencode(main.prefix))
        return ignored.exit_code == 0

    async def _made(self, main: Repository, into: str, head: str, ticket: str) -> Worktree:
        folder = main.root / FOLDER
        await in_thread(lambda: _make_folder(main.root, folder))
        name, branch = await self._free_name(main, folder, ticket)
        path = folder / name
        known = RecordedWorktree(
            root=str(main.root), path=str(path), branch=branch, base=head, into=into, ticket=ticket
        )
        try:
            await in_thread(lambda: note_begun(main.common, known))
            return await self._filled(main, known)
        except _TakenError:
            await in_thread(lambda: end_begun(main.common))
            raise
        except BaseException:  # no agent has started in it
            await asyncio.shield(self._tidy_up(main, known))
            raise

    async def _filled(self, main: Repository, known: RecordedWorktree) -> Worktree:
        path = Path(known.path)
        added = await self._git.attempt(main, "worktree", "add", "--quiet", "-b", known.branch, known.path, known.base)
        if added.timed_out:
            raise GitFailure("git worktree add took longer than timeouts.agent_git, and was ended.")
        if added.exit_code != 0 and b"already exists" in added.stderr:
            raise _TakenError(f"git worktree add failed. git says: {said(added)}. Try again.")
        checked("git worktree add", added)
        place = await self._git.find(path)
        if place.common != main.common or place.git_dir.parent != main.common / "worktrees":
            raise GitFailure(
                f"git created the worktree of an agent in another place than it reported: {place.git_dir}."
            )
        place = place.replace(root=path / main.prefix)
        lock = await in_thread(lambda: kept_record(place.git_dir, known))
        documents = SharedDocuments(main.root, place, self._git)
        try:
            await in_thread(lambda: end_begun(main.common))
            await in_thread(lambda: place.root.mkdir(parents=True, exist_ok=True))
            await documents.copy()
        except BaseException:
            os.close(lock)
            raise
        return Worktree(main=main, place=place, known=known, documents=documents, lock=lock)

    async def _free_name(self, main: Repository, folder: Path, ticket: str) -> tuple[str, str]:
        """A folder and a branch with unused names."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", ticket)[:_NAME_LENGTH].strip("-") or "agent"
        is_taken = await self._git.attempt(main, "show-ref", "--verify", "--quiet", f"{_BRANCHES}marvin")
        start = _PREFIXES[is_taken.exit_code == 0]
        listed = await self._git.run(main, "git for-each-ref", "for-each-ref", "--format=%(refname)", _BRANCHES)
        branches = {name.casefold() for name in listed.splitlines()}
        folders = {name.casefold() for name in await in_thread(lambda: os.listdir(folder))}
        for number in range(1, _TRIES):
            name = slug if number == 1 else f"{slug}-{number}"
            branch = start + name
            if name.casefold() not in folders and not _is_taken(f"{_BRANCHES}{branch}".casefold(), branches):
                return name, branch
        name = f"{slug}-{os.urandom(4).hex()}"
        return name, start + name

    async def close(self, tree: Worktree, *, answered: bool, is_told: bool = True) -> str:
        """Take over the results of an agent, and remove its worktree if no work can be lost.

        Uncommitted changes are committed on its branch first. The branch is merged if there is no conflict, and the
        agent ended by itself.

        Args:
            is_told: whether the return value is reported; otherwise a remaining worktree counts as interrupted.

        Returns:
            A summary for the model that started the agent.
        """
        try:
            async with self.turns.one(tree.main.common):
                return await self._closed(tree, answered=answered)
        except (ToolError, OSError) as failure:
            return f"{failure} {_stays(tree.known)}"
        finally:
            if is_told:
                forget(tree.place.git_dir)
            else:
                self._told.clear()  # worktrees of other runs were not reported either
            os.close(tree.lock)

    async def _closed(self, tree: Worktree, *, answered: bool) -> str:
        known, place = tree.known, tree.place
        if not place.top.is_dir():
            return f"The folder of its worktree no longer exists. {_stays(known)}"
        branch, _ = await head_of(self._git, place)
        if branch != _BRANCHES + known.branch or place.in_progress:
            return f"The agent left its worktree on another branch, or in the middle of a merge. {_stays(known)}"
        brought = await tree.documents.bring_back()
        found = await changes(self._git, place)
        if any(change.is_unmerged for change in found):
            return f"The agent left conflicts in its worktree. {_stays(known)}"
        left = await commit_leftovers(self._git, place, found, known.ticket)
        left = left.replace(left_out=(*left.left_out, *await repositories_within(self._git, place, known.base)))
        _, tip = await head_of(self._git, place)
        commits = await count_commits(self._git, place, known.base, "HEAD")
        merged = Merged(refusal="the agent did not finish")
        if answered and commits:
            title = f"{known.ticket or 'An agent'}: Merge {known.branch}"
            merged = await self._merging.merge(tree.main, place, known.into, title)
        told = [*_told(left, brought), *_told_of(merged, known, commits)]
        if left.left_out or brought.refused or _holds_others(place) or (commits and not merged.commit):
            return " ".join([*told, _stays(known)])
        try:
            ignored = await ignored_files(self._git, place)
            await self._remove(tree.main, known.path, known.branch, tip)
        except GitFailure as failure:
            return " ".join([*told, str(failure), _stays(known)])
        told += [f"Files that git ignores were removed with it: {_names(ignored)}."] if ignored else []
        return " ".join([*told, "The worktree and its branch were removed."])

    async def _remove(self, main: Repository, path: str, branch: str, *tip: str) -> None:
        """Remove a worktree, and its branch if that is still at `tip`. Raises `GitFailure` if that fails."""
        if await in_thread(lambda: _is_link(path)):
            raise GitFailure(f"The worktree {path} was replaced by a link, so it was not removed.")
        if not await in_thread(lambda: remove_worktree(main.root, Path(path), main.common)):
            raise GitFailure(f"The worktree {path} cannot be removed. A program may be using it.")
        await self._git.attempt(main, "update-ref", "-d", _BRANCHES + branch, *tip)

    async def _tidy_up(self, main: Repository, known: RecordedWorktree) -> None:
        """Remove the parts of an incomplete worktree."""
        with suppress(ToolError):
            await in_thread(lambda: remove_worktree(main.root, Path(known.path), main.common))
            await self._git.attempt(main, "update-ref", "-d", _BRANCHES + known.branch, known.base)
        with suppress(OSError):
            await in_thread(lambda: end_begun(main.common))

    async def _after_interruptions(self, main: Repository) -> list[str]:
        """Remove empty worktrees that killed runs left, and report the others once."""
        begun = await in_thread(lambda: begun_record(main.common))
        if begun is not None and _is_ours(main, begun):
            await self._tidy_up(main, begun)
        told = []
        for known, git_dir in await in_thread(lambda: left_records(main.common, main.root)):
            if known.path in self._told or not _is_ours(main, known):
                continue
            path = Path(known.path)
            place = main.replace(root=path / main.prefix, top=path, git_dir=git_dir)
            try:
                holds = await self._holds(main, place, known)
                if not holds:
                    await self._remove(main, known.path, known.branch)
                    continue
            except (ToolError, OSError) as failure:
                holds = str(failure)
            self._told.add(known.path)
            told.append(f"An interrupted run left the worktree of an agent, with {holds}. {_stays(known)}")
        return told

    async def _holds(self, main: Repository, place: Repository, known: RecordedWorktree) -> str:
        """The work that would be lost with a worktree; empty for none."""
        found = []
        commits = await count_commits(self._git, main, known.base, _BRANCHES + known.branch)
        if commits:
            found.append(counted(commits, "commit"))
        if place.top.is_dir():
            branch, _ = await head_of(self._git, place)
            uncommitted = [one for one in await changes(self._git, place) if one.counts]
            documents = await in_thread(lambda: differing_documents(main.root, place.root))
            if uncommitted:
                found.append(counted(len(uncommitted), "uncommitted file"))
            if documents:
                found.append(f"documents that differ ({_names(documents)})")
            if place.in_progress or branch != _BRANCHES + known.branch:
                found.append("work on another branch, or an unfinished merge")
            if _holds_others(place):
                found.append("worktrees of its own agents, or submodules")
        return ", ".join(found)


def _make_folder(root: Path, folder: Path) -> None:
    """Create the folder of the worktrees, which git must ignore. Raises `GitFailure` if a link is in its place."""
    try:
        with own_folder(root, folder, 0o777) as opened:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(".gitignore", flags, 0o666, dir_fd=opened)
            except FileExistsError:
                return
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                    stream.write("*\n")
            except OSError:
                os.unlink(".gitignore", dir_fd=opened)
                raise
    except OSError as error:
        raise GitFailure(
            f"No worktree can be created in {folder}: {error.strerror}. Check whether it is a link."
        ) from error


def _is_ours(main: Repository, known: RecordedWorktree) -> bool:
    """Whether a record is of a worktree in Marvin's own location; no other one is removed, whatever its record says."""
    is_there = known.root == str(main.root) and os.path.dirname(known.path) == str(main.root / FOLDER)
    return is_there and known.branch.startswith(_PREFIXES)


def _is_link(path: str) -> bool:
    """Whether a link replaces a worktree."""
    return str(real(path)) != path


def _is_taken(branch: str, branches: Collection[str]) -> bool:
    """Whether a branch of this name exists, or one below it: git treats the name as a folder then."""
    return branch in branches or any(name.startswith(f"{branch}/") for name in branches)


def _names(names: Sequence[str]) -> str:
    return shortened([one_line(name, _NAME) for name in names], _SHOWN)


def _holds_others(place: Repository) -> bool:
    """Whether removal would lose more than files: worktrees of its own agents, or repositories of submodules."""
    if (place.git_dir / "modules").is_dir():
        return True
    try:
        with os.scandir(place.root / FOLDER) as entries:
            return any(entry.is_dir(follow_symlinks=False) for entry in entries)
    except OSError:
        return False


def _told(left: Leftovers, brought: BroughtBack) -> list[str]:
    told = []
    if left.commit:
        files = counted(len(left.committed), "file")
        told.append(f"It left {files} uncommitted, now in commit {left.commit}: {_names(left.committed)}.")
    if left.left_out:
        told.append(f"Not committed: {_names(left.left_out)}.")
    if brought.taken:
        told.append(f"Copied into .marvin: {_names(brought.taken)}.")
    if brought.refused:
        names = _names(brought.refused)
        told.append(f"Not copied into .marvin, because they changed there in the meantime: {names}.")
    return told


def _told_of(merged: Merged, known: RecordedWorktree, commits: int) -> list[str]:
    number, verb = counted(commits, "commit"), "is" if commits == 1 else "are"
    if not commits:
        return ["It committed nothing."]
    if not merged.commit:
        return [f"Its {number} on {known.branch} {verb} not merged: {merged.refusal}."]
    branch = known.into.removeprefix(_BRANCHES)
    return [f"Its {number} {verb} merged into {branch} ({merged.commit[:8]}): {_names(merged.files)}."]


def _stays(known: RecordedWorktree) -> str:
    """The location of a remaining worktree, and the commands to continue from it."""
    from shlex import quote

    main, path, branch = quote(known.root), quote(known.path), quote(known.branch)
    ticket = f", ticket {known.ticket}" if known.ticket else ""
    return (
        f"The worktree was kept: {known.path} (branch {known.branch}{ticket}). To inspect it: git -C {path} status; "
        f"git -C {main} diff ...{branch}. To merge it: git -C {main} merge {branch}. To remove it: git -C {main} "
        f"worktree remove --force {path} && git -C {main} branch -D {branch}"
    )
