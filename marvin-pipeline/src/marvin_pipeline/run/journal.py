"""The journal of a run, as lines of JSON in `.marvin/logs/pipeline.jsonl`, and its costs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from marvin_core import AgentResult, Record

from .files import ProjectFiles

NAME = "logs/pipeline.jsonl"
_LONGEST = 2_000
"""Characters of a text in a line."""


class AgentRecord(Record):
    """A finished agent."""

    phase: str
    role: str
    model: str
    """The tier, or the model if another one was used."""
    ended: str
    cost: float | None
    seconds: float
    session: str
    log: str
    ticket: str


class Journal:
    """The journal of one run."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self.agents: list[AgentRecord] = []
        """The finished agents of this run, in order."""

    def note(self, event: str, **fields: Any) -> None:
        """Add a line.

        Raises:
            FileFault: it cannot be written.
        """
        shown = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in fields.items()}
        line = {"ts": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "event": event, **shown}
        self._files.append(NAME, (json.dumps(line, default=str) + "\n").encode())

    def agent(self, result: AgentResult, *, phase: str, role: str, model: str, ticket: str) -> None:
        """Add a finished agent. Raises as `note`."""
        record = AgentRecord(
            phase=phase,
            role=role,
            model=model,
            ended=result.ended,
            cost=result.cost,
            seconds=round(result.seconds, 3),
            session=result.session_id,
            log="" if result.log is None else str(result.log),
            ticket=ticket,
        )
        self.agents.append(record)
        self.note("agent", **record.as_dict(), reason=result.reason)

    @property
    def known_cost(self) -> float:
        """USD of this run's agents with a known cost."""
        return sum(agent.cost for agent in self.agents if agent.cost is not None)
