"""A whole run of the pipeline: real agents, each a Marvin of its own, driven by a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from marvin_pipeline.state import PHASES
from tests.e2e.support_e2e import LIMIT, Marvin, wait_until
from tests.support.agents import agents_in, all_agents_in, processes_in
from tests.support.pipeline import ADDER_IN_JAVASCRIPT, FIRST, WITH_A_PAGE, PipelineModels, said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.")


def report(marvin: Marvin) -> dict[str, Any]:
    """The report of the last run."""
    found: dict[str, Any] = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
    return found


def journal(marvin: Marvin) -> list[dict[str, Any]]:
    """What happened in all runs."""
    lines = (marvin.project / ".marvin/logs/pipeline.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def gates(marvin: Marvin) -> list[dict[str, Any]]:
    """The gates of all runs."""
    lines = (marvin.project / ".marvin/logs/evidence.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line]


RED = ("tests/test_adder.py", "tests.integration.test_program.Program.test_prints_the_sum")


def test_from_a_sentence_to_a_program_that_works(marvin: Marvin, models: PipelineModels) -> None:
    env = {"GIT_DIR": "/nonexistent/.git", "MARVIN_SANDBOX": "auto"}
    done = marvin.run(*FLAGS, "--prompt", PROMPT, limit=600, env=env)
    assert done.code == 0, done.err.decode() + done.text
    assert done.text.startswith("The pipeline is done.")
    assert done.cost()["session_cost"] > 0
    found = report(marvin)
    assert [one["phase"] for one in found["phases"]] == list(PHASES)
    assert {one["phase"]: one["ended"] for one in found["phases"]}["4a"] == "passed"
    assert (found["ended"], found["exit_code"], found["next_phase"], found["blocking"]) == ("done", 0, "", [])
    assert found["cost"] == pytest.approx(done.cost()["session_cost"])
    assert (marvin.project / ".marvin/pipeline_state").read_text() == "5"
    assert (marvin.project / "adder.py").read_text().count("a + b") == 1
    # 000 section 4.4: each agent knows the project, its documents, its files, and that nothing is mocked.
    for role, prompt in models.newest.items():
        assert "no mocks" in prompt, role
        assert f"# The project {marvin.project.name}" in prompt, role
        assert role in ("spec", "ux") or "## .marvin/spec.md\n# The specification of adder" in prompt, role
    tiers = {agent["role"]: agent["model"] for agent in found["agents"]}
    assert (tiers["spec"], tiers["tests"], tiers["implementation"]) == ("plan_gen", "test_writer", "codex")
    assert (tiers["reviewer"], tiers["aux_reviewer"], tiers["debug"]) == ("opus", "aux_reviewer", "plan")
    # What was red for the right reason, and is green.
    proofs = [gate for gate in gates(marvin) if gate["name"] in ("red", "green")]
    assert [(gate["name"], gate["phase"], gate["outcome"]) for gate in proofs] == [
        ("red", "2a", "passed"),
        ("red", "2b", "passed"),
        ("green", "3", "failed"),
        ("green", "4a", "passed"),
    ]
    assert [gate["tests"] for gate in proofs][::3] == [["tests/test_adder.py"], [*RED]]
    # Nobody weakened them meanwhile, and nothing stands in for real behaviour.
    others = {(gate["name"], gate["phase"]): gate["outcome"] for gate in gates(marvin) if gate not in proofs}
    assert {others["no_mocks", phase] for phase in ("2a", "2b", "3", "4a", "4b", "5")} == {"passed"}
    assert {others["unweakened", phase] for phase in ("2b", "3", "4a", "4b", "5")} == {"passed"}
    assert ("mutations", "4a") in others
    # An epic with a ticket for each agent that writes, below which the agents made their own.
    tickets = marvin.run("tk", "show", found["epic"]).text
    assert "type: epic" in tickets
    assert PROMPT in tickets
    writers = ("spec", "ux", "fixer", "design", "structure", "tests", "debug")
    own = [agent["ticket"] for agent in found["agents"] if agent["role"] in writers]
    assert len(set(own)) == len(own)
    assert not {"", found["epic"]} & set(own)
    # Everything is committed, and nothing is left over.
    left = set(marvin.git("status", "--porcelain").replace("?? ", "").splitlines())
    assert left <= {".marvin/.gitignore", ".tickets/"}  # commands in the sandbox do not see the tickets
    again = marvin.run(*FLAGS)
    assert (again.code, report(marvin)["phases"]) == (0, [])


def test_a_run_that_is_killed_at_each_phase_does_no_phase_twice(marvin: Marvin, models: PipelineModels) -> None:
    """I1, I2: what was done stays done; an agent that was killed is started again."""
    models.scripts |= WITH_A_PAGE
    for number, role in enumerate(FIRST.values()):
        held, before = threading.Event(), len(models.asked)
        models.holds[role] = held
        running = marvin.start(*FLAGS, *(["--prompt", PROMPT] if number == 0 else []))
        running.until(partial(models.was_asked, role, before), f"the agent {role}")
        running.send(signal.SIGKILL)
        del models.holds[role]
        held.set()
        assert running.finish().code == -signal.SIGKILL
        wait_until(lambda: not agents_in(marvin.home), "the end of the agents", LIMIT)
    done = marvin.run(*FLAGS, limit=600)
    assert done.code == 0, done.err.decode() + done.text
    asked = {role: models.asked.count(role) for role in FIRST.values()}
    once_more = ("spec", "design", "structure", "integration_tests", "implementation", "debug", "e2e", "frontend")
    assert {role: asked[role] for role in once_more} == dict.fromkeys(once_more, 2)
    assert models.asked.count("tests") == 1
    ends = [line for line in journal(marvin) if line["event"] == "phase_end"]
    assert [line["phase"] for line in ends] == list(PHASES)
    assert "skipped" not in {line["outcome"] for line in ends}
    assert not processes_in(marvin.home), "what serves the page has ended"


def test_agents_that_are_killed_in_each_phase_lose_nothing(marvin: Marvin, models: PipelineModels) -> None:
    """The run has others take their place, or ends so that the next one does."""
    models.scripts |= WITH_A_PAGE
    codes = set()
    for phase, role in FIRST.items():
        held, before = threading.Event(), len(models.asked)
        models.holds[role] = held
        running = marvin.start(*FLAGS, f"--until={phase}", *(["--prompt", PROMPT] if phase == "1a" else []))
        running.until(partial(models.was_asked, role, before), f"the agent {role}")
        for agent in all_agents_in(marvin.home):
            with suppress(ProcessLookupError):  # one ends by itself when its parent has been killed
                os.kill(agent.pid, signal.SIGKILL)
        del models.holds[role]
        held.set()
        done = running.finish(600)
        codes.add(done.code)
        well = 5 if phase == "3" else 0  # the program subtracts until phase 4a
        assert done.code in (well, 1), done.err.decode() + done.text
        if done.code == 1:
            assert report(marvin)["next_phase"] == phase
            again = marvin.run(*FLAGS, f"--until={phase}", limit=600)
            assert again.code == well, again.err.decode() + again.text
        assert (marvin.project / ".marvin/pipeline_state").read_text() == phase
    assert {0, 1} <= codes
    ends = [line for line in journal(marvin) if line["event"] == "phase_end" and line["outcome"] != "failed"]
    assert [line["phase"] for line in ends] == list(PHASES)


def test_a_run_under_a_ceiling_ends_with_3_and_goes_on_with_the_next(marvin: Marvin, models: PipelineModels) -> None:
    codes = []
    for number in range(12):
        done = marvin.run(*FLAGS, "--max-cost=0.06", *(["--prompt", PROMPT] if number == 0 else []), limit=600)
        codes.append(done.code)
        assert done.cost()["session_cost"] <= 0.06
        if done.code == 0:
            break
        assert done.code == 3, done.err.decode() + done.text
        assert "reached its limit" in done.text
        assert report(marvin)["ended"] == "budget"
    assert codes[-1] == 0
    assert len(codes) > 2, "the ceiling was never reached"
    assert models.asked.count("tests") == 1
    assert [
        line["phase"] for line in journal(marvin) if line["event"] == "phase_end" and line["outcome"] != "failed"
    ] == [*PHASES]


def test_the_time_of_a_run_is_limited(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = models.holds["ux"] = held
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--max-time=3s", limit=600)
    held.set()
    assert done.code == 3, done.err.decode() + done.text
    assert "has reached its time limit of 3 s" in done.text
    assert report(marvin)["next_phase"] == "1a"


def test_writers_that_write_nothing_but_words_end_the_run(marvin: Marvin, models: PipelineModels) -> None:
    """I5, I12: what an agent says never becomes a document."""
    models.scripts["spec"] = lambda asked: said("# The specification\n\n" + "I would write a lot here. " * 200)
    done = marvin.run(*FLAGS, "--prompt", PROMPT, limit=600)
    assert done.code == 1
    assert "spec.md was not written in 3 attempts" in done.text
    assert models.asked.count("spec") == 3
    assert models.asked.count("ux") == 1
    assert not (marvin.project / ".marvin/spec.md").exists()
    assert (marvin.project / ".marvin/ux.md").exists()
    assert not (marvin.project / ".marvin/pipeline_state").exists()


@pytest.mark.skipif(not shutil.which("node") or not shutil.which("npm"), reason="node or npm is missing")
def test_the_same_in_javascript(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts |= ADDER_IN_JAVASCRIPT
    done = marvin.run(*FLAGS, "--prompt", PROMPT, limit=600, env={"MARVIN_SANDBOX": "auto"})
    assert done.code == 0, done.err.decode() + done.text
    ends = {one["phase"]: one for one in report(marvin)["phases"]}
    assert list(ends) == list(PHASES)
    assert ends["4a"]["ended"] == "passed"
    assert "2 tests passed" in ends["4a"]["reason"]
    assert models.asked.count("debug") == 1
