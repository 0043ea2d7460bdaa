"""The history of all runs from the journal: each phase's last outcome and cost, and which evidence is current."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from marvin_core import Record

from ...run.files import ProjectFiles
from ...run.journal import NAME
from ...state import PHASES

_LARGEST = 100_000_000
"""Bytes of the journal that are read, from its start."""

PhaseOutcome: TypeAlias = Literal["passed", "ended", "failed", "skipped", "unfinished", "not_run"]
"""The outcomes of phases; unfinished: it started, but has no recorded end, as after a kill."""
_ENDED: tuple[PhaseOutcome, ...] = ("passed", "ended", "failed", "skipped")


class PhaseResult(Record):
    """A phase over all runs that worked on it."""

    phase: str
    outcome: PhaseOutcome = "not_run"
    """Its last outcome."""
    reason: str = ""
    cause: str = ""
    """As of `PhaseEnd`."""
    tries: int = 0
    """How often it was started."""
    seconds: float = 0.0
    """Of all attempts."""
    cost: float | None = 0.0
    """USD of its agents in all attempts; None if unknown."""
    agents: int = 0
    blocking: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    since: str = ""
    """Evidence older than this commit does not count; empty for any."""

    @property
    def is_done(self) -> bool:
        """Whether its outcome allows the next phase to start."""
        return self.outcome in ("passed", "ended", "skipped")


class History(Record):
    """The runs of the current prompt."""

    phases: tuple[PhaseResult, ...]
    """All phases in order."""
    runs: int = 0


def history_of(files: ProjectFiles) -> History:
    """The history in the journal. Malformed lines are ignored. Blocks.

    Raises:
        FileFault: the journal cannot be read.
    """
    reader = _Reader()
    for event in _events((files.read(NAME, _LARGEST) or b"").splitlines()):
        reader.take(event)
    return History(phases=tuple(reader.phases[phase] for phase in PHASES), runs=reader.runs)


def _events(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


class _Reader:
    """Processes the events of a journal one by one."""

    def __init__(self) -> None:
        self.runs = 0
        self._request: object = None
        self._fresh: tuple[str, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self.phases = {phase: PhaseResult(phase=phase) for phase in PHASES}
        self.runs = 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Process one event; unknown ones are skipped."""
        kind, phase = event.get("event"), _text(event.get("phase"))
        if kind == "begin":
            self._begin(event)
        elif kind == "base":
            commit = event.get("commit")
            self._change(self._fresh, since=commit if isinstance(commit, str) else "")
            self._fresh = ()
        elif phase in self.phases:
            self._take_of(str(kind), self.phases[phase], event)

    def _begin(self, event: Mapping[str, Any]) -> None:
        request, phase = event.get("request"), _text(event.get("phase"))
        if request != self._request:
            self._clear()
            self._request, self._fresh = request, PHASES
        self.runs += 1
        if phase in self.phases:
            again = PHASES[PHASES.index(phase) :]
            if any(self.phases[one].is_done for one in again):  # the run went back to an earlier phase
                self._fresh = again
            self._change(again, outcome="not_run", reason="", cause="", blocking=(), carried=())

    def _change(self, phases: Iterable[str], **fields: Any) -> None:
        for phase in phases:
            self.phases[phase] = self.phases[phase].replace(**fields)

    def _take_of(self, kind: str, result: PhaseResult, event: Mapping[str, Any]) -> None:
        name = result.phase
        if kind == "phase_begin":
            self._change([name], outcome="unfinished", tries=result.tries + 1)
        elif kind == "phase_end" and event.get("outcome") in _ENDED:
            self._change(
                [name],
                outcome=event["outcome"],
                reason=_text(event.get("reason")),
                cause=_text(event.get("cause")),
                seconds=result.seconds + _number(event.get("seconds")),
                blocking=_texts(event.get("blocking")),
                carried=_texts(event.get("carried")),
            )
        elif kind == "agent":
            cost = event.get("cost")
            is_known = result.cost is not None and isinstance(cost, (int, float))
            total = (result.cost or 0.0) + _number(cost) if is_known else None
            self._change([name], cost=total, agents=result.agents + 1)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
