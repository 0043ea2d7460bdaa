"""Agents that the tools start: what they get, what comes back, and that they end with whoever started them."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pexpect
import pytest

from marvin_core.testing import answers, calls, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, end_of, put_away, told, wait_until
from tests.support.agents import TOOL, AgentModels, agents_in, asked_by, processes_in, start
from tests.support.money import usage

KEY = "sk-the-key-itself-0123456789"
PRICED = "prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}, qwen/qwen3-14b: {input: 1.0, output: 1.0}}\n"
RESEARCH = "launch_research_agent"
WRITES = "printf 'in ' >>written; sleep 0.2; printf 'out ' >>written"
pytestmark = pytest.mark.slow
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


@pytest.fixture
def marvin(tmp_path: Path, models: AgentModels, warm_cache: Path) -> Marvin:
    """Marvin with a model for each agent, and a tool that starts any agent."""
    found = Marvin(tmp_path, models, warm_cache)
    found.env |= {"OPENAI_COMPAT_API_KEY": KEY, "MARVIN_SANDBOX": "off"}
    (found.config_folder / "tools").mkdir()
    (found.config_folder / "tools" / "agents_for_tests.py").write_text(TOOL)
    return found


def script(models: AgentModels, **scripts: Any) -> None:
    """Say what each agent is answered."""
    for word, steps in scripts.items():
        models.scripts[word] = deque(steps)


def results(models: AgentModels, word: str = "Do") -> list[dict[str, Any]]:
    """What became of the agents that start_agent started, as the model was told."""
    return results_of(models, "start_agent", word)


def results_of(models: AgentModels, tool: str, word: str = "Do") -> list[dict[str, Any]]:
    """What came of the calls of one tool, in their order."""
    messages = asked_by(models, word)[-1]["messages"]
    made = [call for message in messages for call in message.get("tool_calls", ())]
    ids = [call["id"] for call in made if call["function"]["name"] == tool]
    told_of = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    return [json.loads(told_of[one]) for one in ids]


def names_offered(body: dict[str, Any]) -> set[str]:
    """The tools that a request carries."""
    return {entry["function"]["name"] for entry in body["tools"]}


def prompt_of_request(body: dict[str, Any]) -> str:
    """The prompt of a request."""
    return str(next(message["content"] for message in body["messages"] if message["role"] == "user"))


def test_the_answer_of_an_agent_comes_back_with_what_it_cost(marvin: Marvin, models: AgentModels) -> None:
    marvin.config(PRICED)
    (marvin.project / "total.py").write_text("def total(items): ...\n")
    script(
        models,
        Do=[calls((RESEARCH, {"query": "Look at total.py."}), usage=usage(1_000, 1)), text("Told.", usage=usage(1, 1))],
        Look=[
            calls(("read_file", {"path": "total.py"}), usage=usage(2_000, 500)),
            text("It adds numbers.", usage=usage(500, 1_000)),
        ],
    )
    done = marvin.ask("--output-format", "stream-json")
    assert done.code == 0, done.said
    (output,) = [event for event in done.events() if event["type"] == "tool_execution_end"]
    said, _, facts = output["text"].partition("\n\n")
    assert (said, output["is_error"]) == ("It adds numbers.", False)
    assert "0.0040 USD" in facts
    assert output["details"]["cost"] == pytest.approx(0.004)
    assert output["details"]["session"] in facts
    log = facts.partition("its calls: ")[2].removesuffix("]")
    assert [json.loads(line)["tool"] for line in (marvin.project / log).read_text().splitlines()] == ["read_file"]
    shown = [event["text"] for event in done.events() if event["type"] == "tool_execution_update"]
    assert shown == ["round 1: read_file path=total.py"]
    cost = done.cost()
    assert cost["session_cost"] == pytest.approx(0.005003), "what agents cost is part of what the run cost"
    assert cost["llm_turns"] == 4
    assert len(marvin.session_files()) == 2


@linux
def test_agents_get_these_variables_and_no_others_two_levels_deep(marvin: Marvin, models: AgentModels) -> None:
    """Name by name: what binds an agent, the key of its model's service, and no other secret. I8, I24."""
    marvin.config(PRICED)
    marvin.env |= {"ANTHROPIC_API_KEY": "sk-ant-another-key", "MY_COPY": "token=sk-ant-another-key"}
    marvin.env |= {"GIT_DIR": "/elsewhere", "PYTHONPATH": "/elsewhere", "A_SETTING": "of the user", "LC_ALL": "C.UTF-8"}
    (marvin.project / "inner").mkdir()
    release = threading.Event()
    bound = {"read_only": True, "writable_files": ["a.md", "b/c.md"], "ticket": "x-1", "model": "qwen/qwen3-14b"}
    script(
        models,
        Do=[calls(start("Outer is here.", working_dir="inner")), text("Done.")],
        Outer=[calls(start("Inner is here.", **bound)), text("Outer is done.")],
        Inner=[answers.pause(release, text("Inner is done."))],
    )
    running = marvin.ask_in_background("--max-cost", "5", "--provider", "openai-compat")
    try:
        running.until(lambda: asked_by(models, "Inner"), "the inner agent asks its model")
        agents = agents_in(marvin.home)
    finally:
        release.set()
    assert running.finish().code == 0
    always = {
        "PATH": marvin.env["PATH"],
        "HOME": str(marvin.home),
        "LC_ALL": "C.UTF-8",
        "A_SETTING": "of the user",
        "OPENAI_COMPAT_URL": models.url,
        "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b",
        "OPENAI_COMPAT_API_KEY": KEY,
        "MARVIN_MAX_COST": "5.000000",
        "MARVIN_SANDBOX": "off",
        "MARVIN_ON_ASK": "allow",
        "MARVIN_TOOL_SEARCH": "auto",
        "MARVIN_PERMISSION_MODE": "ask",
    }
    outer, inner = agents["Outer"].environment, agents["Inner"].environment
    own = ("MARVIN_PROC", "MARVIN_LIFELINE", "MARVIN_SUBAGENT_LOG")
    logs = {Path(environment["MARVIN_SUBAGENT_LOG"]) for environment in (outer, inner)}
    assert {outer[name] for name in own}.isdisjoint(inner[name] for name in own)
    shared = ("MARVIN_LEDGER", "MARVIN_AGENT_SLOTS")
    assert [outer[name] for name in shared] == [inner[name] for name in shared], "one budget, and one limit, for all"
    named = {*own, *shared}
    assert {name: value for name, value in outer.items() if name not in named} == {
        **always,
        "MARVIN_DEPTH": "1",
        "MARVIN_MODEL": "qwen/qwen3-32b",
    }
    assert {name: value for name, value in inner.items() if name not in named} == {
        **always,
        "MARVIN_DEPTH": "2",
        "MARVIN_MODEL": "qwen/qwen3-14b",
        "MARVIN_TICKET": "x-1",
        "MARVIN_READONLY": "1",
        "MARVIN_WRITABLE_FILES": ",".join(str(marvin.project / "inner" / name) for name in ("a.md", "b/c.md")),
    }
    assert {path.parent for path in logs} == {
        marvin.project / ".marvin" / "logs",
        marvin.project / "inner" / ".marvin" / "logs",
    }
    assert agents["Inner"].argv == [
        *(sys.executable, "-P", "-m", "marvin_core", "--non-interactive", "--output-format=stream-json"),
        f"--working-dir={marvin.project / 'inner'}",
        *("--provider=openai-compat", "--model=qwen/qwen3-14b"),
        f"--prompt-file={agents['Inner'].prompt_file}",
    ]
    assert agents["Inner"].prompt_file.stat().st_mode & 0o777 == 0o600


