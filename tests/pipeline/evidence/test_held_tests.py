"""Agents that weaken, skip, delete or mock tests, each a real Marvin of its own: all are caught and sent back."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from marvin_core.testing.answers import Answer
from tests.e2e.support_e2e import Marvin, Result, wait_until
from tests.support.agents import agents_in
from tests.support.pipeline import Asked, PipelineModels, Script, called, found, said, steps, verdict, writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DOCUMENT = "# The design of adder\n\n" + "It says in all detail what there is to be said. " * 30
TESTS = (
    "from adder import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n\n\n"
    "def test_zero():\n    assert add(0, 0) == 0\n"
)
WEAK = TESTS.replace("assert add(2, 3) == 5", "assert add(2, 3)")
SKIPPED = TESTS.replace("def test_adds", "import pytest\n\n\n@pytest.mark.skip\ndef test_adds")
FEWER = TESTS.partition("\n\n\ndef test_zero")[0] + "\n"
MOCKED = TESTS.replace("from adder", "from unittest import mock\n\nfrom adder")
WRONG = "def add(a, b):\n    return a * b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
JUDGED = '{{"places": [{{"id": "W1", "verdict": "{verdict}", "reason": "The design says that it adds."}}]}}'


def lay(marvin: Marvin, files: Mapping[str, str]) -> None:
    """A repository with files and a design."""
    marvin.make_repository()
    for name, text in {".marvin/design.md": DOCUMENT, **files}.items():
        path = marvin.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    marvin.git("rm", "-q", "total.py")
    marvin.git("add", "-A")
    marvin.git("commit", "-q", "-m", "The tests")


def phase(marvin: Marvin, first: str, last: str = "") -> Result:
    """Some phases of the pipeline."""
    own = ("--non-interactive", "--design-first", "--working-dir=.", f"--from={first}", f"--until={last or first}")
    return marvin.run(*own, "--prompt", "Build adder.", limit=600)


def gates(marvin: Marvin, name: str = "unweakened") -> list[dict[str, Any]]:
    """The gates of one name in the evidence."""
    lines = (marvin.project / ".marvin/logs/evidence.jsonl").read_text().split("\n")
    return [gate for gate in map(json.loads, filter(None, lines)) if gate["name"] == name]


def outcomes(marvin: Marvin, name: str = "unweakened") -> list[tuple[str, str]]:
    """Phase and outcome of these gates; what was found twice in a row counts once."""
    ends = [(gate["phase"], gate["outcome"]) for gate in gates(marvin, name)]
    return [each for each, before in zip(ends, [None, *ends], strict=False) if each != before]


def in_turn(*agents: Script) -> Script:
    """What each agent of a role does, one agent after the other; the last one for all further."""
    begun: list[Asked] = []

    def script(asked: Asked) -> Answer:
        if asked.step == 0:
            begun.append(asked)
        return agents[min(len(begun), len(agents)) - 1](asked)

    return script


def deletes(name: str) -> Script:
    """An agent that deletes a file, and writes the program."""

    def ticket(asked: Asked) -> Answer:
        line = f"create 'Tidy up' --parent {asked.ticket} -d 'It is not needed.' --acceptance 'It is gone.'"
        return called(("tk", {"args": line}))

    made = called(("run_command", {"command": f"rm {name}"}), ("write_file", {"path": "adder.py", "content": RIGHT}))
    return steps(ticket, ticket, made, said("It is done."))


def judging(verdict: str) -> Script:
    return steps(said(JUDGED.format(verdict=verdict)))


@pytest.mark.parametrize(
    ("cheat", "what"),
    [
        ({"tests/test_adder.py": WEAK, "adder.py": WRONG}, "weaker, `truthy` in place of `exact`"),
        ({"tests/test_adder.py": SKIPPED, "adder.py": WRONG}, "it is skipped, or allowed to fail: @pytest.mark.skip"),
        (
            {"tests/test_adder.py": FEWER, "adder.py": RIGHT},
            "test_zero: the test was removed, or no runner finds it any more",
        ),
        (
            {"tests/test_adder.py": "", "adder.py": RIGHT},
            "test_adds: the test was removed, or no runner finds it any more",
        ),
        ({"pytest.ini": "[pytest]\naddopts = -k zero\n", "adder.py": WRONG}, "addopts"),
        ({"tests/sums.json": '{"2+3": 6}', "adder.py": WRONG}, "a file beside the tests"),
        (None, "test_adds: the test was removed, or no runner finds it any more"),
    ],
)
def test_an_agent_that_has_tests_ask_for_less_is_sent_back_and_brings_them_back(
    marvin: Marvin, models: PipelineModels, cheat: Mapping[str, str] | None, what: str
) -> None:
    whole = {"tests/test_adder.py": TESTS, "tests/sums.json": '{"2+3": 5}'}
    lay(marvin, whole)
    changed = [name for name in cheat or ("tests/test_adder.py",) if name != "adder.py"]
    back = {name: whole.get(name, "[pytest]\n") for name in changed}
    cheats = writer(cheat, "Add", reads=[name for name in cheat if name in whole]) if cheat else deletes(*changed)
    read = [*(changed if cheat else ()), "adder.py"]
    models.scripts |= {
        "implementation": cheats,
        "tests_judge": judging("rejected"),
        "sent_back": writer({**back, "adder.py": RIGHT}, "Bring the tests back", reads=read),
    }
    done = phase(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    assert what.partition(": @")[0] in models.newest["tests_judge"]
    assert what in models.newest["sent_back"]
    assert "The design says that it adds." in models.newest["sent_back"], "the agent is told what the reviewer said"
    assert models.asked.count("sent_back") == 1
    assert outcomes(marvin) == [("3", "not_measured"), ("3", "passed")]
    assert gates(marvin)[-1]["commit"] in marvin.git("log", "--format=%H")


def test_what_a_review_let_stand_is_recorded_with_its_session(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"tests/test_adder.py": TESTS})
    models.scripts |= {
        "implementation": writer(
            {"tests/test_adder.py": WEAK, "adder.py": RIGHT}, "Add", reads=["tests/test_adder.py"]
        ),
        "tests_judge": judging("accepted"),
    }
    done = phase(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    assert "sent_back" not in models.asked
    assert outcomes(marvin) == [("3", "not_measured"), ("3", "accepted")]
    accepted = gates(marvin)[-1]
    assert accepted["tests"] == ["tests/test_adder.py::test_adds"]
    assert "The design says that it adds." in accepted["reason"]
    sessions = [
        line["session"]
        for line in map(json.loads, (marvin.project / ".marvin/logs/pipeline.jsonl").read_text().splitlines())
        if line["event"] == "agent" and line["role"] == "code_reviewer"
    ]
    assert accepted["accepted_by"] == sessions[0]
    # What was accepted is what the next phase is held to: nobody is asked again.
    again = phase(marvin, "4a")
    assert again.code == 0, again.err.decode() + again.text
    assert models.asked.count("tests_judge") == 1


@pytest.mark.parametrize("verdict", ["rejected", "perhaps"])
def test_an_agent_that_insists_ends_the_run_with_5(marvin: Marvin, models: PipelineModels, verdict: str) -> None:
    lay(marvin, {"tests/test_adder.py": TESTS})
    models.scripts |= {
        "implementation": writer(
            {"tests/test_adder.py": WEAK, "adder.py": WRONG}, "Multiply", reads=["tests/test_adder.py"]
        ),
        "tests_judge": judging(verdict),
        "sent_back": steps(said("The tests are better as they are now.")),
    }
    done = phase(marvin, "3")
    assert done.code == 5, done.err.decode() + done.text
    assert models.asked.count("sent_back") == 3
    assert outcomes(marvin)[-1] == ("3", "failed")
    assert "tests/test_adder.py:5: test_adds: an assertion was changed" in done.text + done.said
    assert (marvin.project / ".marvin/pipeline_state").read_text() == "2b"
    # Whoever runs it again has another try.
    models.scripts["sent_back"] = writer(
        {"tests/test_adder.py": TESTS, "adder.py": RIGHT},
        "The tests pass, but not as they were written: some were",
        reads=["tests/test_adder.py", "adder.py"],
    )
    flags = ("--non-interactive", "--design-first", "--working-dir=.", "--until=3")
    again = marvin.run(*flags, limit=600)
    assert again.code == 0, again.err.decode() + again.text
    assert models.asked.count("implementation") == 1, "what was done is not done twice"


def test_the_tests_of_2b_are_what_later_phases_are_held_to(marvin: Marvin, models: PipelineModels) -> None:
    """Mocks of the writers come back first; then what 4a's agent weakens is a failure of its loop."""
    lay(marvin, {"README.md": "# adder\n"})
    weakens = writer({"tests/test_adder.py": WEAK}, "Make them pass", reads=["tests/test_adder.py"])
    mends = writer({"tests/test_adder.py": TESTS, "adder.py": RIGHT}, "Add", reads=["tests/test_adder.py", "adder.py"])
    prompts: list[str] = []

    def kept(script: Script) -> Script:
        def keeping(asked: Asked) -> Answer:
            if asked.step == 0:
                prompts.append(asked.prompt)
            return script(asked)

        return keeping

    models.scripts |= {
        "structure": writer({"pyproject.toml": '[project]\nname = "adder"\nversion = "1"\n'}, "Set up adder"),
        "tests": writer({"tests/test_adder.py": MOCKED}, "Test adder"),
        "sent_back": writer({"tests/test_adder.py": TESTS}, "Without a mock", reads=["tests/test_adder.py"]),
        "integration_tests": writer(
            {"tests/test_program.py": "import adder\n\n\ndef test_is_there():\n    assert adder\n"}, "Test"
        ),
        "implementation": writer({"adder.py": WRONG}, "Multiply"),
        "debug": in_turn(kept(weakens), kept(mends)),
        "tests_judge": judging("rejected"),
    }
    done = phase(marvin, "2a", "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert "use the real part" in models.newest["sent_back"], "it is told what to write instead"
    assert models.asked.count("sent_back") == 1
    assert outcomes(marvin, "no_mocks")[:2] == [("2a", "passed"), ("2b", "passed")]
    assert outcomes(marvin) == [
        ("2b", "passed"),
        ("3", "passed"),
        ("4a", "failed"),
        ("4a", "passed"),
    ]
    assert len(prompts) == 2
    assert "The tests pass, but not as they were written: some were" in " ".join(prompts[1].split())
    assert (marvin.project / "tests/test_adder.py").read_text() == TESTS


def test_mocks_that_stay_are_a_finding(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"README.md": "# adder\n"})
    models.scripts |= {
        "structure": writer({"pyproject.toml": '[project]\nname = "adder"\nversion = "1"\n'}, "Set up adder"),
        "tests": writer({"tests/test_adder.py": MOCKED}, "Test adder"),
        "sent_back": steps(said("Mocks are fine.")),
    }
    done = phase(marvin, "2a")
    assert done.code != 0
    assert models.asked.count("sent_back") == 2, "a place comes back twice"
    report = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
    (finding,) = report["blocking"]
    assert finding.startswith("high: tests/test_adder.py:1: tests/test_adder.py:1: it replaces real behaviour")
    assert outcomes(marvin, "no_mocks") == [("2a", "failed")]
    assert gates(marvin, "no_mocks")[-1]["places"]


