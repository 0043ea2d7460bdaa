"""The status row: what there is room for, by how much it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...api.controls import SessionStanding
from ...api.providers import OFFLINE
from ...api.record import Record
from ...api.session import SessionControl
from ...util.terminal_text import disarm
from ...util.text import counted, one_line
from ..rendering import Measure, Paint, Role, shortened
from .facts import Facts

_NEED = (
    *("context", "model", "mode", "running", "cost", "shell", "thinking"),
    *("folder", "branch", "profile", "messages", "tokens"),
)
"""What stays in a narrow window, the most needed first."""
_NARROW = 24
"""Columns of a name where the window is narrow; in a wide one a third of it."""
_FULL = 999
_BETWEEN = " · "
_COST_WARN, _COST_ALARM = 0.8, 0.95
"""Which share of the ceiling is yellow, and which is red."""


class Part(Record):
    """A part of the row: its text, and the role that its colour has."""

    text: str
    role: Role = "faint"


class StatusRow:
    """Puts the row together. `names` are the parts that are wanted, in their order."""

    def __init__(self, session: SessionControl, facts: Facts, names: Sequence[str], paint: Paint) -> None:
        self._session = session
        self._facts = facts
        self._names = names
        self._paint = paint

    def text(self, width: int, measure: Measure, *, shell: bool) -> str:
        """The row, in as many columns as there are; empty where nothing is to be shown."""
        if not self._names:
            return ""
        longest = max(_NARROW, width // 3)
        found = {
            name: part.replace(text=shortened(part.text, longest, measure))
            for name, part in self._parts(shell).items()
            if name in self._names and part.text
        }
        kept = [name for name in _NEED if name in found]
        while kept and measure(_BETWEEN.join(found[name].text for name in kept)) > width:
            kept.pop()
        row = [self._paint(found[name].role, found[name].text) for name in self._names if name in kept]
        return self._paint("faint", _BETWEEN).join(row)

    def _parts(self, shell: bool) -> Mapping[str, Part]:
        session, facts = self._session, self._facts
        standing = session.standing()
        answers = session.configured and session.models.provider_name != OFFLINE
        thinking = session.models.thinking
        return {
            "model": Part(text=_said(session.models.model or session.models.provider_name) if answers else "no model"),
            "mode": Part(text=", ".join([session.permissions.mode, *(["coding"] if session.mode == "coding" else [])])),
            "thinking": Part(text="" if thinking == "off" else f"thinks {thinking}"),
            "folder": Part(text=_said(session.working_dir.name or str(session.working_dir))),
            "branch": Part(text=_said(facts.branch)),
            "context": _context(standing) if answers else Part(text=""),
            "cost": _cost(facts.cost, facts.ceiling, facts.left),
            "running": Part(text=_running(facts.jobs, standing.agents)),
            "profile": Part(text=f"profile {_said(session.profile.name)}"),
            "shell": Part(text="shell" if shell else ""),
            "messages": Part(text=counted(standing.messages, "message")),
            "tokens": Part(text=f"{facts.tokens:,} tokens"),
        }


def _context(standing: SessionStanding) -> Part:
    """How full the window is; a sign tells what the colour tells."""
    share = f"context {min(_FULL, round(standing.tokens * 100 / max(1, standing.window)))}%"
    if standing.tokens >= standing.compact:
        return Part(text=f"{share} !!", role="error")
    return (
        Part(text=f"{share} !", role="notice") if standing.tokens >= standing.warn else Part(text=share, role="added")
    )


def _cost(cost: float | None, ceiling: float | None, left: float | None) -> Part:
    """What was spent, and of how much; the same colours and signs."""
    if ceiling is None:
        return Part(text="cost unknown" if cost is None else f"${cost:.2f}" if cost else "")
    spent = max(0.0, ceiling - (left or 0.0))
    shown, share = f"${spent:.2f} of ${ceiling:.2f}", spent / ceiling if ceiling else 1.0
    if share >= _COST_ALARM:
        return Part(text=f"{shown} !!", role="error")
    return Part(text=f"{shown} !", role="notice") if share >= _COST_WARN else Part(text=shown, role="added")


def _running(jobs: int, agents: int) -> str:
    return ", ".join(counted(number, name) for number, name in ((jobs, "job"), (agents, "agent")) if number)


def _said(text: str) -> str:
    return disarm(one_line(text))
