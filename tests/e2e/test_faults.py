"""Faults that a user meets: what Marvin says to each, and that nothing is lost or done twice.

The rows that stand here are those that no other test has; docs/reference/faults.md lists all of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any

import pytest

from marvin_core.sessions.reader import load
from marvin_core.testing import Answer, ModelServer, calls, closing, error, events, hang_after, html, text
from tests.e2e.support_e2e import (
    PROGRAM,
    QUICK_RETRIES,
    Marvin,
    assert_loadable,
    block_texts,
    conversation,
    posts,
    told,
)

pytestmark = pytest.mark.slow

SIGNALS = pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGKILL], ids=["ctrl-c", "sigterm", "kill-9"])
NAMESPACE = ("unshare", "-rm", "sh", "-c")


# --- the model service ---------------------------------------------------------------------------


def again(reason: str) -> str:
    """The announcements of the three tries after the first one."""
    return "".join(f"marvin: {reason}, trying again in 0.05 s ({n} of 3)\n" for n in (1, 2, 3))


TROUBLE: Mapping[str, tuple[Answer, str, str]] = {
    "429": (
        error(429, "slow down"),
        again("Rate limited by openai-compat"),
        "limits the rate of requests (429): slow down. ",
    ),
    "500": (
        error(500, "boom"),
        again("openai-compat is overloaded"),
        "is failing or overloaded (500): boom. ",
    ),
    "401": (error(401, "no good key"), "", "did not accept the API key (401): no good key. "),
    "html": (html(), "", "answered with a web page"),
    "empty": (text(""), again("openai-compat gave a broken answer"), "gave an empty answer. "),
    "only thinking": (text("", thinking="Hm."), "", "gave an empty answer. "),
}


@pytest.mark.parametrize("kind", TROUBLE)
def test_what_is_said_of_a_service_in_trouble(marvin: Marvin, marvin_model_server: ModelServer, kind: str) -> None:
    """I22: each try is announced, then one line has the reason and what to do; the prompt can be gone on with."""
    answer, announced, reason = TROUBLE[kind]
    tries = 1 + announced.count("\n")
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(*[answer] * tries, text("Here it is."))
    result = marvin.ask(prompt="Keep this.")
    assert (result.code, result.out) == (1, b"")
    assert result.said.startswith(announced)
    (last,) = result.said.removeprefix(announced).splitlines()
    assert last.startswith("marvin: openai-compat ")
    assert reason in last
    result.cost()
    assert posts(marvin_model_server) == tries
    assert marvin.ask("--continue", prompt="Again.").text == "Here it is.\n"
    assert [m["content"] for m in conversation(marvin_model_server) if m["role"] == "user"] == ["Keep this.", "Again."]


def test_four_rate_limits_each_with_a_time_to_come_back(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The service's own word counts for the pause, and is in the announcement."""
    limits = [error(429, "slow down", {"retry-after": wait}) for wait in ("0.1", "0.2", "0.1", "0.1")]
    marvin_model_server.script(*limits)
    result = marvin.ask()
    assert result.code == 1
    said = result.said.splitlines()
    assert [line.partition(", ")[2] for line in said[:3]] == [
        f"trying again in {wait} s ({n} of 3)" for n, wait in ((1, "0.1"), (2, "0.2"), (3, "0.1"))
    ]
    assert "slow down" in said[3]
    assert len(said) == 4
    result.cost()
    seen = [request.received for request in marvin_model_server.requests]
    assert seen[3] - seen[0] >= 0.4


def test_a_service_that_goes_away_while_a_tool_runs(marvin: Marvin) -> None:
    """I15, I22: the call ran once, its output is kept, and the run that goes on does not call it again."""
    command = "echo ran >> log; touch started; while [ ! -e go ]; do sleep 0.01; done"
    with ModelServer(calls(("run_command", {"command": command}), text="I run it.")) as server:
        marvin.env["OPENAI_COMPAT_URL"] = server.url
        running = marvin.ask_in_background()
        running.until((marvin.project / "started").exists, "the command to start")
        port = server.port
    (marvin.project / "go").touch()
    result = running.finish()
    assert (result.code, result.text) == (1, "I run it.\n  🔧 run_command\n")
    assert f"127.0.0.1:{port}" in result.said
    assert "Is the server running?" in result.said
    assert result.cost()["llm_turns"] == 1
    assert [message["role"] for message in marvin.messages()] == ["user", "assistant", "tool"]
    assert_loadable(marvin.messages())
    with ModelServer(text("Going on."), port=port) as server:
        assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
        assert [message["role"] for message in conversation(server)] == ["user", "assistant", "tool", "user"]
    assert (marvin.project / "log").read_text() == "ran\n"


@pytest.mark.parametrize("ending", ["cut", "close"])
def test_a_service_that_goes_away_after_its_answer(
    marvin: Marvin, marvin_model_server: ModelServer, ending: str
) -> None:
    """The answer is complete, so nothing is missing and nothing is said."""
    answer = text("Done.")
    marvin_model_server.script(closing(answer) if ending == "close" else answer.replace(ending="cut"))
    result = marvin.ask()
    assert (result.code, result.text, result.said) == (0, "Done.\n", "")
    assert result.cost()["llm_turns"] == 1
    assert marvin.messages()[-1]["stop_reason"] == "stop"


