"""The status row: its parts are chosen by importance and by the available width."""

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
"""The parts that stay in a narrow window, the most important first."""
_NARROW = 24
"""The maximum width of a name in a narrow window, in columns; in a wide one it is a third of the window."""
_FULL = 999
_BETWEEN = " · "
_COST_WARN, _COST_ALARM = 0.8, 0.95
"""The shares of the ceiling from which on the cost is yellow and red."""


class Part(Record):
    """A part of the row: its text, and the role of its color."""

    text: str
    role: Role = "faint"


class StatusRow:
    """Composes the row. `names` are the enabled parts, in their order."""

    def __init__(self, session: SessionControl, facts: Facts, names: Sequence[str], paint: Paint) -> None:
        self._session = session
        self._facts = facts
        self._names = names
        self._paint = paint

    def text(self, width: int, measure: Measure, *, shell: bool) -> str:
        """The row within this width in columns; empty if there is nothing to show."""
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
    """The used share of the context window; a sign repeats the meaning of the color."""
    share = f"context {min(_FULL, round(standing.tokens * 100 / max(1, standing.window)))}%"
    if standing.tokens >= standing.compact:
        return Part(text=f"{share} !!", role="error")
    return (
        Part(text=f"{share} !", role="notice") if standing.tokens >= standing.warn else Part(text=share, role="added")
    )


def _cost(cost: float | None, ceiling: float | None, left: float | None) -> Part:
    """The spent amount and the ceiling, with the same colors and signs."""
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
