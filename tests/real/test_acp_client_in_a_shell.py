"""`marvin acp` driven by acpx, a front end for a shell that other people wrote, on the TypeScript library."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from marvin_core.testing import ModelServer, answers
from tests.conformance.run import node
from tests.e2e.support_e2e import PROGRAM, Marvin, conversation, wait_until
from tests.real.components import REAL, required

pytestmark = pytest.mark.real

ACPX = REAL / "npm" / "node_modules" / ".bin" / "acpx"


class Acpx:
    """The front end in a project. Its sessions live in files and in a process that ends after a second."""

    def __init__(self, marvin: Marvin, server: ModelServer) -> None:
        required(ACPX)
        self.marvin = marvin
        folder = os.path.dirname(node())
        self.env = {
            **marvin.env,
            "OPENAI_COMPAT_URL": server.url,
            "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b",
            "PATH": f"{folder}{os.pathsep}{marvin.env['PATH']}",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start it with these words."""
        known = [node(), str(ACPX.resolve()), "--agent", shlex.join([*PROGRAM, "acp"]), "--ttl", "1"]
        return subprocess.Popen(
            [*known, *words],
            env=self.env,
            cwd=self.marvin.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> str:
        """What it prints."""
        said, _ = self.start(*words).communicate(timeout=120)
        return said


@pytest.fixture
def acpx(marvin: Marvin, marvin_model_server: ModelServer) -> Acpx:
    """The front end, with a model that plays a script."""
    return Acpx(marvin, marvin_model_server)


def test_calls_are_shown_and_allowed_or_refused(acpx: Acpx, marvin_model_server: ModelServer) -> None:
    project = acpx.marvin.project
    marvin_model_server.script(
        answers.calls(("read_file", {"path": "notes.txt"})),
        answers.calls(("run_command", {"command": "echo one; echo two > made"})),
        answers.text("The word is heron."),
    )
    said = acpx.run("--approve-all", "exec", "Which word?")
    assert "[tool] read_file: notes.txt (completed)" in said
    assert "[tool] echo one; echo two > made (completed)" in said
    assert "one\n" in said
    assert "The word is heron." in said
    assert "[done] end_turn" in said
    assert (project / "made").exists()
    marvin_model_server.script(
        answers.calls(("create_file", {"path": "new.txt", "content": "x"})), answers.text("Not done.")
    )
    said = acpx.run("--deny-all", "exec", "Create it.")
    assert "[tool] create_file: new.txt (failed)" in said
    assert "the user said no" in said
    assert not (project / "new.txt").exists()


def test_a_session_goes_on_in_another_process(acpx: Acpx, marvin_model_server: ModelServer) -> None:
    acpx.run("sessions", "new")
    marvin_model_server.script(answers.text("Hello."))
    assert "Hello." in acpx.run("--approve-all", "The first prompt.")
    wait_until(lambda: "status: running" not in acpx.run("status"), "the end of the agent", 60)
    marvin_model_server.script(answers.text("Hello again."))
    said = acpx.run("--approve-all", "The second prompt.")
    assert "session/resume" in said
    assert "Hello again." in said
    sent = str(conversation(marvin_model_server))
    assert "The first prompt." in sent
    assert "Hello." in sent
    assert "The first prompt." in acpx.run("sessions", "list")


def test_a_prompt_is_cancelled(acpx: Acpx, marvin_model_server: ModelServer) -> None:
    acpx.run("sessions", "new")
    marvin_model_server.script(answers.calls(("run_command", {"command": "echo $$ > pids; echo begun; sleep 600"})))
    running = acpx.start("--approve-all", "Sleep.")
    wait_until((acpx.marvin.project / "pids").exists, "the command")
    assert "cancel" in acpx.run("cancel")
    said, _ = running.communicate(timeout=60)
    assert "[done] cancelled" in said
    acpx.marvin.assert_nothing_left()
