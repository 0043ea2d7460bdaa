"""Commands of config.yaml that events start: real ones, in real sessions, failing in every way."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from marvin_core.api.config import Config, ShellHook
from marvin_core.api.errors import ConfigError
from marvin_core.api.events import Event
from marvin_core.api.messages import ToolCall, user
from marvin_core.api.permissions import Question, Reply
from marvin_core.config.file.shell_hooks import event_names
from marvin_core.config.settings import parse_settings
from marvin_core.guard.sandbox.state import RESULT
from tests.support.engine import BARE_PATH, QUICK, Made, calls, make, run, says
from tests.support.hooked import marked, prompt, warnings
from tests.support.sandboxes import tried

HURRIED = QUICK.replace(hook=0.4, hook_decision=0.4)
"""For commands that hang."""
METHODS = ("on_prompt", "system_prompt", "before_request", "before_tool", "after_tool", "on_stop")
EVENTS = tuple(kind.type for kind in get_args(Event))


def hooked(tmp_path: Path, *hooks: tuple[str, str], **settings: Any) -> Made:
    """A session with these commands, whose model calls `mark` and then says that it is done."""
    settings.setdefault("shell_hooks", tuple(ShellHook(event=event, command=command) for event, command in hooks))
    return make(tmp_path, calls(("c0", "mark", '{"name": "x"}')), says("done"), **settings)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


# --- which events there are ----------------------------------------------------------------------------------------


def test_every_method_and_every_event_of_the_reference_starts_a_command(tmp_path: Path) -> None:
    """One prompt with one call; what such a prompt has no part in is not there."""
    log = tmp_path / "log"
    made = hooked(tmp_path, *((event, f"cat >> {log}") for event in event_names()))
    assert prompt(made) == "done"
    seen = {line["event"]: line for line in lines(log)}
    rare = {"session_resume", "session_clear", "tool_execution_update", "notice", "model_cycle"}
    assert set(seen) == set(event_names()) - rare
    assert seen["on_prompt"]["text"] == seen["agent_start"]["prompt"] == "go"
    assert (seen["before_tool"]["tool"], seen["before_tool"]["arguments"]["name"]) == ("mark", "x")
    assert seen["after_tool"]["result"]["is_error"] is False
    assert seen["on_stop"]["answer"] == "done"
    assert seen["before_request"]["messages"][0]["role"] == "user"
    assert seen["agent_end"]["stop_reason"] == "done"
    for line in seen.values():
        assert (line["cwd"], line["interactive"], line["depth"]) == (str(tmp_path / "project"), False, 0)


def test_the_rare_events_start_commands_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = hooked(tmp_path, ("session_clear", f"cat >> {log}"), ("notice", f"cat >> {log}"))

    async def go() -> None:
        made.session.sessions.clear()
        made.parts.bus.warn("look out")
        await made.session.close()

    run(go())
    assert [line["event"] for line in lines(log)] == ["session_clear", "notice"]


def test_a_command_that_judges_a_call_finds_what_was_said_before_in_the_session(tmp_path: Path) -> None:
    """Also an answer that may wait for the outputs of its calls."""
    seen = tmp_path / "seen"
    made = hooked(tmp_path, ("before_tool", f"cat {tmp_path}/home/marvin/data/sessions/*.jsonl > {seen}"))

    async def go() -> None:
        made.session.sessions.begin("go")
        made.parts.conversation.append(user("I look."), within=3_600)
        await made.session.dispatcher.call(ToolCall(id="c0", name="look", arguments='{"name": "x"}'))
        await made.session.close()

    run(go())
    assert lines(seen)[-1]["message"]["content"][0]["text"] == "I look."


def test_the_names_of_the_lifecycle_are_those_of_events() -> None:
    text = "hooks:\n  tool.execute.before: [a]\n  tool.execute.after: [b]\n  session.start: [c]\n  turn.end: [d]\n"
    entries = parse_settings(text.encode(), Path("config.yaml"))["hooks"]
    found = [entry["event"] for entries in entries.values() for entry in entries]
    assert found == ["before_tool", "after_tool", "session_start", "turn_end"]


# --- what exit codes decide ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no such notes >&2; exit 2", "no such notes"),
        ("echo from stdout; exit 2", "from stdout"),
        ("exit 2", "denies it"),
        ("exit 1", "ended with exit code 1"),
        ("echo broken >&2; exit 7", "broken"),
        ("kill -KILL $$", "was ended by signal 9"),
        ("/nowhere/check", "ended with exit code 127"),
        ("head -c 300000 /dev/urandom; exit 9", "ended with exit code 9"),
        ("head -c 300000 /dev/urandom >&2; exit 2", ""),
        ("printf '\\033[2Jgone\\033]0;x\\007' >&2; exit 2", "gone"),
    ],
)
def test_a_command_that_objects_or_fails_denies_the_call(tmp_path: Path, command: str, why: str) -> None:
    made = hooked(tmp_path, ("before_tool", command))
    output = marked(made)
    assert output.is_error
    assert "mark was not run" in output.text
    assert why in output.text
    assert "\x1b" not in output.text
    assert len(output.text) < 2_000
    assert made.log == []


@pytest.mark.parametrize("command", ["true", "cat > /dev/null", "echo garbage", "echo '{\"deny\": true}'", "exec <&-"])
def test_what_a_command_prints_with_exit_code_0_denies_nothing(tmp_path: Path, command: str) -> None:
    made = hooked(tmp_path, ("before_tool", command))
    assert not marked(made).is_error


@pytest.mark.parametrize("command", ["sleep 60", "yes", "trap '' TERM; sleep 60", "(setsid sleep 60 &) ; sleep 60"])
def test_a_command_that_takes_too_long_denies_the_call_and_is_gone(tmp_path: Path, command: str) -> None:
    pid = tmp_path / "pid"
    made = hooked(tmp_path, ("before_tool", f"echo $$ > {pid}; {command}"), timeouts=HURRIED)
    begin = time.monotonic()
    output = marked(made)
    assert "did not decide within 0.4 s" in output.text
    assert time.monotonic() - begin < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIG_DFL)


def test_a_command_that_wants_a_yes_is_asked_for_with_its_reason(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def permit(question: Question) -> list[Reply]:
        asked.append(question)
        return [Reply(says="no", text="not today")]

    async def ask(question: str, choices: object) -> str:
        raise AssertionError(question)

    made = hooked(tmp_path, ("before_tool", "echo it is late >&2; exit 3"), asker=ask, permit=permit)
    assert "not today" in marked(made).text
    assert "it is late" in asked[0].calls[0].reason
    assert asked[0].calls[0].answers == ("once", "no")


def test_a_command_with_tools_is_started_for_those_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    hooks = (
        ShellHook(event="before_tool", command="exit 2", tools=("write_*", "other")),
        ShellHook(event="before_tool", command=f"cat >> {log}", tools=("ma*",)),
        ShellHook(event="tool_execution_end", command=f"cat >> {log}", tools=("other",)),
    )
    assert not marked(hooked(tmp_path, shell_hooks=hooks)).is_error
    assert [line["tool"] for line in lines(log)] == ["mark"]


def test_the_strictest_command_decides_and_all_are_started_in_their_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = hooked(tmp_path, *(("before_tool", f"echo {n} >> {log}; exit {code}") for n, code in enumerate([0, 3, 2])))
    assert marked(made).is_error
    assert log.read_text().split() == ["0", "1", "2"]


def test_a_prompt_a_system_prompt_and_a_result_take_what_commands_print(tmp_path: Path) -> None:
    hooks = [("on_prompt", "echo branch main"), ("system_prompt", "echo be kind"), ("after_tool", "echo linted")]
    made = hooked(tmp_path, *hooks)
    assert prompt(made) == "done"
    assert made.provider is not None
    first, second = made.provider.requests
    assert first.messages[-1].text == "go\n\nbranch main"
    assert "be kind" in first.system
    assert "linted" in second.messages[-1].outputs[0].text


def test_a_result_that_is_objected_to_is_an_error_that_says_why(tmp_path: Path) -> None:
    made = hooked(tmp_path, ("after_tool", "echo line 3; echo bad style >&2; exit 2"))
    output = marked(made)
    assert output.is_error
    assert output.text.endswith("line 3\nbad style")
    assert made.log


def test_the_model_goes_on_where_a_command_says_that_it_is_not_done(tmp_path: Path) -> None:
    flag = tmp_path / "told"
    command = f"test -e {flag} || {{ touch {flag}; echo the tests fail; exit 2; }}"
    hooks = (ShellHook(event="on_stop", command=command),)
    made = make(tmp_path, says("finished"), says("mended"), shell_hooks=hooks)
    assert "mended" in prompt(made)
    assert made.provider is not None
    assert made.provider.requests[1].messages[-1].text == "the tests fail"


# --- what fails is skipped, and holds nothing up -------------------------------------------------------------------

FAILURES = {
    "exit": ("exit 5", "exit code 5"),
    "killed": ("kill -TERM $$", "signal 15"),
    "missing": ("/nowhere/x", "exit code 127"),
    "slow": ("sleep 60", "took longer than 0.4 s"),
    "flood": ("yes", "took longer than 0.4 s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("event", [name for name in (*METHODS, *EVENTS) if name != "before_tool"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_command_is_told_of_and_the_prompt_goes_on(tmp_path: Path, event: str, failure: str) -> None:
    command, why = FAILURES[failure]
    mark = tmp_path / "started"
    made = hooked(tmp_path, (event, f"touch {mark}; {command}"), timeouts=HURRIED)
    begin = time.monotonic()
    assert prompt(made) == "done"
    assert time.monotonic() - begin < 30
    if mark.exists() and event != "agent_end":  # the end waits for the last events no longer than for one
        assert why in warnings(made) or "held up the end" in warnings(made)
        assert f"hooks.{event} in config.yaml" in warnings(made)
    assert made.log


@pytest.mark.parametrize("output", [b"\xff\xfe\x00\x1b[2J", b"", b"\n\n", b"{", "\u202e".encode()])
def test_garbage_goes_to_the_model_as_harmless_text(tmp_path: Path, output: bytes) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(output)
    made = hooked(tmp_path, ("on_prompt", f"cat {garbage}"), ("after_tool", f"cat {garbage}"))
    assert prompt(made) == "done"
    assert made.provider is not None
    assert "\x1b" not in made.provider.requests[0].messages[-1].text


def test_a_long_event_reaches_a_command_whole_and_one_that_reads_nothing_is_no_failure(tmp_path: Path) -> None:
    log, text = tmp_path / "log", "long " * 200_000
    made = hooked(tmp_path, ("on_prompt", f"cat > {log}"), ("on_prompt", "true"), ("before_request", "exec <&-; true"))
    assert prompt(made, text) == "done"
    assert lines(log)[0]["text"] == text
    assert warnings(made) == ""


def test_no_secret_reaches_a_command(tmp_path: Path) -> None:
    """Neither in what it reads nor in its environment."""
    log, key = tmp_path / "log", "sk-quite-a-secret-0123456789"
    made = hooked(tmp_path, ("before_request", f"cat >> {log}; env >> {log}"), env={"GROQ_API_KEY": key})
    made.parts.setup.secrets.value("GROQ_API_KEY", "the key", None)
    assert prompt(made, f"my key is {key}") == "done"
    assert "my key is" in log.read_text()
    assert key not in log.read_text()


@pytest.mark.slow
def test_a_command_runs_as_the_user_and_in_the_sandbox_where_it_says_so(tmp_path: Path) -> None:
    cache = tmp_path / "home" / "marvin" / "cache"
    cache.mkdir(parents=True)
    kept = json.loads(tried())
    kept["key"][-1] = BARE_PATH
    (cache / RESULT).write_text(json.dumps(kept), encoding="utf-8")
    (cache / RESULT).chmod(0o600)
    outside = ShellHook(event="before_tool", command="echo x > ~/outside")
    inside = ShellHook(event="before_tool", command="echo x > ~/inside", sandbox=True)
    output = marked(hooked(tmp_path, shell_hooks=(outside, inside), sandbox="auto"))
    assert "Read-only file system" in output.text
    assert ((tmp_path / "home" / "outside").exists(), (tmp_path / "home" / "inside").exists()) == (True, False)


# --- config.yaml ---------------------------------------------------------------------------------------------------


def read(tmp_path: Path, text: str) -> Config:
    return make(tmp_path, yaml=text).config


def test_config_yaml_holds_commands_and_mappings(tmp_path: Path) -> None:
    text = "hooks:\n  before_tool:\n    - ./check\n    - command: lint\n      tools: [write_*]\n      sandbox: true\n"
    hooks = (
        ShellHook(event="before_tool", command="./check"),
        ShellHook(event="before_tool", command="lint", tools=("write_*",), sandbox=True),
    )
    assert read(tmp_path, text).shell_hooks == hooks
    assert read(tmp_path, text).shell_hooks == hooks  # from the cache


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hooks:\n  befor_tool: [x]\n", "line 2: hooks.befor_tool: there is no such event. Did you mean 'before_tool'"),
        ("hooks:\n  on_prompt: x\n", "line 2: hooks.on_prompt: must be a list"),
        ("hooks: [x]\n", "line 1: hooks: must be a mapping"),
        ("hooks:\n  on_prompt:\n    - a\n    - ''\n", "line 4"),
        ("hooks:\n  on_prompt:\n    - 5\n", "An entry must be a command, or a mapping with the key `command`"),
        ("hooks:\n  before_tool:\n    - {comand: x}\n", "Did you mean 'command'?"),
        ("hooks:\n  before_tool:\n    - {command: x, tools: write}\n", "tools must be a list of names"),
        ("hooks:\n  before_tool:\n    - {command: x, tools: []}\n", "tools must be a list of names"),
        ("hooks:\n  on_prompt:\n    - {command: x, tools: [a]}\n", "on_prompt is about no call"),
        ("hooks:\n  on_prompt:\n    - {command: x, sandbox: 1}\n", "true or false"),
        ('hooks:\n  on_prompt:\n    - "a\\0b"\n', "An entry must be a command"),
        ("hooks:\n  5: [x]\n", "hooks.5: there is no such event"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml, line") as refused:
        read(tmp_path, text)
    assert why in str(refused.value)


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    """The first entry of `before_tool` guards a folder; jq may be missing, and then it denies."""
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "shell-hooks.md").read_text("utf-8")
    text = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0]
    config = read(tmp_path, text)
    assert [hook.event for hook in config.shell_hooks] == ["before_tool", "after_tool", "on_prompt", "agent_end"]
    dated = next(hook for hook in config.shell_hooks if hook.event == "on_prompt")
    made = hooked(tmp_path, shell_hooks=(dated,))
    assert prompt(made) == "done"
    assert made.provider is not None
    assert re.fullmatch(r"go\n\nIt is \w+day, \d\d:\d\d\.", made.provider.requests[0].messages[-1].text)
