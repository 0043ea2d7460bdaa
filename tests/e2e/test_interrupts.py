"""Ctrl+C, SIGTERM and the end of the terminal at each moment of a non-interactive run."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from signal import SIGALRM, SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from marvin_core.testing import ModelServer, calls, error, hang, hang_after, text
from tests.e2e.support_e2e import (
    LIMIT,
    PROGRAM,
    Marvin,
    Result,
    Running,
    assert_loadable,
    block_texts,
    conversation,
    posts,
    unread,
    wait_until,
)

pytestmark = pytest.mark.slow

SIGNALS = pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGHUP], ids=["ctrl-c", "sigterm", "hang-up"])
SLEEP = {"command": "echo $$ >> pids; sleep 300 & echo $! >> pids; setsid sleep 300 & echo $! >> pids; wait; sleep 300"}


def assert_interrupted(result: Result) -> None:
    """I22: exit code 130, one short word about it, and MARVIN_COST last."""
    assert result.code == 130
    assert result.said == "marvin: interrupted\n"
    result.cost()


def interrupt(running: Running, number: Signals) -> Result:
    """Send the signal; the run must then end, though what it waits for takes far longer than `finish` does."""
    running.send(number)
    return running.finish()


def test_before_anything_was_read(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """While Python itself starts it ends as every program does; a moment later in our way, never with a traceback."""
    marvin_model_server.script(*(text("Done.") for _ in range(8)))
    for step in range(8):
        running = marvin.ask_in_background()
        time.sleep(0.03 + 0.015 * step)
        result = interrupt(running, SIGTERM)
        assert result.code in (-SIGTERM, 130, 0)
        assert b"Traceback" not in result.err
        if result.code >= 0:
            result.cost()
        else:
            assert (result.out, result.err) == (b"", b"")


@SIGNALS
def test_while_the_prompt_is_read(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    running = marvin.start("--non-interactive", stdin=subprocess.PIPE)
    pipe = running.process.stdin
    assert pipe is not None
    pipe.write(b"half a prompt")
    pipe.flush()
    running.until(lambda: unread(pipe.fileno()) == 0, "the prompt to be read")
    result = interrupt(running, number)
    assert_interrupted(result)
    assert result.out == b""
    assert posts(marvin_model_server) == 0


@SIGNALS
def test_while_waiting_for_the_first_byte(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """The request is given up, so that the service need not go on; the prompt is kept."""
    marvin_model_server.script(hang())
    running = marvin.ask_in_background(prompt="Keep this.")
    running.until(lambda: posts(marvin_model_server), "the request")
    result = interrupt(running, number)
    assert_interrupted(result)
    assert result.out == b""
    assert marvin_model_server.requests[0].gone.wait(LIMIT)
    assert [block_texts(message) for message in marvin.messages()] == ["Keep this."]


@SIGNALS
def test_in_the_middle_of_the_text(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """What came is shown, ended with a newline, and kept with a mark; the session goes on from there."""
    answer = text("Half of it, and more.", chunks=["Half of it,", " and more."])
    marvin_model_server.script(hang_after(answer.body.index(b" and more"), answer), text("Going on."))
    running = marvin.ask_in_background()
    running.until_out(b"Half of it,")
    result = interrupt(running, number)
    assert_interrupted(result)
    assert result.out == b"Half of it,\n"
    saved = marvin.messages()
    assert block_texts(saved[1]).startswith("Half of it,")
    assert saved[1]["stop_reason"] == "cancelled"
    assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
    assert "Half of it," in conversation(marvin_model_server)[1]["content"]


@SIGNALS
def test_in_the_middle_of_arguments(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """I15, I26: the call does not run, and has an output all the same."""
    answer = calls(("create_file", {"path": "a.txt", "content": "one two three"}), chunks=8)
    marvin_model_server.script(hang_after(answer.body.rindex(b"arguments"), answer), text("Going on."))
    running = marvin.ask_in_background("--output-format", "stream-json")
    running.until_out(b'"kind":"tool_call"')
    result = interrupt(running, number)
    assert_interrupted(result)
    ended = result.events()[-1]
    assert (ended["type"], ended["stop_reason"]) == ("agent_end", "cancelled")
    assert_loadable(marvin.messages())
    assert list(marvin.project.iterdir()) == []
    assert marvin.ask("--continue", prompt="Go on.").code == 0
    sent = conversation(marvin_model_server)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]


def test_the_end_of_the_terminal_is_ignored_where_the_user_wants_that(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    answer, told = text("Still here.", chunks=["Still", " here."]), threading.Event()
    rest = next(index for index, step in enumerate(answer.steps) if isinstance(step, bytes) and b" here." in step)
    marvin_model_server.script(answer.replace(steps=(*answer.steps[:rest], told, *answer.steps[rest:])))
    running = marvin.ask_in_background(program=["nohup", *PROGRAM])
    running.until_out(b"Still")
    running.send(SIGHUP)
    told.set()
    result = running.finish()
    assert (result.code, result.text) == (0, "Still here.\n")


@SIGNALS
def test_a_call_by_hand_leaves_nothing_behind(unconfigured: Marvin, number: Signals) -> None:
    """I25."""
    command = f"command={SLEEP['command']}"
    running = unconfigured.start("tools", "call", "run_command", command)
    running.until(lambda: len(unconfigured.pids()) == 3, "the command to start")
    assert interrupt(running, number).code == 130
    unconfigured.assert_nothing_left()


@SIGNALS
def test_while_a_command_runs(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """I15, I25: all that it started is gone, its call has the output "interrupted", later calls do not run."""
    later = ("run_command", {"command": "touch later"})
    marvin_model_server.script(
        calls(("get_working_dir", {}), ("run_command", SLEEP), later, text="I run it."), text("Going on.")
    )
    running = marvin.ask_in_background()
    running.until(lambda: len(marvin.pids()) == 3, "the command to start")
    result = interrupt(running, number)
    assert_interrupted(result)
    assert result.text == "I run it.\n  🔧 get_working_dir, run_command, run_command\n"
    marvin.assert_nothing_left()
    assert not (marvin.project / "later").exists()
    assert_loadable(marvin.messages())
    assert marvin.ask("--continue", prompt="Go on.").code == 0
    outputs = [message["content"] for message in conversation(marvin_model_server) if message["role"] == "tool"]
    assert outputs[0].startswith(str(marvin.project.resolve()))
    assert "interrupted" in outputs[1]
    assert "interrupted" in outputs[2]


@SIGNALS
def test_while_waiting_for_a_retry(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    marvin.config("timeouts: {retry_backoff: [300], retry_after_limit: 300}\n")
    marvin_model_server.script(error(500, "boom"))
    running = marvin.ask_in_background()
    running.until(lambda: b"trying again" in running.err, "the notice of a retry")
    result = interrupt(running, number)
    assert result.code == 130
    assert result.said.endswith("marvin: interrupted\n")
    result.cost()
    assert posts(marvin_model_server) == 1


def test_after_the_last_text(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Whether the run was just done or not yet: it ends in one of the two ways, and MARVIN_COST is there."""
    marvin_model_server.script(*(text("Done.") for _ in range(6)))
    for step in range(6):
        running = marvin.ask_in_background()
        running.until_out(b"Done.")
        time.sleep(0.003 * step)
        result = interrupt(running, SIGTERM)
        assert result.code in (0, 130)
        assert result.out == b"Done.\n"
        assert b"Traceback" not in result.err
        result.cost()


