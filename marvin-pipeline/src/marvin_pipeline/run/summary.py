"""The result of a run: for people, and for programs in `.marvin/logs/pipeline-report.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from marvin_core import Record, one_line

from ..state import MEANINGS
from .ends import PhaseEnd
from .files import ProjectFiles
from .journal import AgentRecord
from .limits import words_of

NAME = "logs/pipeline-report.json"
_SHOWN, _LINE = 20, 100


class PhaseRecord(Record):
    """A phase of this run."""

    phase: str
    end: PhaseEnd
    seconds: float
    forecast: float | None = None
    """The expected cost in USD; None if a price is unknown."""


class Summary(Record):
    """The result of a run."""

    ended: str
    """done, paused (at --until), failed, budget, interrupted."""
    reason: str
    """Why, in a sentence or some more."""
    exit_code: int
    phases: tuple[PhaseRecord, ...]
    agents: tuple[AgentRecord, ...]
    seconds: float
    next_phase: str
    """The first phase of the next run; empty if all are finished."""
    carried: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    epic: str = ""
    unsaved: str = ""
    """Why the report could not be written; empty for success."""

    @property
    def cost(self) -> float | None:
        """USD of the agents of this run; None if one is unknown."""
        costs = [agent.cost for agent in self.agents]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def as_json(self) -> dict[str, Any]:
        """The content of the report."""
        return {
            "ended": self.ended,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 3),
            "cost": self.cost,
            "next_phase": self.next_phase,
            "epic": self.epic,
            "phases": [
                {
                    "phase": one.phase,
                    "ended": one.end.outcome,
                    "reason": one.end.reason,
                    "seconds": round(one.seconds, 3),
                    "forecast": one.forecast,
                    "cost": self.cost_of(one.phase),
                    "carried": one.end.carried,
                    "blocking": one.end.blocking,
                }
                for one in self.phases
            ],
            "agents": [agent.as_dict() for agent in self.agents],
            "carried": self.carried,
            "blocking": self.blocking,
        }

    def cost_of(self, phase: str) -> float | None:
        """USD of the agents of a phase; None if one is unknown."""
        costs = [agent.cost for agent in self.agents if agent.phase == phase]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def save(self, files: ProjectFiles) -> None:
        """Write the report. Raises `FileFault` if that fails."""
        files.write(NAME, (json.dumps(self.as_json(), indent=1) + "\n").encode())

    def text(self) -> str:
        """The summary for people."""
        lines = [f"The pipeline {_ENDS[self.ended]}. {self.reason}".strip(), ""]
        lines += [
            f"{one.phase:10} {one.end.outcome:8} {words_of(one.seconds):>10} {_money(self.cost_of(one.phase)):>12}"
            f"  {one_line(one.end.reason, _LINE) or MEANINGS[one.phase]}"
            for one in self.phases
        ]
        lines += _listed("Blocking findings", self.blocking) + _listed("Open findings", self.carried)
        used = f"{len(self.agents)} agents, {words_of(self.seconds)}, {_money(self.cost)}"
        lines += ["", f"{used}. {self.unsaved or f'The report: .marvin/{NAME}, .marvin/report/summary.md'}"]
        if self.next_phase:
            lines.append(f"The next run starts with {self.next_phase}.")
        return "\n".join(lines) + "\n"


_ENDS = {
    "done": "is done",
    "paused": "ended as planned",
    "failed": "failed",
    "budget": "reached its limit",
    "interrupted": "was interrupted",
}


def _money(cost: float | None) -> str:
    return "cost unknown" if cost is None else f"{cost:.4f} USD"


def _listed(title: str, findings: Sequence[str]) -> list[str]:
    if not findings:
        return []
    more = [f"- and {len(findings) - _SHOWN} more, in the report"] if len(findings) > _SHOWN else []
    return ["", f"{title}:", *(f"- {finding}" for finding in findings[:_SHOWN]), *more]