def test_what_git_is_told_to_overlook_is_found(marvin: Marvin, models: PipelineModels) -> None:
    """A test that is changed behind the back of git would be in no commit, and runs all the same."""
    lay(marvin, {"tests/test_adder.py": TESTS})
    marvin.git("update-index", "--assume-unchanged", "tests/test_adder.py")
    models.scripts |= {
        "implementation": writer(
            {"tests/test_adder.py": WEAK, "adder.py": WRONG}, "Multiply", reads=["tests/test_adder.py"]
        ),
        "tests_judge": judging("rejected"),
        "sent_back": steps(said("There is nothing to see.")),
    }
    done = phase(marvin, "3")
    assert done.code == 5, done.err.decode() + done.text
    assert (
        "tests/test_adder.py:1: git is configured to ignore changes of this file, so its content is in no commit"
        in gates(marvin)[-1]["places"][0]
    )


def test_javascript_is_held_to_its_tests_as_well(marvin: Marvin, models: PipelineModels) -> None:
    tests = (
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "const { add } = require('../adder.js');\n\ntest('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n"
    )
    weak = tests.replace("assert.strictEqual(add(2, 3), 5)", "assert.ok(add(2, 3))")
    lay(marvin, {"package.json": '{"scripts": {"test": "node --test"}}', "test/add.test.js": tests})
    models.scripts |= {
        "implementation": writer(
            {"test/add.test.js": weak, "adder.js": "exports.add = (a, b) => a * b;\n"}, "x", reads=["test/add.test.js"]
        ),
        "tests_judge": judging("rejected"),
        "sent_back": writer(
            {"test/add.test.js": tests},
            "Put them back",
            reads=["test/add.test.js"],
        ),
    }
    done = phase(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    assert "weaker, `truthy` in place of `exact`" in models.newest["sent_back"]
    assert outcomes(marvin) == [("3", "not_measured"), ("3", "passed")]


def test_a_run_that_is_killed_does_not_ask_the_reviewer_again(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"tests/test_adder.py": TESTS})
    held = threading.Event()
    models.holds["sent_back"] = held
    models.scripts |= {
        "implementation": writer(
            {"tests/test_adder.py": WEAK, "adder.py": WRONG}, "Multiply", reads=["tests/test_adder.py"]
        ),
        "tests_judge": judging("rejected"),
        "sent_back": writer(
            {"tests/test_adder.py": TESTS, "adder.py": RIGHT},
            "Put them back",
            reads=["tests/test_adder.py", "adder.py"],
        ),
    }
    flags = ("--non-interactive", "--design-first", "--working-dir=.", "--until=3")
    running = marvin.start(*flags, "--from=3", "--prompt", "Build adder.")
    running.until(lambda: models.was_asked("sent_back"), "the agent that is sent back")
    running.send(signal.SIGKILL)
    del models.holds["sent_back"]
    held.set()
    running.finish()
    wait_until(lambda: not agents_in(marvin.home), "the end of the agents")
    done = marvin.run(*flags, limit=600)
    assert done.code == 0, done.err.decode() + done.text
    asked = {role: models.asked.count(role) for role in ("implementation", "tests_judge", "sent_back")}
    assert asked == {"implementation": 1, "tests_judge": 1, "sent_back": 2}
    assert outcomes(marvin) == [("3", "not_measured"), ("3", "passed")]


def test_who_mends_what_an_attack_found_may_not_weaken_tests_either(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"tests/test_adder.py": TESTS, "adder.py": RIGHT})
    broken = found("high", "It adds text as well.", "adder.py")
    models.scripts |= {
        "qa_reviewer": in_turn(lambda asked: verdict(asked, broken), verdict),
        "qa_fixer": writer({"tests/test_adder.py": SKIPPED}, "Mend it", reads=["tests/test_adder.py"]),
        "tests_judge": judging("rejected"),
        "debug": writer(
            {"tests/test_adder.py": TESTS},
            "Put them back",
            reads=["tests/test_adder.py"],
        ),
    }
    done = phase(marvin, "5")
    assert done.code == 0, done.err.decode() + done.text
    assert "it is skipped, or allowed to fail: @pytest.mark.skip" in models.newest["debug"]
    assert outcomes(marvin) == [("5", "not_measured"), ("5", "failed"), ("5", "passed")]
