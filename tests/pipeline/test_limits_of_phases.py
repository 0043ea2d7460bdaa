"""Money and time: each phase ends at them, with a report and exit code 3, and the next run goes on in it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from marvin_pipeline.state import PHASES
from tests.e2e.support_e2e import Marvin, Result, wait_until
from tests.support.agents import agents_in
from tests.support.pipeline import FIRST, WITH_A_PAGE, PipelineModels, dear

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROMPT = "Build adder, a program that adds two numbers."


def run(marvin: Marvin, phase: str, *flags: str) -> Result:
    """A run that goes no further than a phase."""
    prompt = () if (marvin.project / ".marvin/request.md").exists() else ("--prompt", PROMPT)
    own = ("--non-interactive", "--design-first", "--working-dir=.", f"--until={phase}")
    return marvin.run(*own, *prompt, *flags, limit=600)


def nothing_left(marvin: Marvin, models: PipelineModels, phase: str) -> Result:
    """A ceiling that covers not one request."""
    before = len(models.asked)
    done = run(marvin, phase, "--max-cost=0.0005")
    assert models.asked[before:] == []
    assert done.cost()["session_cost"] == 0
    return done


def in_the_middle(marvin: Marvin, models: PipelineModels, phase: str) -> Result:
    """A ceiling that the first answer of the phase uses up."""
    role, before = FIRST[phase], len(models.asked)
    usual = models.scripts[role]
    models.scripts[role] = dear(usual)
    done = run(marvin, phase, "--max-cost=0.3")
    models.scripts[role] = usual
    assert role in models.asked[before:]
    return done


def out_of_time(marvin: Marvin, models: PipelineModels, phase: str) -> Result:
    """An agent that does not come to its end."""
    held = threading.Event()
    models.holds[FIRST[phase]] = held
    done = run(marvin, phase, "--max-time=3s")
    del models.holds[FIRST[phase]]
    held.set()
    assert "has reached its time limit of 3 s" in done.text
    return done


@pytest.mark.parametrize("limited", [nothing_left, in_the_middle, out_of_time])
def test_each_phase_ends_at_its_limit_and_goes_on_with_the_next_run(
    marvin: Marvin, models: PipelineModels, limited: Any
) -> None:
    """I22"""
    models.scripts |= WITH_A_PAGE
    state = marvin.project / ".marvin/pipeline_state"
    for phase in PHASES:
        before = state.read_text() if state.exists() else ""
        done = limited(marvin, models, phase)
        assert done.code == 3, done.err.decode() + done.text
        assert "reached its limit" in done.text
        found = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
        assert (found["ended"], found["exit_code"], found["next_phase"]) == ("budget", 3, phase)
        assert (state.read_text() if state.exists() else "") == before
        wait_until(lambda: not agents_in(marvin.home), "the end of the agents")
        done = run(marvin, phase)
        # The program subtracts until phase 4a, and a run that was to end before that with red tests is not green.
        assert done.code == (5 if phase == "3" else 0), done.err.decode() + done.text
        assert state.read_text() == phase
    lines = (marvin.project / ".marvin/logs/pipeline.jsonl").read_text().splitlines()
    ends = [line for line in map(json.loads, lines) if line["event"] == "phase_end"]
    assert [line["phase"] for line in ends if line["outcome"] != "failed"] == list(PHASES)
    assert models.asked.count("tests") == 1
