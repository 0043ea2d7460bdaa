"""Access to sub-agents for one tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.agents import AgentProgress, AgentResult, AgentTask, ApartTask
from ...api.processes import Job

if TYPE_CHECKING:
    from ..parts import SessionParts
    from .timer import CallTimer


class CallAgents:
    """The `Agents` of one call. An agent has its own time-out, so the time-out of the call is paused meanwhile."""

    def __init__(self, parts: SessionParts, timer: CallTimer) -> None:
        self._parts = parts
        self._timer = timer

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end, as `Agents.run` does."""
        with self._timer.stopped():
            return await self._parts.agents.run(task, progress)

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a Marvin that outlives this one, as `Agents.start_apart` does."""
        return await self._parts.agents.start_apart(task)