def test_twice(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Asked again, it waits for nothing; even so MARVIN_COST is there and no command lives on (I22, I25)."""
    marvin.config("timeouts: {terminate: 300}\n")
    stubborn = (
        "trap 'touch asked' TERM; trap '' INT HUP; echo $$ >> pids; "
        "(trap '' TERM; sleep 300 & echo $! >> pids; echo begun; wait) & wait; sleep 300"
    )
    marvin_model_server.script(calls(("run_command", {"command": stubborn})))
    running = marvin.ask_in_background("--output-format", "stream-json")
    # A command that is just being started is killed at once; this one is to be known to run.
    running.until_out(b'"tool_execution_update"')
    assert len(marvin.pids()) == 2
    running.send(SIGINT)
    running.until((marvin.project / "asked").exists, "the command to be asked to end, which is waited for")
    result = interrupt(running, SIGINT)
    assert result.code == 130
    result.cost()
    wait_until(lambda: not marvin.at_work(), "the processes to go")
    marvin.assert_nothing_left()


def test_ctrl_c_of_a_terminal_reaches_only_marvin(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Commands are not in the terminal's group: what traps INT is not told of it before Marvin ends it."""
    command = "trap 'echo trapped > trapped' INT; echo $$ >> pids; sleep 300 & wait"
    marvin_model_server.script(calls(("run_command", {"command": command})))
    running = marvin.ask_in_background()
    running.until(marvin.pids, "the command to start")
    os.killpg(running.process.pid, SIGINT)
    assert_interrupted(running.finish())
    assert not (marvin.project / "trapped").exists()
    marvin.assert_nothing_left()


def test_a_time_out_of_the_caller(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """As CI does it: `timeout` sends SIGTERM, and the report still comes."""
    marvin_model_server.script(hang_after(2_000, text("word " * 400, chunks=400)))
    running = marvin.ask_in_background("--output-format", "json", program=["timeout", "300", *PROGRAM])
    running.until(lambda: posts(marvin_model_server), "the request")
    running.send(SIGALRM)  # with which the kernel tells `timeout` that the time is over
    result = running.finish()
    assert result.code in (124, 130)
    assert b'"exit_code": 130' in result.out
    assert b'"is_error": true' in result.out
    result.cost()


@SIGNALS
def test_while_nobody_reads_standard_output(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """I22: a reader that stalls blocks the writing, never the end."""
    marvin_model_server.script(text("many words " * 100_000))
    reading, writing = os.pipe()
    running = marvin.ask_in_background(stdout=writing)
    os.close(writing)
    try:
        running.until(lambda: unread(reading) >= 65_536, "the pipe to be full")
        assert_interrupted(interrupt(running, number))
    finally:
        os.close(reading)


# The text is shown nowhere before the end; a hook sees it as it comes.
WATCHING = """
from pathlib import Path
from marvin_core import Hook, hookimpl

class Watcher(Hook):
    async def on_event(self, context, event):
        if event.type == "message_update":
            (context.cwd / "seen").touch()

@hookimpl
def marvin_register_hooks():
    return [Watcher()]
"""


def test_json_tells_what_came_before_the_interrupt(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(hang_after(700, text("Half an answer, and more " * 40, chunks=20)))
    site = marvin.home.parent / "site"
    (site / "watching-1.0.dist-info").mkdir(parents=True)
    (site / "watching-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: watching\nVersion: 1.0\n")
    (site / "watching-1.0.dist-info" / "entry_points.txt").write_text("[marvin]\nwatching = watching\n")
    (site / "watching.py").write_text(WATCHING)
    start = f"import sys; sys.path.insert(0, {str(site)!r}); from marvin_core.__main__ import main; main()"
    running = marvin.ask_in_background("--output-format", "json", program=[*PROGRAM[:2], "-c", start])
    running.until((marvin.project / "seen").exists, "the text")
    result = interrupt(running, SIGINT)
    report = json.loads(result.out)
    assert (report["exit_code"], report["is_error"]) == (130, True)
    assert report["text"].startswith("Half an answer")
