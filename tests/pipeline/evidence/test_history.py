"""What the journal tells over several runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marvin_pipeline.evidence.ci.history import History, PhaseResult, history_of
from marvin_pipeline.run.files import ProjectFiles

OLD, NEW = "a" * 40, "b" * 40


def history(folder: Path, *events: dict[str, Any] | str) -> History:
    """The history that a journal of these events tells."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    files = ProjectFiles(folder)
    files.write("logs/pipeline.jsonl", "\n".join(lines).encode())
    return history_of(files)


def begin(phase: str = "1a", request: str = "r1", commit: str = OLD) -> list[dict[str, Any]]:
    """A run that begins."""
    return [{"event": "begin", "request": request, "phase": phase}, {"event": "base", "commit": commit}]


def ended(phase: str, outcome: str = "passed", **more: Any) -> list[dict[str, Any]]:
    """A phase from its beginning to its end, with an agent."""
    agent = {"event": "agent", "phase": phase, "cost": 0.5}
    end = {"event": "phase_end", "phase": phase, "outcome": outcome, "reason": "So.", "seconds": 2.0, **more}
    return [{"event": "phase_begin", "phase": phase}, agent, end]


def of(found: History, phase: str) -> PhaseResult:
    return next(one for one in found.phases if one.phase == phase)


def test_what_several_runs_took_is_added_up_and_the_last_end_counts(tmp_path: Path) -> None:
    events = [*begin(), *ended("1a", "failed", cause="tests", blocking=["high: x"]), *begin(), *ended("1a")]
    found = history(tmp_path, *events)
    first = of(found, "1a")
    assert (found.runs, first.outcome, first.tries, first.seconds, first.cost) == (2, "passed", 2, 4.0, 1.0)
    assert (first.blocking, first.cause, first.since) == ((), "", OLD)
    assert of(found, "5").outcome == "not_run"


def test_a_phase_without_an_end_is_unfinished(tmp_path: Path) -> None:
    found = history(tmp_path, *begin(), *ended("1a"), {"event": "phase_begin", "phase": "1a_review"})
    assert of(found, "1a_review").outcome == "unfinished"
    resumed = history(tmp_path, *begin(), {"event": "phase_begin", "phase": "1a"}, *begin("1a"))
    assert of(resumed, "1a").outcome == "not_run"


def test_an_agent_whose_cost_nobody_knows_makes_the_sum_unknown(tmp_path: Path) -> None:
    unknown = {"event": "agent", "phase": "1a", "cost": None}
    found = history(tmp_path, *begin(), {"event": "phase_begin", "phase": "1a"}, unknown, *ended("1a"))
    assert of(found, "1a").cost is None


def test_going_back_makes_older_evidence_of_those_phases_worthless(tmp_path: Path) -> None:
    events = [*begin(), *ended("1a"), *ended("1a_review"), *ended("1b"), *begin("1a_review", commit=NEW)]
    found = history(tmp_path, *events)
    assert [of(found, phase).outcome for phase in ("1a", "1a_review", "1b")] == ["passed", "not_run", "not_run"]
    assert [of(found, phase).since for phase in ("1a", "1a_review", "1b", "5")] == [OLD, NEW, NEW, NEW]


def test_going_on_keeps_older_evidence_of_the_phase(tmp_path: Path) -> None:
    found = history(tmp_path, *begin(), *ended("1a"), *begin("1a_review", commit=NEW))
    assert [of(found, phase).since for phase in ("1a", "1a_review", "5")] == [OLD, OLD, OLD]


def test_another_prompt_begins_another_history(tmp_path: Path) -> None:
    found = history(tmp_path, *begin(), *ended("1a"), *begin(request="r2", commit=NEW))
    assert (found.runs, of(found, "1a")) == (1, PhaseResult(phase="1a", since=NEW))


def test_lines_that_are_none_do_not_count(tmp_path: Path) -> None:
    odd = ["", "{", "[]", "7", "[" * 100_000, '{"event": "phase_end", "phase": "1a", "outcome": []}']
    more = {"event": "phase_end", "phase": "1a", "outcome": "passed", "seconds": "x", "blocking": 7, "reason": {}}
    found = history(tmp_path, *begin(), *odd, {"event": "phase_begin", "phase": ["1a"]}, more)
    assert (of(found, "1a").outcome, of(found, "1a").seconds, of(found, "1a").blocking) == ("passed", 0.0, ())