# --- calls of tools ------------------------------------------------------------------------------


def piece(arguments: object, index: int | None = 0, call_id: str = "a", name: str = "") -> dict[str, Any]:
    """A chunk with a part of a call."""
    item: dict[str, Any] = {"function": {"arguments": arguments}}
    item |= {"index": index} if index is not None else {}
    item |= {"id": call_id} if call_id else {}
    if name:
        item["function"]["name"] = name
    return {"choices": [{"index": 0, "delta": {"tool_calls": [item]}, "finish_reason": None}]}


def run(word: str) -> str:
    """The arguments of a command that writes a word into the log."""
    return json.dumps({"command": f"echo {word} >> log"})


ONE, TWO, END = run("one"), run("two"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
SHAPES: Mapping[str, tuple[Sequence[dict[str, Any]], str]] = {
    "split into single characters": (
        [piece("", name="run_command"), *(piece(c, call_id="") for c in ONE), END],
        "one\n",
    ),
    "doubled": ([piece(ONE + ONE, name="run_command"), END], "one\n"),
    "a string in a string": ([piece(json.dumps(json.dumps(ONE)), name="run_command"), END], "one\n"),
    "an object": ([piece(json.loads(ONE), name="run_command"), END], "one\n"),
    "two calls out of order": (
        [
            piece("", 1, "b", "run_command"),
            piece("", 0, "a", "run_command"),
            piece(TWO[:9], 1, ""),
            piece(ONE[:5], 0, ""),
            piece(ONE[5:], 0, ""),
            piece(TWO[9:], 1, ""),
            END,
        ],
        "two\none\n",
    ),
    "two calls with one id": (
        [piece(ONE, 0, "a", "run_command"), piece(TWO, 1, "a", "run_command"), END],
        "one\ntwo\n",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_in_odd_shapes_run_once_each(marvin: Marvin, marvin_model_server: ModelServer, shape: str) -> None:
    """I15: and each has an id of its own, so that services accept the conversation."""
    chunks, logged = SHAPES[shape]
    marvin_model_server.script(events(*chunks), text("Done."))
    result = marvin.ask()
    assert result.code == 0, result.said
    assert (marvin.project / "log").read_text() == logged
    count = logged.count("\n")
    assert result.text == f"  🔧 {', '.join(['run_command'] * count)}\nDone.\n"
    result.cost()
    assert_loadable(marvin.messages())
    sent = conversation(marvin_model_server)[1]["tool_calls"]
    assert len({call["id"] for call in sent}) == count
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in sent)
    assert len(told(marvin_model_server)) == count


# --- the clock -----------------------------------------------------------------------------------


def test_a_clock_that_went_back(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The session that was used last is gone on with, though an older file seems to come from the future.

    The clock of the machine cannot be set for one process alone (`unshare --time` moves the monotonic clocks only),
    and would disturb everything else that runs. What a process knows of the time before is what files say of it, so
    all that an earlier run left behind is dated a day ahead.
    """
    marvin_model_server.script(*(text(f"Answer {n}.") for n in range(4)))
    marvin.ask(prompt="First.")
    ahead = time.time() + 86_400
    for path in (marvin.home, *marvin.home.rglob("*")):
        os.utime(path, (ahead, ahead))
    assert marvin.ask(prompt="Second.").code == 0
    for number, prompt in enumerate(("Third.", "Fourth.")):
        result = marvin.ask("--continue", prompt=prompt)
        assert (result.code, result.text) == (0, f"Answer {number + 2}.\n")
        assert "marvin:" not in result.said.replace("marvin: continuing", "")
    asked = [m["content"] for m in conversation(marvin_model_server) if m["role"] == "user"]
    assert asked == ["Second.", "Third.", "Fourth."]
    usage = json.loads((marvin.config_folder / "usage.json").read_text())
    assert "4" in json.dumps(usage), "no run is missing from the totals"


# --- places that take nothing --------------------------------------------------------------------

FULL = 'mount -t tmpfs -o size=64k,mode=0700 tmpfs "$HOME" && head -c 1M /dev/zero > "$HOME/fill" 2>/dev/null; "$@"'
READ_ONLY = 'mount --bind "$ROOT" "$ROOT" && mount -o remount,ro,bind "$ROOT" && "$@"'


def mounting(script: str) -> list[str]:
    """What to put before the program so that it runs behind mounts of its own, which hold for root too."""
    if subprocess.run([*NAMESPACE, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False).returncode:
        pytest.skip("unshare cannot mount here")
    return [*NAMESPACE, script, "sh"]


def test_a_full_disk(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I22: the work is done; what cannot be kept is said, once each."""
    marvin_model_server.script(calls(("create_file", {"path": "a.txt", "content": "a\n"})), text("Done."))
    result = marvin.ask(program=[*mounting(FULL), *PROGRAM])
    assert (result.code, result.text) == (0, "  🔧 create_file\nDone.\n")
    assert (marvin.project / "a.txt").read_text() == "a\n"
    assert result.said.count("session cannot be saved") == 1
    assert "Free space" in result.said
    assert result.said.count("The lifetime usage totals could not be saved") == 1
    assert result.said.count("cannot be undone") == 1
    assert len(result.said.splitlines()) == 3
    assert result.cost()["llm_turns"] == 2


def test_a_full_disk_under_the_project(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I10: the model is told that the file could not be written, and the old content stays."""
    project = shlex.quote(str(marvin.project))
    script = f"mount -t tmpfs -o size=16k tmpfs {project} && cd {project} && echo old > a.txt && "
    script += (
        f'head -c 1M /dev/zero > fill 2>/dev/null; "$@"; code=$?; cp a.txt {shlex.quote(str(marvin.home))}; exit $code'
    )
    content = "x" * 20_000
    marvin_model_server.script(calls(("create_file", {"path": "a.txt", "content": content})), text("Done."))
    result = marvin.ask(program=[*mounting(script), *PROGRAM])
    assert result.code == 0
    (output,) = told(marvin_model_server)
    assert "Error" in output
    assert (marvin.home / "a.txt").read_text() == "old\n"
    assert [path.name for path in marvin.home.glob("a.txt*")] == ["a.txt"]


def test_a_read_only_configuration(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I22: the work and the session are not touched by it."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(text("Done."), text("Going on."))
    root = {"ROOT": str(marvin.config_folder)}
    result = marvin.ask(program=[*mounting(READ_ONLY), *PROGRAM], env=root)
    assert (result.code, result.text) == (0, "Done.\n")
    assert "The lifetime usage totals could not be saved" in result.said
    assert len(result.said.splitlines()) == 1
    result.cost()
    assert [block_texts(message) for message in marvin.messages()] == ["Do it.", "Done."]
    assert marvin.ask("--continue", program=[*mounting(READ_ONLY), *PROGRAM], env=root).text == "Going on.\n"
    assert [path.name for path in marvin.config_folder.iterdir()] == ["config.yaml"]


# --- signals -------------------------------------------------------------------------------------


def test_kill_9_in_the_middle_of_the_text(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The prompt is kept, and the session goes on from it."""
    answer = text("Half of it, and more.", chunks=["Half of it,", " and more."])
    marvin_model_server.script(hang_after(answer.body.index(b" and more"), answer), text("Going on."))
    running = marvin.ask_in_background(prompt="Keep this.")
    running.until_out(b"Half of it,")
    running.send(SIGKILL)
    result = running.finish()
    assert (result.code, result.text, result.err) == (-SIGKILL, "Half of it,", b"")
    assert [block_texts(message) for message in marvin.messages()] == ["Keep this."]
    assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
    assert [message["content"] for message in conversation(marvin_model_server)] == ["Keep this.", "Go on."]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a session file."""
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def until_it_tries_again(pid: int) -> None:
    """Wait until one of the threads sleeps, as between two tries for a lock; else they wait for events, or work.

    Where the system does not tell, one surely does so after five seconds.
    """
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not any(map(_sleeps, Path(f"/proc/{pid}").glob("task/*/wchan"))):
        time.sleep(0.005)


def _sleeps(place: Path) -> bool:
    try:
        return "sleep" in place.read_text()
    except OSError:  # the thread has ended
        return False


@SIGNALS
def test_in_the_middle_of_a_save(marvin: Marvin, marvin_model_server: ModelServer, number: Signals) -> None:
    """I15, I22: what is being saved is saved whole or not at all, and the session goes on."""
    marvin.config("timeouts: {lock: 300}\n")
    first, rest = text("It is four.", chunks=["It is", " four."]), threading.Event()
    begun = first.body.index(b" four.")
    steps = [step for step in first.steps if isinstance(step, bytes)]
    sent = [sum(map(len, steps[: index + 1])) for index in range(len(steps))]
    place = next(index for index, end in enumerate(sent) if end > begun)
    marvin_model_server.script(first.replace(steps=(*steps[:place], rest, *steps[place:])), text("Going on."))
    running = marvin.ask_in_background(prompt="Count.")
    running.until_out(b"It is")
    with held(marvin.session_files()[0]):
        rest.set()
        running.until_out(b"four.")
        until_it_tries_again(running.process.pid)
        running.send(number)
        if number == SIGKILL:
            running.process.wait()
    result = running.finish()
    if number == SIGKILL:
        assert (result.code, result.err) == (-SIGKILL, b"")
        kept = ["Count."]
    else:
        assert result.code in (0, 130), "done, or just not"
        result.cost()
        kept = ["Count.", "It is four."]
    loaded = load(marvin.session_files()[0])
    assert ([message.text for message in loaded.messages], loaded.problems) == (kept, ())
    assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
    assert [message["content"] for message in conversation(marvin_model_server)] == [*kept, "Go on."]
