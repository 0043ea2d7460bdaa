"""The way to sub-agents that one call of a tool has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.agents import AgentProgress, AgentResult, AgentTask, ApartTask
from ...api.processes import Job

if TYPE_CHECKING:
    from ..parts import SessionParts
    from .timer import CallTimer


class CallAgents:
    """The `Agents` of one call. An agent has a time-out of its own, so that the one of the call waits meanwhile."""

    def __init__(self, parts: SessionParts, timer: CallTimer) -> None:
        self._parts = parts
        self._timer = timer

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end, as `Agents.run` says."""
        with self._timer.stopped():
            return await self._parts.agents.run(task, progress)

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a Marvin that goes on when this one ends, as `Agents.start_apart` says."""
        return await self._parts.agents.start_apart(task)
