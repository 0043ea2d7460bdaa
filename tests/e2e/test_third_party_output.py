"""What services, tools, hooks and files bring steers no terminal and stops no run without a word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, error, text
from tests.e2e.support_e2e import Marvin, Result, assert_loadable

pytestmark = pytest.mark.slow

PWNED = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202e\x08"
ARMED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def assert_disarmed(result: Result, *wanted: str) -> None:
    """No stream holds a terminal sequence, and each text is still there."""
    assert ARMED.search(result.text) is None
    assert ARMED.search(result.err.decode()) is None
    for said in wanted:
        assert said in result.text + result.err.decode()


@pytest.mark.parametrize("kind", ["text", "json", "stream-json"])
def test_answers_tool_names_and_errors_are_disarmed_in_every_format(
    marvin: Marvin, marvin_model_server: ModelServer, kind: str
) -> None:
    pieces = ["before ", "\x1b", "]0;PWN", "ED\x07after \x1b[", "2J", "the end"]
    marvin_model_server.script(
        calls((f"made{PWNED}up", {}), text=f"I{PWNED} look."),
        text("".join(pieces), chunks=pieces),
    )
    result = marvin.ask("--output-format", kind)
    assert result.code == 0
    assert_disarmed(result)
    if kind == "text":
        assert result.text == "I look.\n  🔧 madeup\nbefore after the end\n"
    elif kind == "json":
        assert json.loads(result.text)["text"].endswith("".join(pieces))
    else:
        assert "".join(e["delta"] for e in result.events() if e.get("kind") == "text").endswith("".join(pieces))


def test_an_error_of_a_service_is_disarmed(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(error(401, f"wrong{PWNED} key"))
    result = marvin.ask()
    assert result.code == 1
    assert_disarmed(result, "did not accept the API key (401): wrong")


TOOLS = """
from typing import Any

from marvin_core import ToolContext, ToolResult, tool


class Odd:
    pass


CYCLE: dict[str, Any] = {{}}
CYCLE["self"] = CYCLE


@tool(access=["read"])
async def shout() -> str:
    \"\"\"Return terminal sequences.\"\"\"
    return {pwned!r} + "shouted"


@tool(access=["read"])
async def asks(context: ToolContext) -> str:
    \"\"\"Ask with terminal sequences.\"\"\"
    return "chose " + await context.ask({pwned!r} + "Which way?", [{pwned!r} + "left", "right"])


@tool(access=["read"])
async def odd_details() -> ToolResult:
    \"\"\"Return details with keys that are no text.\"\"\"
    return ToolResult(content="odd", details={{("a", 1): float("nan"), 2: Odd}})


@tool(access=["read"])
async def cyclic() -> ToolResult:
    \"\"\"Return details that hold themselves.\"\"\"
    return ToolResult(content="cyclic", details=CYCLE)
"""


def add_tools(marvin: Marvin) -> None:
    folder = marvin.config_folder / "tools"
    folder.mkdir()
    (folder / "strange.py").write_text(TOOLS.format(pwned=PWNED), "utf-8")


def test_what_tools_and_sessions_hold_is_disarmed_in_every_command(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    add_tools(marvin)
    marvin_model_server.script(calls(("shout", {}), text=f"I{PWNED} call."), text(f"Done{PWNED}."))
    assert marvin.ask(prompt=f"Shout{PWNED} please").code == 0
    (path,) = marvin.session_files()
    wanted = {
        ("tools", "call", "shout"): "shouted",
        ("sessions", "list"): "Shout",
        ("sessions", "show", path.stem): "shouted",
        ("sessions", "search", "shouted"): "shouted",
        ("sessions", "export", path.stem): "shouted",
        ("sessions", "export", path.stem, "--format", "html"): "shouted",
        ("sessions", "export", path.stem, "--format", "json"): "shouted",
    }
    for words, said in wanted.items():
        result = marvin.run(*words)
        assert result.code == 0, words
        assert_disarmed(result, said)
    kept = json.loads(marvin.run("sessions", "export", path.stem, "--format", "json").text)
    assert kept["messages"][0]["content"][0]["text"] == f"Shout{PWNED} please"  # JSON says the same, in escapes
    path.write_bytes(path.read_bytes().replace(b'"id":"', b'"id":"\\u001b[2J', 1))
    for words in (("sessions", "list"), ("sessions", "doctor"), ("sessions", "show", path.stem)):
        assert_disarmed(marvin.run(*words))


def test_a_chat_in_a_pipe_is_disarmed(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Answers in pieces, tool lines, questions with their choices, and outputs."""
    add_tools(marvin)
    pieces = ["before \x1b", "]0;PWN", "ED\x07after"]
    marvin_model_server.script(
        calls(("shout", {}), (f"made{PWNED}up", {}), text=f"I{PWNED} look."), text("".join(pieces), chunks=pieces)
    )
    result = marvin.run("--plain", stdin=b"/asks\nright\n/shout\nGo on.\nexit\n")
    assert result.code == 0
    assert_disarmed(result, "Which way?", "left/right]", "chose right", "shouted", "I look.", "before after")


