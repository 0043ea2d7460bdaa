"""--ntfy: a notice at the end of every non-interactive run, which it neither delays nor makes fail."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from marvin_core.testing import Answer, ModelServer, answers, text
from tests.e2e.support_e2e import Marvin
from tests.support.ntfy import NtfyService


@pytest.fixture
def ntfy(marvin: Marvin) -> Iterator[NtfyService]:
    """A service for notices that Marvin is told of."""
    with NtfyService() as service:
        marvin.env["MARVIN_URL_NTFY"] = f"http://127.0.0.1:{service.port}"
        yield service


def test_a_run_tells_how_it_ended(marvin: Marvin, ntfy: NtfyService, marvin_model_server: ModelServer) -> None:
    marvin.config("prices: {qwen/qwen3-32b: {input: 1000.0, output: 1000.0}}\n")
    marvin_model_server.script(text("Done."))
    done = marvin.ask("--ntfy", "my-topic", "--working-dir=.")
    assert (done.code, done.text) == (0, "Done.\n")
    (notice,) = ntfy.notices
    assert notice["topic"] == "my-topic"
    assert notice["message"].startswith("The run in project is done: exit code 0, ")
    assert notice["message"].endswith(f"{done.cost()['session_cost']:.4f} USD.")


def test_a_run_that_fails_tells_so(marvin: Marvin, ntfy: NtfyService, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(answers.error(401))
    done = marvin.ask("--ntfy=t")
    assert done.code == 1
    (notice,) = ntfy.notices
    assert "failed: exit code 1" in notice["message"]
    assert notice["priority"] == 4


def test_without_a_topic_nothing_is_sent(marvin: Marvin, ntfy: NtfyService, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Done."))
    assert marvin.ask().code == 0
    assert ntfy.notices == []


@pytest.mark.parametrize("answer", [answers.error(500), answers.error(429), answers.hang(), answers.drop()])
def test_a_notice_that_does_not_arrive_changes_nothing_else(
    marvin: Marvin, ntfy: NtfyService, marvin_model_server: ModelServer, answer: Answer
) -> None:
    """I22"""
    marvin.config("timeouts: {notice: 0.3}\n")
    ntfy.answer = answer
    marvin_model_server.script(text("Done."))
    done = marvin.ask("--ntfy=t")
    assert (done.code, done.text) == (0, "Done.\n")
    assert done.cost()["llm_turns"] == 1
    assert "Notifications to the topic t were not delivered: " in done.said


def test_an_interrupted_run_tells_so(marvin: Marvin, ntfy: NtfyService, marvin_model_server: ModelServer) -> None:
    held = threading.Event()
    marvin_model_server.script(answers.pause(held, text("Late.")))
    running = marvin.ask_in_background("--ntfy=t")
    marvin_model_server.wait_for(1)
    running.send(signal.SIGTERM)
    done = running.finish()
    held.set()
    assert done.code == 130
    assert "was interrupted: exit code 130" in ntfy.notices[0]["message"]
