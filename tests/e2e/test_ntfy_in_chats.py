"""New messages of ntfy in the installed program: shown once, and a server that is silent leaves no trace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin
from tests.tools_life.ntfy_server import NtfyService

pytestmark = pytest.mark.slow
MOST = 30
"""Prompts in which the message has to come: this chat stands still between them."""


@pytest.fixture
def service() -> Iterator[NtfyService]:
    with NtfyService().running() as running:
        yield running


def test_a_silent_server_holds_up_neither_the_answer_nor_the_end(
    marvin: Marvin, marvin_model_server: ModelServer, service: NtfyService
) -> None:
    marvin.env["MARVIN_URL_NTFY"] = service.url
    assert marvin.run("tools", "call", "ntfy_subscribe", "topic=doorbell").code == 0
    service.silent = True
    marvin_model_server.script(text("Good day."))
    result = marvin.run("--plain", stdin=b"Hello\n")
    assert result.code == 0
    assert "Good day." in result.text
    assert len(service.requests) == 1
    for word in ("Traceback", "Task", "never", "ntfy"):
        assert word not in result.said


def test_a_message_is_shown_once_and_never_in_a_run(
    marvin: Marvin, marvin_model_server: ModelServer, service: NtfyService
) -> None:
    marvin.env["MARVIN_URL_NTFY"] = service.url
    assert marvin.run("tools", "call", "ntfy_subscribe", "topic=doorbell").code == 0
    service.put("doorbell", "Ring")
    marvin_model_server.script(*(text("Good day.") for _ in range(MOST + 1)))
    assert "Ring" not in marvin.run("--non-interactive", "--prompt", "Hello").text
    assert service.requests == []
    running = marvin.start("--plain", stdin=subprocess.PIPE)
    assert running.process.stdin is not None
    answers = 0
    while answers < 3 or (answers < MOST and b"Ring" not in running.out):
        answers += 1
        running.process.stdin.write(b"Hello\n")
        running.process.stdin.flush()
        running.until(lambda: running.out.count(b"Good day.") >= answers, "an answer")  # noqa: B023
    running.process.stdin.close()
    shown = running.finish().text
    assert shown.count("doorbell: Ring") == 1
    assert "Good day.(" not in shown
