"""Code of packs that blocks, prints or leaves, in every interface: it is named, got out of, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin, assert_loadable, posts, put_away, wait_until
from tests.e2e.support_terminal import CTRL_C, Open, Terminal, opening

pytestmark = pytest.mark.slow

QUICK = "timeouts: {stall: 0.2, release: 0.2}\n"
TOOLS = '''
import os, subprocess, sys, time
from pathlib import Path
from marvin_core import ToolResult, call_of, tool

@tool(access=["read"])
async def nap() -> str:
    """Block the event loop."""
    Path("begun").touch()
    time.sleep(600)
    return "slept"

@tool(access=["read"])
async def stubborn() -> str:
    """Block the event loop, whatever happens."""
    Path("begun").touch()
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

@tool(access=["state"])
async def settle() -> ToolResult:
    """Be taken back by what blocks."""
    return ToolResult(content="settled", undo=call_of(nap))

@tool(access=["read"])
def chatter() -> str:
    """Write to standard output in every way."""
    print("by print")
    sys.stdout.write("half a line")
    os.write(1, b"by the descriptor\\n")
    subprocess.run(["echo", "by a program"])
    return "quiet"

@tool(access=["read"], timeout=0.1)
def endless() -> str:
    """Print for ever."""
    while True:
        print("again")
        print("again", file=sys.stderr)
        time.sleep(0.001)

@tool(access=["read"])
async def background() -> str:
    """Leave a task behind that wants to leave the program."""
    import asyncio

    async def leave() -> None:
        raise KeyboardInterrupt

    task = asyncio.ensure_future(leave())
    await asyncio.sleep(0.1)
    return str(task)
'''


@pytest.fixture
def dull(marvin: Marvin) -> Marvin:
    """With tools of the user that block."""
    marvin.config(QUICK)
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "dull.py").write_text(TOOLS)
    return marvin


def begun(marvin: Marvin) -> Callable[[], bool]:
    return (marvin.project / "begun").exists


def assert_saved(marvin: Marvin) -> None:
    """What was said before is in the session, which can be gone on with; what it used is in the totals."""
    assert [message["role"] for message in marvin.messages()][:2] == ["user", "assistant"]
    assert json.loads((marvin.config_folder / "usage.json").read_text())["turns"] == {"qwen/qwen3-32b": 1}


@pytest.mark.parametrize(("name", "number"), [("nap", SIGTERM), ("nap", SIGINT), ("stubborn", SIGINT)])
def test_the_first_signal_ends_a_run(
    dull: Marvin, marvin_model_server: ModelServer, name: str, number: Signals
) -> None:
    """I22: the run would take ten minutes, or never end."""
    marvin_model_server.script(calls((name, {}), text="Let me see."), text("Going on."))
    running = dull.ask_in_background("--output-format", "json" if name == "nap" else "text")
    running.until(begun(dull), "the call")
    running.until(
        lambda: b"blocks the whole program: its code blocks the event loop" in running.err,
        "the tool to be named",
    )
    running.send(number)
    result = running.finish()
    assert result.code == 130
    assert result.said.count(f"the tool {name} of your configuration ({dull.config_folder}/tools/dull.py, line ") >= 1
    assert result.said.count("blocks the whole program: its code blocks the event loop") == 1
    assert result.cost()["llm_turns"] == 1
    if name == "nap":
        assert json.loads(result.text)["exit_code"] == 130
        assert result.said.endswith("marvin: interrupted\n")
        assert_loadable(dull.messages())
    assert_saved(dull)
    assert dull.ask("--continue", prompt="Go on.").text == "Going on.\n"


def test_ctrl_c_ends_an_answer_of_the_plain_chat_that_is_held(dull: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(("nap", {})), text("Awake."))
    running = dull.start("--plain", stdin=-1)
    assert running.process.stdin is not None
    running.process.stdin.write(b"sleep\n")
    running.process.stdin.flush()
    running.until(begun(dull), "the call")
    running.send(SIGINT)
    running.until_out(b"[Cancelled]")
    running.process.stdin.write(b"wake up\n")
    running.process.stdin.close()
    running.process.stdin = None
    result = running.finish()
    assert (result.code, posts(marvin_model_server)) == (0, 2)
    assert "Awake." in result.text
    assert b"the tool nap of your configuration" in result.err


@pytest.mark.parametrize(("name", "number"), [("nap", SIGTERM), ("stubborn", SIGTERM), ("stubborn", SIGINT)])
def test_the_first_signal_ends_a_plain_chat_that_is_held(
    dull: Marvin, marvin_model_server: ModelServer, name: str, number: Signals
) -> None:
    marvin_model_server.script(calls((name, {})))
    running = dull.start("--plain", stdin=-1)
    assert running.process.stdin is not None
    running.process.stdin.write(b"sleep\n")
    running.process.stdin.flush()
    running.until(begun(dull), "the call")
    running.send(number)
    assert running.finish().code == 130
    assert_saved(dull)


@pytest.mark.parametrize(("event", "line"), [("app_start", b""), ("agent_end", b"hello\n")])
def test_the_first_signal_ends_a_plain_chat_that_is_held_before_a_prompt_or_behind_it(
    dull: Marvin, marvin_model_server: ModelServer, event: str, line: bytes
) -> None:
    if line:
        marvin_model_server.script(text("Hi."))
    (dull.config_folder / "hooks").mkdir()
    (dull.config_folder / "hooks" / "dull.py").write_text(
        "import time\nfrom pathlib import Path\nfrom marvin_core import Hook\n"
        "class Dull(Hook):\n    async def on_event(self, context, event):\n"
        f"        if event.type == {event!r}:\n            Path('begun').touch()\n            time.sleep(600)\n"
    )
    running = dull.start("--plain", stdin=-1)
    assert running.process.stdin is not None
    running.process.stdin.write(line)
    running.process.stdin.flush()
    running.until(begun(dull), "the event")
    running.send(SIGTERM)
    assert running.finish().code == 130


@pytest.mark.parametrize(
    "method", ["on_prompt", "system_prompt", "before_request", "before_tool", "after_tool", "on_stop"]
)
def test_a_hook_that_blocks_delays_a_prompt_no_longer_than_a_hook_may(
    dull: Marvin, marvin_model_server: ModelServer, method: str
) -> None:
    """No time-out fires while the event loop is blocked, so the hook is interrupted."""
    dull.config("timeouts: {stall: 0.2, hook_decision: 0.5}\n")
    (dull.config_folder / "hooks").mkdir()
    (dull.config_folder / "hooks" / "dull.py").write_text(
        "import time\nfrom marvin_core import Hook\nclass Dull(Hook):\n"
        f"    async def {method}(self, *given):\n        time.sleep(600)\n"
    )
    marvin_model_server.script(calls(("get_working_dir", {})), text("Done."))
    result = dull.ask()
    assert result.code == 0, result.said
    assert result.text.endswith("Done.\n")
    assert f"the hook Dull.{method}" in result.said
    told = str(marvin_model_server.requests[-1].body["messages"][-1]["content"])
    assert (str(dull.project) in told) is (method != "before_tool"), "a guard that fails denies"


@pytest.fixture
def chat(dull: Marvin) -> Iterator[Open]:
    yield from opening(dull)


def test_ctrl_c_ends_an_answer_of_the_terminal_chat_that_is_held(
    dull: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """Nobody reads keys while the loop is held; the key is a signal then, and a key again afterwards."""
    marvin_model_server.script(calls(("nap", {})), text("Awake."))
    terminal = chat()
    terminal.say(
        "sleep\r",
        "blocks the whole program: its code blocks the event loop",
    )
    terminal.press_until(CTRL_C, "[Cancelled]")
    terminal.say("wake up\r", "Awake.")
    assert terminal.leave() == 0


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_the_first_signal_ends_a_terminal_chat_that_is_held(
    dull: Marvin, marvin_model_server: ModelServer, chat: Open, number: Signals
) -> None:
    marvin_model_server.script(calls(("stubborn", {})))
    terminal = chat()
    terminal.say(
        "sleep\r",
        "blocks the whole program: its code blocks the event loop",
    )
    terminal.process.kill(number)
    assert terminal.ended() == 130
    assert_saved(dull)


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_what_packs_print_is_told_on_standard_error(dull: Marvin, marvin_model_server: ModelServer, form: str) -> None:
    marvin_model_server.script(calls(("chatter", {})), text("Done."))
    result = dull.ask("--output-format", form)
    assert result.code == 0
    if form == "text":
        assert result.text == "  🔧 chatter\nDone.\n"
    else:
        assert all(isinstance(json.loads(line), dict) for line in result.text.splitlines())
    owner = "marvin: the tool chatter of your configuration printed: "
    assert f"{owner}by print\n" in result.said
    assert f"{owner}half a line\n" in result.said
    assert "by the descriptor\n" in result.said
    assert "by a program\n" in result.said
    result.cost()


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("tools", "call", "nap"), SIGTERM),
        (("tools", "call", "nap"), SIGINT),
        (("tools", "call", "stubborn"), SIGTERM),
        (("undo",), SIGINT),
    ],
)
def test_the_first_signal_ends_a_sub_command_that_is_held(
    dull: Marvin, words: tuple[str, ...], number: Signals
) -> None:
    if words == ("undo",):
        assert dull.run("tools", "call", "settle").text == "settled\n"
    running = dull.start(*words)
    running.until(begun(dull), "the call")
    running.until(
        lambda: b"blocks the whole program: its code blocks the event loop" in running.err,
        "the tool to be named",
    )
    running.send(number)
    result = running.finish()
    assert (result.code, result.text) == (130, "")
    assert result.said.count("blocks the whole program: its code blocks the event loop") == 1
    if words[-1] == "stubborn":
        assert "does not stop, so the command ends without waiting for it.\n" in result.said


def test_a_call_by_hand_prints_its_output_alone(dull: Marvin) -> None:
    result = dull.run("tools", "call", "chatter")
    assert (result.code, result.text) == (0, "quiet\n")
    assert "printed: by print\n" in result.said


def test_nothing_comes_behind_the_last_line(dull: Marvin, marvin_model_server: ModelServer) -> None:
    """I22: not even from a thread that was left behind, and prints for ever."""
    marvin_model_server.script(calls(("endless", {})), text("Done."))
    result = dull.ask()
    assert (result.code, result.text) == (0, "  🔧 endless\nDone.\n")
    assert "printed: again" in result.said
    result.cost()


def test_a_task_that_wants_to_leave_the_program_ends_the_run_with_a_word(
    dull: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(calls(("background", {})), text("Done."))
    result = dull.ask()
    assert result.code == 1
    assert "internal error: KeyboardInterrupt" in result.said
    result.cost()


def test_a_hook_that_is_slow_to_import_is_named(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config(QUICK)
    (marvin.config_folder / "hooks").mkdir()
    source = "import time\nfrom marvin_core import Hook\ntime.sleep(0.3)\nclass Slow(Hook):\n    pass\n"
    path: Path = marvin.config_folder / "hooks" / "slow.py"
    path.write_text(source)
    marvin_model_server.script(text("Done."), text("Done."))
    marvin.ask()  # the first start imports it beforehand, to see what it brings
    result = marvin.ask()
    assert result.code == 0
    assert "the pack hooks/slow.py of your configuration delayed this start by 0." in result.said


@pytest.mark.parametrize("where", ["plain", "terminal"])
def test_hooks_hear_that_the_program_is_up_before_the_first_line(
    marvin: Marvin, marvin_model_server: ModelServer, where: str
) -> None:
    (marvin.config_folder / "hooks").mkdir()
    (marvin.config_folder / "hooks" / "up.py").write_text(
        "from pathlib import Path\nfrom marvin_core import Hook\n"
        "class Up(Hook):\n    async def on_event(self, context, event):\n        Path(event.type).touch()\n"
    )
    up = marvin.project / "app_start"
    if where == "plain":
        running = marvin.start("--plain", stdin=-1)
        running.until(up.exists, "app_start")
        assert running.process.stdin is not None
        running.process.stdin.close()
        running.process.stdin = None
        assert running.finish().code == 0
    else:
        terminal = Terminal(marvin)
        try:
            terminal.ready()
            wait_until(up.exists, "app_start")
            assert terminal.leave() == 0
        finally:
            put_away(terminal.process)
    assert sorted(path.name for path in marvin.project.iterdir()) == ["app_start"]
