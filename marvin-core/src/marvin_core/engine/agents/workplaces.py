"""The working directory of an agent that writes, and the handling of its results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.agents import AgentResult, AgentTask
from ...api.errors import ToolError
from ...api.record import Record
from ...guard.trust import TrustStore
from ...guard.undo.ledger import UndoLedger
from ...tickets.folder import NAME, find_ticket_folder
from ...util.text import counted, one_line, shortened
from ...util.threads import in_thread
from .git import Git, Repository
from .leftovers import Change, changes, changes_on_branch, commit_leftovers, head_of
from .worktrees import Worktree, Worktrees

if TYPE_CHECKING:
    from ...api.config import Config
    from ...api.processes import Processes

_SHOWN, _NAME = 10, 200
_IN_WORKTREE = (
    "You work in your own git worktree, on the branch {branch}, created from the commit {base}. Your changes are "
    "merged, and so become visible to others, when you end. Stay on this branch, and do not merge or rebase it "
    "yourself."
)


class WorkPlace(Record):
    """The working directory of one agent: a worktree, or the session's folder with its previous changes."""

    folder: Path
    instructions: str = ""
    """The information about it for the agent."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that point to entries shared with the main folder."""
    is_trusted: bool = False
    """Whether the folder's extensions may be loaded: a person trusts the same ones in the main folder."""
    tree: Worktree | None = None
    before: tuple[Change, ...] | None = None
    """The uncommitted changes when the agent began; None if nothing is committed for the agent."""


class WorkPlaces:
    """The working directories of the agents of one session. `tickets_dir` is the value of TICKETS_DIR."""

    def __init__(self, config: Config, processes: Processes, tickets_dir: str = "") -> None:
        self._config = config
        self._tickets_dir = tickets_dir
        self._git = Git(processes, config.timeouts.agent_git)
        self._worktrees = Worktrees(processes, config.timeouts)

    async def open(self, task: AgentTask, folder: Path) -> WorkPlace:
        """The working directory of an agent.

        Args:
            folder: its working directory unless it gets a worktree.

        Raises:
            ToolError: a worktree is requested, and cannot be made.
        """
        if task.isolation == "worktree":
            tree = await self._worktrees.open(folder, task.ticket)
            return await in_thread(lambda: self._in(tree))
        if task.read_only or task.writable_files is not None or not self._git.is_there:
            return WorkPlace(folder=folder)
        found = await changes_on_branch(self._git, folder)
        return WorkPlace(folder=folder, before=None if found is None else tuple(found))

    def _in(self, tree: Worktree) -> WorkPlace:
        main, place, root = tree.main, tree.place, str(tree.main.root)
        told = _IN_WORKTREE.format(branch=tree.known.branch, base=tree.known.base[:12])
        store = TrustStore(self._config)
        trust, same = store.look(main.root), store.look(place.root)
        return WorkPlace(
            folder=place.root,
            instructions=f"{told}\n{tree.lacks}".rstrip(),
            environment=(("TICKETS_DIR", find_ticket_folder(root, self._tickets_dir) or os.path.join(root, NAME)),),
            is_trusted=trust.trusted and same.digest == trust.digest,
            tree=tree,
        )

    async def close(self, place: WorkPlace, task: AgentTask, result: AgentResult | None) -> str:
        """Take over the results of an agent; `result` is None if its caller no longer waits.

        Returns:
            A summary for the model that started the agent; empty if there is nothing to report.
        """
        answered = result is not None and result.answered
        if place.tree is not None:
            told = await self._worktrees.close(place.tree, answered=answered, is_told=result is not None)
            return "\n".join([*place.tree.notes, told])
        if place.before is None or result is None:
            return ""
        try:
            at = await self._git.find(place.folder)
            async with self._worktrees.turns.one(at.common):
                return await self._left_in(at, place.before, task, result)
        except (ToolError, OSError) as failure:
            return f"Its uncommitted changes could not be committed: {failure}"

    async def _left_in(self, at: Repository, before: Sequence[Change], task: AgentTask, result: AgentResult) -> str:
        """Commit the files that an agent wrote itself and left uncommitted in the session's folder, and no others."""
        known = {change.name for change in before}
        found = [change for change in await changes(self._git, at) if change.name not in known and change.counts]
        new = [change for change in found if NAME not in change.name.split("/")]
        if not new:
            return ""
        ledger = UndoLedger(self._config.data_folder / "undo", at.root, self._config.limits)
        written = await in_thread(lambda: _written(ledger, result.session_id, at.top))
        own = [change for change in new if change.name in written]
        branch, _ = await head_of(self._git, at)
        if not result.answered or not own or not branch or at.in_progress:
            return f"Uncommitted changes since it began: {_names([change.name for change in new])}."
        left = await commit_leftovers(self._git, at, own, task.ticket, only=True)
        told = []
        if left.commit:
            files = counted(len(left.committed), "file")
            told.append(f"It left {files} uncommitted, now in commit {left.commit}: {_names(left.committed)}.")
        others = [change.name for change in new if change.name not in left.committed]
        if others:
            told.append(f"Uncommitted changes since it began, which may not be its own: {_names(others)}.")
        return " ".join(told)


def _written(ledger: UndoLedger, session: str, top: Path) -> frozenset[str]:
    """The files that the tools of a session wrote, by their names in git."""
    files = ledger.files_of(session) if session else ()
    return frozenset(os.path.relpath(os.path.join(one.root, one.path), top) for one in files)


def _names(names: Sequence[str]) -> str:
    return shortened([one_line(name, _NAME) for name in names], _SHOWN)
