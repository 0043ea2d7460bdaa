"""What the journal tells of all runs: how each phase ended last, what it took, and from where evidence counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from marvin_core import Record

from ...run.files import ProjectFiles
from ...run.journal import NAME
from ...state import PHASES

_LARGEST = 100_000_000
"""Bytes of the journal that are read, from its beginning."""

PhaseOutcome: TypeAlias = Literal["passed", "ended", "failed", "skipped", "unfinished", "not_run"]
"""As phases end; unfinished: it began, and nothing tells of its end, as after a kill."""
_ENDED: tuple[PhaseOutcome, ...] = ("passed", "ended", "failed", "skipped")


class PhaseResult(Record):
    """A phase over all runs that worked on it."""

    phase: str
    outcome: PhaseOutcome = "not_run"
    """How it ended the last time."""
    reason: str = ""
    cause: str = ""
    """As of `PhaseEnd`."""
    tries: int = 0
    """How often it was begun."""
    seconds: float = 0.0
    """All tries together."""
    cost: float | None = 0.0
    """USD of its agents, all tries together; None where one did not come to tell."""
    agents: int = 0
    blocking: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    since: str = ""
    """The commit that evidence of it may not be older than; empty for any."""

    @property
    def is_done(self) -> bool:
        """Whether it came to an end with which the next one could begin."""
        return self.outcome in ("passed", "ended", "skipped")


class History(Record):
    """The runs since the prompt is what it is."""

    phases: tuple[PhaseResult, ...]
    """All there are, in their order."""
    runs: int = 0


def history_of(files: ProjectFiles) -> History:
    """What the journal tells. A line that is none does not count. Blocks.

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
    """Takes the events of a journal, one by one."""

    def __init__(self) -> None:
        self.runs = 0
        self._request: object = None
        self._fresh: tuple[str, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self.phases = {phase: PhaseResult(phase=phase) for phase in PHASES}
        self.runs = 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event; one of another form is passed over."""
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
            if any(self.phases[one].is_done for one in again):  # somebody went back
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