def test_no_library_is_taken_from_the_project(marvin: Marvin, models: AgentModels) -> None:
    """Agents start with -P and without PYTHONPATH, wherever they work."""
    for name in ("httpx.py", "json.py", "marvin_core/__init__.py"):
        path = marvin.project / "inner" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('this is the file of the project')\n")
    marvin.env["PYTHONPATH"] = str(marvin.project / "inner")
    marvin.env["PYTHONPATH"] = ""
    script(models, Do=[calls(start("Look.", working_dir="inner")), text("Done.")], **{"Look.": [text("Looked.")]})
    assert marvin.ask().code == 0
    assert [result["text"] for result in results(models)] == ["Looked."]


@linux
@pytest.mark.parametrize("sandbox", ["auto", "off"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_agents_end_with_whoever_started_them(
    marvin: Marvin, models: AgentModels, number: signal.Signals, sandbox: str
) -> None:
    """I25: however that one ends, with their own agents and the commands of those."""
    marvin.env["MARVIN_SANDBOX"] = sandbox
    command = "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo $$ >>pids; wait"
    script(
        models,
        Do=[calls(start("Outer is here."), start("Reader is here.", read_only=True))],
        Outer=[calls(start("Inner is here."))],
        Inner=[calls(("run_command", {"command": command, "timeout": 900}))],
        Reader=[answers.hang()],
    )
    running = marvin.ask_in_background()
    running.until(lambda: marvin.pids() and asked_by(models, "Reader"), "a command of the inner agent runs")
    running.send(number)
    running.finish()
    wait_until(lambda: not processes_in(marvin.home), "nothing of it is left")
    marvin.assert_nothing_left()


@linux
def test_an_agent_that_is_killed_leaves_nothing_and_is_told_of(marvin: Marvin, models: AgentModels) -> None:
    script(
        models,
        Do=[calls(start("Outer is here.")), text("Done.")],
        Outer=[calls(("run_command", {"command": "setsid sleep 1000 & echo $$ >>pids; wait", "timeout": 900}))],
    )
    running = marvin.ask_in_background()
    running.until(marvin.pids, "the command runs")
    os.kill(agents_in(marvin.home)["Outer"].pid, signal.SIGKILL)
    assert running.finish().code == 0
    (result,) = results(models)
    assert (result["ended"], result["exit_code"]) == ("failed", -9)
    assert "killed by signal 9" in result["reason"]
    marvin.assert_nothing_left()


def test_an_agent_that_takes_too_long_is_ended(marvin: Marvin, models: AgentModels) -> None:
    marvin.config("timeouts: {agent_research: 3}\n")
    script(models, Do=[calls((RESEARCH, {"query": "Look."})), text("Done.")], **{"Look.": [answers.hang()]})
    assert marvin.ask().code == 0
    (output,) = told(models)
    assert output.startswith("Error: ") or "did not finish (timeout): It took longer than 3 s" in output
    assert "The files that it wrote were kept. Check them before you continue or start another agent" not in output, (
        "it only reads"
    )


def test_agents_that_read_run_side_by_side_and_those_that_write_one_after_the_other(
    marvin: Marvin, models: AgentModels
) -> None:
    together = threading.Event()
    names = ("A", "B", "C")
    script(
        models,
        Do=[
            calls(*((RESEARCH, {"query": f"Read{name} it."}) for name in names)),
            calls(*(start(f"Write{name} it.") for name in names)),
            text("Done."),
        ],
        **{f"Read{name}": [answers.pause(together, text(f"Read {name}."))] for name in names},
        **{f"Write{name}": [calls(("run_command", {"command": WRITES})), text(f"Wrote {name}.")] for name in names},
    )
    running = marvin.ask_in_background()
    running.until(lambda: all(asked_by(models, f"Read{name}") for name in names), "all of them ask at a time")
    together.set()
    assert running.finish().code == 0
    assert [output["text"] for output in results_of(models, "start_agent")] == [f"Wrote {name}." for name in names]
    assert (marvin.project / "written").read_text() == "in out " * 3


def test_an_agent_has_no_tool_that_the_one_above_was_not_given(marvin: Marvin, models: AgentModels) -> None:
    script(
        models,
        Do=[calls(start("Work now."), start("Edit now.", tools="files,-tree")), text("Done.")],
        Work=[text("Done.")],
        Edit=[text("Done.")],
    )
    assert marvin.ask("--tools", "coding,-run_command,-apply_patch").code == 0
    offered = {word: names_offered(asked_by(models, word)[0]) for word in ("Work", "Edit")}
    assert {"read_file", "create_file", "launch_agent"} <= offered["Work"]
    assert offered["Work"].isdisjoint({"run_command", "apply_patch"})
    assert {"read_file", "create_file"} <= offered["Edit"]
    assert offered["Edit"].isdisjoint({"run_command", "apply_patch", "tree", "git_commit"})


def test_what_an_agent_is_told_of_the_project(marvin: Marvin, models: AgentModels) -> None:
    for name, line in ((".marvin/spec.md", "spec "), (".marvin/design.md", "plan "), (".marvin/memories/INDEX.md", "")):
        path = marvin.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line * 1_000)
    (marvin.project / "total.py").write_text("")
    script(
        models,
        Do=[calls(start("Work now.", ticket="x-1"), start("Read now.", read_only=True)), text("Done.")],
        Work=[text("Done.")],
        Read=[text("Done.")],
    )
    assert marvin.ask().code == 0
    work, read = (prompt_of_request(asked_by(models, word)[0]) for word in ("Work", "Read"))
    assert work.startswith("Work now.\n")
    for prompt in (work, read):
        assert (prompt.count("spec "), prompt.count("plan ")) == (400, 300)
        assert str(marvin.project) in prompt
        assert "total.py" in prompt
        assert ".marvin/memories/INDEX.md" in prompt
        assert "no mocks" in prompt
    assert "--parent x-1" in work
    assert "--parent" not in read


def test_the_pipeline_says_how_to_install_it(marvin: Marvin, models: AgentModels) -> None:
    ticket = marvin.run("tk", "create", "All of it").text.strip()
    build = {"ticket_id": ticket, "prompt": "Build it.", "design_first": True}
    script(models, Do=[calls(("launch_agent", build)), text("Done.")])
    assert marvin.ask(env={"MARVIN_PACKS": "core,coding"}).code == 0
    (output,) = told(models)
    assert "(failed)" in output
    assert 'pip install "marvin-core[pipeline]"' in output


def test_agents_are_nested_no_deeper_than_five(marvin: Marvin, models: AgentModels) -> None:
    """I7"""
    script(models, Do=[calls((RESEARCH, {"query": "Look."})), text("Done.")])
    assert marvin.ask(env={"MARVIN_DEPTH": "5"}).code == 0
    (output,) = told(models)
    assert "agents may be nested 5 levels deep" in output
    assert not asked_by(models, "Look.")


@linux
def test_eight_at_once_on_one_budget_and_nothing_is_lost_or_left(marvin: Marvin, models: AgentModels) -> None:
    """One is killed, one hangs, one floods its output, one starts an agent, four read: the ceiling holds for all."""
    marvin.config(f"{PRICED}timeouts: {{agent_research: 40, retry_backoff: [0.05], ceiling_poll: 0.05}}\n")
    flood = "x" * 3_000_000
    readers = [f"Reader{number}" for number in range(4)]
    spends = usage(10_000, 1_000)
    script(
        models,
        Do=[
            calls(
                start("Killed is here."),
                start("Hanging is here.", read_only=True, timeout=8),
                start("Flooding is here.", read_only=True),
                start("Outer is here."),
                *(start(f"{name} is here.", read_only=True) for name in readers),
                usage=spends,
            ),
            text("Done.", usage=spends),
        ],
        Killed=[calls(("run_command", {"command": "setsid sleep 1000 & echo $$ >>pids; wait", "timeout": 900}))],
        Hanging=[answers.hang()],
        Flooding=[text(flood, chunks=50, usage=spends)],
        Outer=[calls(start("Inner is here.", read_only=True), usage=spends), text("Outer is done.", usage=spends)],
        Inner=[text("Inner is done.", usage=spends)],
        **{name: [text(f"{name} is done.", usage=spends)] for name in readers},
    )
    running = marvin.ask_in_background("--max-cost", "3", "--output-format", "stream-json")
    running.until(marvin.pids, "the command runs")
    os.kill(agents_in(marvin.home)["Killed"].pid, signal.SIGKILL)
    done = running.finish()
    assert done.code == 0, done.said
    found = {result["log"]: result for result in results(models)}
    assert len(found) == 8, "each has a log of its own"
    killed, hanging, flooding, outer, *others = results(models)
    assert (killed["ended"], killed["exit_code"]) == ("failed", -9)
    assert (hanging["ended"], hanging["text"]) == ("timeout", "")
    assert flooding["ended"] == "answered"
    assert flooding["text"].startswith("xxx")
    assert [result["text"] for result in (outer, *others)] == [f"{name} is done." for name in ("Outer", *readers)]
    assert [result["cost"] for result in others] == [pytest.approx(0.011)] * 4
    assert outer["cost"] == pytest.approx(0.033), "with that of the agent below it"
    wait_until(lambda: not processes_in(marvin.home), "nothing of it is left")
    marvin.assert_nothing_left()


@linux
def test_the_ceiling_holds_for_agents_that_ask_at_the_same_time(marvin: Marvin, models: AgentModels) -> None:
    """Eight agents that would spend without end, each in rounds, and together no more than the ceiling."""
    marvin.config(f"{PRICED}timeouts: {{retry_backoff: [0.05], ceiling_poll: 0.05}}\n")
    rounds = [calls(("tree", {}), usage=usage(10_000, 1_000))] * 40
    names = [f"Greedy{number}" for number in range(8)]
    script(
        models,
        Do=[calls(*(start(f"{name} is here.", read_only=True) for name in names), usage=usage(1_000, 100))],
        **dict.fromkeys(names, rounds),
    )
    models.scripts["Do"].extend([text("The budget is spent.", usage=usage(100, 10))] * 3)
    done = marvin.ask("--max-cost", "0.3")
    assert done.code in (0, 3), done.said
    requests = [request.body for request in models.requests if request.method == "POST"]
    spent = sum(0.011 for body in requests if body["messages"][1]["content"] != "Do it.")
    assert done.cost()["session_cost"] <= 0.3
    assert 0.1 < spent <= 0.3


@linux
def test_in_a_chat_what_an_agent_does_is_shown_and_ctrl_c_ends_it_alone(marvin: Marvin, models: AgentModels) -> None:
    marvin.config("permissions: {allow: [launch_research_agent]}\n")
    (marvin.project / "total.py").write_text("def total(items): ...\n")
    script(
        models,
        Do=[calls((RESEARCH, {"query": "Look at total.py."})), text("Then not.")],
        Look=[calls(("read_file", {"path": "total.py"})), answers.hang()],
    )
    environment = {**marvin.env, "TERM": "xterm-256color"}
    terminal = pexpect.spawn(
        PROGRAM[0], [*PROGRAM[1:]], cwd=str(marvin.project), env=environment, encoding="utf-8", timeout=LIMIT
    )
    try:
        terminal.expect("/help shows")
        terminal.send("Do it.\r")
        terminal.expect(r"round 1: read_file")
        wait_until(lambda: len(asked_by(models, "Look")) == 2, "the agent asks again")
        terminal.send("\x03")
        terminal.expect("Cancelled")
        wait_until(lambda: not agents_in(marvin.home), "the agent is gone")
        terminal.send("Do another thing.\r")
        terminal.expect("Then not.")
        terminal.send("\x04")
        assert end_of(terminal) == 0
    finally:
        put_away(terminal)
