"""Marvin as the agent of marimo, an editor of notebooks, as a person uses it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, answers
from tests.e2e.support_e2e import Marvin, conversation, wait_until
from tests.real.marimo_editor import notebook

pytestmark = pytest.mark.real


def test_a_person_in_an_editor_talks_to_marvin(
    marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path
) -> None:
    marvin.env |= {"OPENAI_COMPAT_URL": marvin_model_server.url, "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b"}
    marvin_model_server.script(
        answers.calls(("read_file", {"path": "notes.txt"})),
        answers.calls(("run_command", {"command": "echo one > made"})),
        answers.text("The word is heron."),
        answers.calls(("run_command", {"command": "echo $$ > pids; sleep 600"})),
        answers.text("Went on."),
        answers.text("Came back."),
    )
    with notebook(marvin, tmp_path) as page:
        page.connect()
        page.say("Which word?")
        page.until("Permission Request")
        assert "Asked because run_command runs programs" in page.text
        assert not (marvin.project / "made").exists()
        page.click("button", "Allow")
        page.until("The word is heron.")
        assert (marvin.project / "made").exists()
        assert "read_file: notes.txt" in page.text

        page.say("Sleep.")
        page.until("Permission Request")
        page.click("button", "Allow")
        wait_until((marvin.project / "pids").exists, "the command", 60)
        page.click("button", "Stop")
        wait_until(lambda: not marvin.at_work(), "the end of the command", 60)
        page.say("Go on.")
        page.until("Went on.")

        page.reload()
        page.until("Went on.")  # the session is loaded again
        page.say("The last prompt.")
        page.until("Came back.")
        assert "Which word?" in str(conversation(marvin_model_server))
