"""The facts about a session in the status row. They are collected in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...api.errors import MarvinError
from ...api.events import AgentEnd, AgentStart, Event, SessionResume, ToolExecutionEnd, UsageReport
from ...api.session import SessionControl
from ...util.threads import in_thread

_HEAD_BYTES = 1_000
_COMMIT = 7
"""The number of shown characters of a commit if no branch is checked out."""


class Facts:
    """Cost, ceiling, tokens, branch and jobs, as of the last event that may change them. `changed` is called after a
    change.
    """

    def __init__(self, session: SessionControl, changed: Callable[[], None]) -> None:
        self._session = session
        self._changed = changed
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self.cost: float | None = 0.0
        self.ceiling: float | None = None
        self.left: float | None = None
        self.tokens = 0
        self.branch = ""
        self.jobs = 0

    def listen(self, event: Event) -> None:
        """Collect the facts again if an event may have changed something."""
        if isinstance(event, (AgentStart, AgentEnd, SessionResume, ToolExecutionEnd, UsageReport)):
            self.look()

    def look(self) -> None:
        """Collect the facts in the background; a call during a collection starts one more."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
        else:
            self._again = True

    async def close(self) -> None:
        """Stop collecting."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        try:
            with suppress(MarvinError, OSError):
                usage = await in_thread(self._session.usage)
                self.cost, self.ceiling, self.left = usage.cost, usage.ceiling, usage.left
                self.tokens = usage.tokens.get("input_tokens", 0) + usage.tokens.get("output_tokens", 0)
            folder = self._session.working_dir
            self.branch = await in_thread(lambda: branch_of(folder))
            with suppress(MarvinError, OSError):
                self.jobs = sum(job.running for job in self._session.processes.job_list())
            self._changed()
        finally:
            self._looking = None
            if self._again:
                self._again = False
                self.look()


def branch_of(folder: Path) -> str:
    """The branch that is checked out in a folder, otherwise the beginning of the commit; empty outside of a repository.

    The file is read instead of asking git: a repository can make git run programs.
    """
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            if git.is_file():  # a worktree, or a module of another repository
                named = _beginning(git).removeprefix("gitdir:").strip()
                git = place / named
            head = _beginning(git / "HEAD").strip()
        except (OSError, ValueError):
            continue
        if head.startswith("ref: refs/heads/"):
            return head.removeprefix("ref: refs/heads/")
        if head:
            return head[:_COMMIT]
    return ""


def _beginning(path: Path) -> str:
    """The beginning of a regular file. Raises `OSError` for anything else: reading a pipe would block."""
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).decode("utf-8", "replace").partition("\n")[0]
