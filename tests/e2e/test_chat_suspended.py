"""Ctrl+Z in a shell with jobs: the chat sleeps, the shell has the terminal, and fg brings the chat back."""

from __future__ import annotations

import shlex
import shutil

import pexpect
import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, put_away

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_ctrl_z_and_fg(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """What was typed is there again, and pastes are not marked for the shell meanwhile."""
    marvin_model_server.script(text("Fine."))
    shell = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "-i"],
        env={**marvin.env, "TERM": "xterm-256color", "PS1": "shell% "},
        cwd=str(marvin.project),
        encoding="utf-8",
        timeout=LIMIT,
    )
    shell.delaybeforesend = None
    try:
        shell.expect_exact("shell% ")
        shell.send("bind 'set enable-bracketed-paste off'; PS1='shell% '\r")
        shell.expect_exact("shell% ")
        shell.send(f"{shlex.join(PROGRAM)}\r")
        shell.expect_exact("works.")
        shell.expect_exact("context 0%")
        shell.expect_exact(">")
        shell.send("half a line")
        shell.expect_exact("line")
        shell.send("\x1a")
        shell.expect("Stopped")
        assert "\x1b[?2004l" in str(shell.before)
        shell.send("echo $((6*7))\r")
        shell.expect_exact("\r\n42\r\n")
        shell.send("fg\r")
        shell.expect_exact("half")
        shell.send("\r")
        shell.expect_exact("Fine.")
        shell.send("\x04")
        shell.expect_exact("shell% ")
    finally:
        put_away(shell)
    (request,) = [request for request in marvin_model_server.requests if request.method == "POST"]
    assert request.body["messages"][-1]["content"] == "half a line"