def test_strange_details_end_no_run_and_every_call_has_its_output(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """I14, I15: keys that are no text are written as text; what holds itself is an error of its call."""
    add_tools(marvin)
    marvin_model_server.script(calls(("odd_details", {}), ("cyclic", {}), ("get_working_dir", {})), text("All seen."))
    result = marvin.ask("--output-format", "stream-json")
    assert result.code == 0
    ended = {e["name"]: e for e in result.events() if e["type"] == "tool_execution_end"}
    assert ended["odd_details"]["details"]["('a', 1)"] == "nan"
    assert ended["odd_details"]["is_error"] is False
    assert "it contains itself" in ended["cyclic"]["text"]
    assert ended["get_working_dir"]["is_error"] is False
    assert result.events()[-1]["text"] == "All seen."
    assert_loadable(marvin.messages())


HOOK = """
import asyncio

from marvin_core import Hook


class Strange(Hook):
    async def {method}(self, *arguments):
        raise {raised}
"""


@pytest.mark.parametrize("raised", ["asyncio.CancelledError()", "SystemExit('bye')"])
@pytest.mark.parametrize("method", ["on_prompt", "system_prompt", "before_request", "on_event", "after_tool"])
def test_a_hook_that_cancels_or_leaves_is_skipped_and_named(
    marvin: Marvin, marvin_model_server: ModelServer, method: str, raised: str
) -> None:
    """I22: the answer comes, the exit code is that of success, and MARVIN_COST is the last line."""
    folder = marvin.config_folder / "hooks"
    folder.mkdir()
    (folder / "strange.py").write_text(HOOK.format(method=method, raised=raised), "utf-8")
    marvin_model_server.script(calls(("get_working_dir", {})), text("Fine."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 get_working_dir\nFine.\n")
    assert f"The hook Strange.{method} failed: {raised.partition('(')[0].removeprefix('asyncio.')}" in result.said
    assert result.cost()["llm_turns"] == 2


def test_a_cancel_that_nobody_asked_for_is_no_success(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A hook that cancels the very task that runs it asks for an end, but it is not the user who does."""
    folder = marvin.config_folder / "hooks"
    folder.mkdir()
    code = HOOK.format(method="on_prompt", raised="SystemExit").replace(
        "        raise SystemExit", "        asyncio.current_task().cancel()\n        await asyncio.sleep(0)"
    )
    (folder / "strange.py").write_text(code, "utf-8")
    marvin_model_server.script(text("Never asked."))
    result = marvin.ask()
    assert (result.code, result.text) == (1, "")
    assert "the run was cancelled by code in Marvin or a pack, not by a signal. Try again" in result.said
    assert result.cost()["llm_turns"] == 0


def test_two_runs_begun_at_once_have_a_session_each(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(*(text(f"{number}.") for number in range(6)))
    running = [marvin.ask_in_background(prompt="The same words each time") for _ in range(6)]
    results: list[Any] = [run.finish() for run in running]
    assert {result.code for result in results} == {0}
    assert len(marvin.session_files()) == 6


def test_bad_session_files_end_neither_lists_nor_the_next_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("First."), text("Second."))
    assert marvin.ask(prompt="one").code == 0
    (good,) = marvin.session_files()
    bad: dict[str, bytes] = {
        "deep": b"[" * 100_000,
        "nul": b"\0" * 100_000,
        "binary": bytes(range(256)) * 100,
        "wrong": b'{"type":"session","id":5,"title":[],"time":"x"}\n[[[[\n"text"\n',
    }
    for name, content in bad.items():
        Path(good.with_name(f"99990101-{name}.jsonl")).write_bytes(content)
    listed = marvin.run("sessions", "list")
    assert listed.code == 0
    assert good.stem in listed.text
    assert listed.err.decode().count("is damaged") == len(bad)
    examined = marvin.run("sessions", "doctor")
    assert examined.code == 1
    assert "internal error" not in examined.text + examined.err.decode()
    assert "Traceback" not in examined.err.decode()
    good.write_bytes(good.read_bytes() + b"[" * 100_000 + b"\n")
    result = marvin.ask("--continue", prompt="two")
    assert (result.code, result.text) == (0, "Second.\n")
    assert "was skipped: it is nested more than 100 deep" in result.said


def test_the_limit_of_a_line_holds_for_every_command(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """What is too long for a line is cut when written; with a lower limit, it is passed over and named."""
    marvin.config("limits: {session_line: 50000}\n")
    marvin_model_server.script(text("An answer. " * 10_000), text("Short."))
    assert marvin.ask(prompt="one").code == 0
    (path,) = marvin.session_files()
    assert max(map(len, path.read_bytes().split(b"\n"))) <= 50_000
    shown = marvin.run("sessions", "show", path.stem)
    assert "characters were left out.]" in shown.text
    assert marvin.run("sessions", "doctor").code == 0
    marvin.config("limits: {session_line: 2000}\n")
    for words in (("sessions", "show", path.stem), ("sessions", "export", path.stem)):
        result = marvin.run(*words)
        assert (result.code, "is longer than 2,000 bytes" in result.err.decode()) == (0, True)
    assert marvin.run("sessions", "doctor").code == 1
    again = marvin.ask("--continue", prompt="two")
    assert (again.code, again.text) == (0, "Short.\n")
    assert "is longer than 2,000 bytes" in again.said
