"""Phases 4a to 5 with real agents: what passes, what is mended, and what ends although agents do their worst."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin, Result, wait_until
from tests.support.agents import agents_in, processes_in
from tests.support.pipeline import Asked, PipelineModels, Script, called, found, said, steps, writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ADD = "def add(a, b):\n    return a {sign} b\n"
TESTS = (
    "from adder import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n\n\n"
    "def test_zero():\n    assert add(0, 0) == 0\n"
)
BROKEN = {"adder.py": ADD.format(sign="-"), "test_adder.py": TESTS}
SOUND = {"adder.py": ADD.format(sign="+"), "test_adder.py": TESTS}
MENDS = writer({"adder.py": ADD.format(sign="+")}, "Add", reads=("adder.py",))
IDLE = steps(said("I have looked at it, and all is well."))
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")


def lay(marvin: Marvin, files: Mapping[str, str]) -> None:
    """A repository with files."""
    marvin.make_repository()
    for name, text in files.items():
        path = marvin.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    marvin.git("rm", "-q", "total.py")
    marvin.git("add", "-A")
    marvin.git("commit", "-q", "-m", "The program")


def phase(marvin: Marvin, name: str, *flags: str) -> Result:
    """One phase of the pipeline, on its own."""
    own = ("--non-interactive", "--design-first", "--working-dir=.", f"--from={name}", f"--until={name}")
    return marvin.run(*own, *flags, "--prompt", "Build adder.", limit=600)


def checks(marvin: Marvin) -> list[dict[str, Any]]:
    """The checks of the run, as the journal has them."""
    lines = (marvin.project / ".marvin/logs/pipeline.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == "check"]


def report(marvin: Marvin) -> dict[str, Any]:
    """How the phase ended."""
    (one,) = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())["phases"]
    return dict(one)


def test_tests_that_pass_need_no_agent_that_mends(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, SOUND)
    done = phase(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert "debug" not in models.asked
    assert "2 tests passed" in report(marvin)["reason"]


def test_an_agent_that_does_nothing_ends_the_loop_after_the_strategy_was_changed(
    marvin: Marvin, models: PipelineModels
) -> None:
    lay(marvin, BROKEN)
    prompts: list[str] = []

    def idle(asked: Asked) -> Any:
        prompts.append(asked.prompt)
        return said("I have looked at it, and all is well.")

    models.scripts |= {"debug": idle, "diagnosis": steps(said("The sign in adder.py:2 is wrong."))}
    done = phase(marvin, "4a")
    assert done.code == 5
    assert {one["strategy"] for one in checks(marvin)} == {"fix", "diagnose", "rethink", ""}
    assert checks(marvin)[-1]["end"] == "repeated"
    assert len(prompts) < 10
    assert "Nothing in the project has changed since" in prompts[1]
    assert any("The sign in adder.py:2 is wrong." in prompt for prompt in prompts)
    assert "The current approach does not work" in prompts[-1]
    assert any("test_adds" in line for line in report(marvin)["blocking"])


def test_rounds_are_limited_by_their_variable(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, BROKEN)
    marvin.env["MARVIN_DEBUG_ROUNDS"] = "1"
    models.scripts["debug"] = IDLE
    assert phase(marvin, "4a").code == 5
    assert models.asked.count("debug") == 1
    assert "its limit of 1 round was reached" in report(marvin)["reason"]


def test_rounds_that_were_done_before_a_kill_count(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, BROKEN)
    marvin.env["MARVIN_DEBUG_ROUNDS"] = "2"
    held, prompts = threading.Event(), list[str]()

    def idle(asked: Asked) -> Any:
        prompts.append(asked.prompt)
        models.holds["debug"] = held  # from the second agent on
        return said("I have looked at it, and all is well.")

    models.scripts["debug"] = idle
    flags = ("--non-interactive", "--design-first", "--working-dir=.", "--until=4a")
    running = marvin.start(*flags, "--from=4a", "--prompt", "Build adder.")
    running.until(lambda: models.asked.count("debug") == 2, "the second round")
    running.send(signal.SIGKILL)
    held.set()
    running.finish()
    wait_until(lambda: not agents_in(marvin.home), "the end of the agents")
    done = marvin.run(*flags, limit=600)
    assert done.code == 5, done.err.decode() + done.text
    assert models.asked.count("debug") == 3
    assert "This is round 2 of 2" in prompts[-1]
    assert "its limit of 2 rounds was reached" in report(marvin)["reason"]
    # Whoever runs it again wants another try.
    assert marvin.run(*flags, limit=600).code == 5
    assert models.asked.count("debug") == 5


def test_an_agent_that_removes_the_test_that_fails_has_not_made_it_pass(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, BROKEN)
    prompts: list[str] = []
    cheats = writer({"test_adder.py": TESTS.replace("def test_adds", "def unwanted")}, "Less", reads=("test_adder.py",))
    honest = writer(SOUND, "Add", reads=("test_adder.py", "adder.py"))

    def debug(asked: Asked) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return (cheats if "only 1 of the earlier 2" not in asked.prompt else honest)(asked)

    models.scripts["debug"] = debug
    done = phase(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 2
    assert "The project must pass its original tests: restore those" in prompts[1]
    assert (marvin.project / "test_adder.py").read_text() == TESTS


def test_a_test_that_goes_in_a_later_phase_is_missed_as_well(marvin: Marvin, models: PipelineModels) -> None:
    """Also where the run was killed in between: how many there were is noted."""
    lay(marvin, SOUND)
    assert phase(marvin, "4a").code == 0
    script = {".marvin/smoke.sh": 'set -e\ntest "$(python3 -c "import adder; print(adder.add(20, 22))")" = 42\n'}
    fewer = {"test_adder.py": TESTS.replace("def test_zero", "def unwanted")}
    prompts: list[str] = []
    cheats = writer({**script, **fewer}, "Try it", reads=("test_adder.py",))
    honest = writer(
        {"test_adder.py": TESTS},
        "Put it back",
        reads=("test_adder.py",),
    )

    def e2e(asked: Asked) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return (honest if "only 1 of the earlier 2" in asked.prompt else cheats)(asked)

    models.scripts["e2e"] = e2e
    done = phase(marvin, "4b")
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 2
    assert (marvin.project / "test_adder.py").read_text() == TESTS


def test_a_project_without_tests_is_no_project_that_passes(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"adder.py": ADD.format(sign="+")})
    models.scripts["debug"] = writer({"test_adder.py": TESTS}, "Test it")
    done = phase(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert checks(marvin)[0]["failure"] == "no tests"


def test_tests_that_hang_are_ended(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"test_hang.py": "import time\n\n\ndef test_hangs():\n    time.sleep(3600)\n"})
    with (marvin.config_folder / "config.yaml").open("a") as config:
        config.write("packs: {pipeline: {command_timeout: 5, debug_rounds: 0}}\n")
    done = phase(marvin, "4a")
    assert done.code == 5
    assert "did not end within 5 s" in report(marvin)["blocking"][0]
    assert not processes_in(marvin.home)


def test_a_command_takes_no_longer_than_the_run_has_left(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {"test_hang.py": "import time\n\n\ndef test_hangs():\n    time.sleep(3600)\n"})
    done = phase(marvin, "4a", "--max-time=5s")
    assert done.code == 3, done.err.decode() + done.text
    assert "debug" not in models.asked
    assert not processes_in(marvin.home)


@needs_node
def test_a_javascript_project_is_debugged_too(marvin: Marvin, models: PipelineModels) -> None:
    test = (
        "const test = require('node:test');\nconst assert = require('node:assert');\nconst add = require('./add');\n"
        "test('adds', () => assert.strictEqual(add(2, 3), 5));\n"
    )
    manifest = json.dumps({"name": "adder", "version": "1.0.0", "scripts": {"test": "node --test"}})
    lay(marvin, {"package.json": manifest, "add.js": "module.exports = (a, b) => a - b;\n", "add.test.js": test})
    models.scripts["debug"] = writer({"add.js": "module.exports = (a, b) => a + b;\n"}, "Add", reads=("add.js",))
    done = phase(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert checks(marvin)[0]["failed"] == 1
    assert checks(marvin)[-1]["passed"] == 1


def test_a_trial_that_tries_nothing_does_not_count(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, SOUND)
    prompts: list[str] = []
    script = ".marvin/smoke.sh"
    lazy = writer({script: "echo all is well\n"}, "Try")
    real = writer(
        {script: 'set -eu\ntest "$(python3 -c "import adder; print(adder.add(20, 22))")" = 42\n'}, "Try it", (script,)
    )

    def e2e(asked: Asked) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return (real if "also succeeds in an empty folder" in asked.prompt else lazy)(asked)

    models.scripts["e2e"] = e2e
    done = phase(marvin, "4b")
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 2
    assert "The script .marvin/smoke.sh does not exist yet" in prompts[0]
    assert not list((marvin.project / ".marvin").glob("empty-*"))


def test_a_fault_that_the_trial_shows_is_mended(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, {**SOUND, "run.py": "import adder\nprint(adder.sum(20, 22))\n"})
    (marvin.project / ".marvin").mkdir(exist_ok=True)
    (marvin.project / ".marvin/smoke.sh").write_text('test "$(python3 run.py)" = 42\n')
    models.scripts["e2e"] = writer({"run.py": "import adder\nprint(adder.add(20, 22))\n"}, "Run", reads=("run.py",))
    done = phase(marvin, "4b")
    assert done.code == 0, done.err.decode() + done.text
    assert models.asked.count("e2e") == 1


def test_what_serves_nothing_has_no_frontend_phase(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, SOUND)
    done = phase(marvin, "4c")
    assert done.code == 0, done.err.decode() + done.text
    assert report(marvin)["ended"] == "skipped"


PAGE = "<!doctype html><title>Adder</title><script src='{script}'></script><a href='/help.html'>Help</a><p>2 + 3</p>"


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_page_that_loads_what_is_not_there_is_mended(marvin: Marvin, models: PipelineModels, sandbox: str) -> None:
    marvin.env["MARVIN_SANDBOX"] = sandbox
    help_page = "<!doctype html><title>Help</title><p>It adds.</p>"
    lay(marvin, {"public/index.html": PAGE.format(script="/app.js"), "public/help.html": help_page})
    prompts: list[str] = []
    mends = writer({"public/app.js": "console.log(5);\n"}, "The script")

    def frontend(asked: Asked) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return mends(asked)

    models.scripts["frontend"] = frontend
    done = phase(marvin, "4c")
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 1
    assert "/app.js returned status 404" in prompts[0]
    assert "2 pages, 1 asset. No browser was used, so no script on the pages was run" in report(marvin)["reason"]


@needs_node
def test_a_server_that_does_not_start_is_told_with_what_it_printed(marvin: Marvin, models: PipelineModels) -> None:
    manifest = json.dumps(
        {"name": "web", "version": "1.0.0", "scripts": {"start": "node server.js", "test": "node --test"}}
    )
    server = (
        "require('http').createServer((q, r) => { r.setHeader('content-type', 'text/html');\n"
        " r.end('<title>Adder</title><p>2 + 3</p>'); }).listen(process.env.PORT, '127.0.0.1');\n"
    )
    test = "require('node:test')('nothing', () => {});\n"
    broken = "throw new Error('no such thing as a server');\n"
    lay(marvin, {"package.json": manifest, "server.js": broken, "a.test.js": test, "index.html": "<p>"})
    prompts: list[str] = []
    mends = writer({"server.js": server}, "Serve", reads=("server.js",))

    def frontend(asked: Asked) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return mends(asked)

    models.scripts["frontend"] = frontend
    done = phase(marvin, "4c")
    assert done.code == 0, done.err.decode() + done.text
    assert "ended with exit code 1 before it answered" in prompts[0]
    assert "no such thing as a server" in prompts[0]


def attacker(mended: str) -> Script:
    """Finds that text is added as well, until the program says otherwise."""

    def script(asked: Asked) -> Any:
        if asked.step == 0:
            return called(("read_file", {"path": "adder.py"}))
        if any(mended in output for output in asked.outputs):
            return said('{"findings": []}\nCODE_VERIFIED')
        finding = found("critical", "Texts are joined instead of being refused.", "adder.py")
        return said(f"```json\n{finding}\n```\nREVIEW_FAILED")

    return script


def test_what_an_attack_finds_is_mended_and_the_tests_still_pass(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, SOUND)
    # The fix breaks the program, as fixes do; the tests tell, and it is mended.
    careless = "def add(a, b):\n    return int(a) - int(b)\n"
    careful = "def add(a, b):\n    return int(a) + int(b)\n"
    models.scripts |= {
        "qa_reviewer": attacker("int(a)"),
        "qa_fixer": writer({"adder.py": careless}, "Numbers only", reads=("adder.py",)),
        "debug": writer({"adder.py": careful}, "Add", reads=("adder.py",)),
    }
    done = phase(marvin, "5")
    assert done.code == 0, done.err.decode() + done.text
    assert (marvin.project / "adder.py").read_text() == careful
    assert models.asked.count("qa_fixer") == 1
    assert models.asked.count("debug") == 1


def test_an_attack_whose_findings_stay_stops_the_run(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, SOUND)
    models.scripts |= {"qa_reviewer": attacker("never"), "qa_fixer": IDLE}
    done = phase(marvin, "5")
    assert done.code == 4
    assert any("Texts are joined" in line for line in report(marvin)["blocking"])
    assert models.asked.count("qa_reviewer") <= 3
