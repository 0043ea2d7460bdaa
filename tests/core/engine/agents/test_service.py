"""The service of agents: what is refused before one starts, and what a real one hands back."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from marvin_core import AgentResult, AgentTask, ToolError
from marvin_core.testing import ModelServer, answers, text
from tests.support.engine import Made, Script, make, run


def refused(made: Made, task: AgentTask) -> str:
    with pytest.raises(ToolError) as found:
        started(made, task)
    return str(found.value)


def started(made: Made, task: AgentTask) -> AgentResult:
    async def go() -> AgentResult:
        try:
            return await made.session.agents.run(task)
        finally:
            await made.session.close()

    return run(go())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"prompt": " \n"}, "The prompt is empty."),
        ({"working_dir": "../elsewhere"}, "elsewhere"),
        ({"working_dir": "/"}, "/"),
        ({"working_dir": "link"}, "link"),
        ({"working_dir": "file.txt"}, "is not a folder"),
        ({"working_dir": "nowhere"}, "nowhere"),
        ({"kind": "gardener"}, "Unknown agent 'gardener'"),
        ({"isolation": "worktree"}, "Leave isolation out"),
        ({"model": "--help"}, "There is no model '--help'"),
        ({"tools": "nothing_of_this_name"}, "nothing_of_this_name"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_starts(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    made = make(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "project" / "file.txt").write_text("")
    assert told in refused(made, AgentTask(**{"prompt": "Do it.", **fields}))
    assert not list(tmp_path.rglob("agent-*.jsonl")) or "tools" in fields


def test_agents_are_nested_no_deeper_than_five(tmp_path: Path) -> None:
    """I7"""
    told = refused(make(tmp_path, env={"MARVIN_DEPTH": "5"}), AgentTask(prompt="Do it."))
    assert "agents may be nested 5 levels deep" in told


def test_without_a_model_it_says_how_to_set_one(tmp_path: Path) -> None:
    assert "To set a provider" in refused(make(tmp_path, configured=False), AgentTask(prompt="Do it."))


def test_no_agents_are_started_in_play_mode(tmp_path: Path) -> None:
    made = make(tmp_path)
    with made.parts.workspace.playing_in(tmp_path / "project"):
        assert "No agent was started: agents are not available in play mode. Do the work yourself" in refused(
            made, AgentTask(prompt="Do it.")
        )


def test_old_prompts_and_logs_are_removed(tmp_path: Path) -> None:
    made = make(tmp_path, provider=Script(name="openai-compat"), env={"OPENAI_COMPAT_URL": "http://127.0.0.1:9/v1"})
    logs = tmp_path / "project" / ".marvin" / "logs"
    (logs / "agent-folder").mkdir(parents=True)
    for name, days in (("agent-a.md", 31), ("agent-b.jsonl", 29), ("job-1.log", 400), ("agent-folder", 400)):
        if not (logs / name).is_dir():
            (logs / name).write_text("")
        os.utime(logs / name, (time.time() - days * 86_400,) * 2)
    started(made, AgentTask(prompt="Do it.", timeout=0.1))
    assert {"agent-b.jsonl", "job-1.log", "agent-folder"} <= {path.name for path in logs.iterdir()}
    assert not (logs / "agent-a.md").exists()


@pytest.mark.parametrize("planted", [".marvin", ".marvin/logs"])
def test_prompts_are_written_behind_no_link_that_the_project_brings(tmp_path: Path, planted: str) -> None:
    made = make(tmp_path, provider=Script(name="openai-compat"), env={"OPENAI_COMPAT_URL": "http://127.0.0.1:9/v1"})
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "project" / planted
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    started(made, AgentTask(prompt="Do it.", timeout=0.1))
    assert list(target.iterdir()) == []


@pytest.mark.slow
def test_an_agent_answers_and_what_it_used_is_counted(tmp_path: Path) -> None:
    with ModelServer(text("It is done.")) as server:
        env = {"OPENAI_COMPAT_URL": server.url, "OPENAI_COMPAT_API_KEY": "k", "PATH": os.environ["PATH"]}
        made = make(tmp_path, provider=Script(name="openai-compat"), env=env)
        result = started(made, AgentTask(prompt="Do it.", read_only=True))
    assert (result.text, result.ended, result.exit_code) == ("It is done.", "answered", 0), result.reason
    assert result.answered
    assert result.log is not None
    assert result.log.parent == tmp_path / "project" / ".marvin" / "logs"
    prompt = result.log.with_suffix(".md")
    assert (prompt.stat().st_mode & 0o777, result.log.stat().st_mode & 0o777) == (0o600, 0o600)
    assert prompt.read_text().startswith("Do it.\n\n# How you work\nYou change nothing.")
    assert made.meter.summary()["llm_turns"] == 1
    assert made.meter.by_provider() == {}, "the agent itself adds it to the lifetime totals"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["time-out", "cancelled", "refused"])
def test_how_an_agent_ended_is_told(tmp_path: Path, how: str) -> None:
    script = answers.hang() if how != "refused" else answers.error(401, "no such key")
    with ModelServer(script) as server:
        env = {"OPENAI_COMPAT_URL": server.url, "OPENAI_COMPAT_API_KEY": "k", "PATH": os.environ["PATH"]}
        made = make(tmp_path, provider=Script(name="openai-compat"), env=env)

        async def go() -> AgentResult | None:
            running = asyncio.ensure_future(
                made.parts.agents.run(AgentTask(prompt="Do it.", timeout=3.0 if how == "time-out" else None))
            )
            try:
                if how == "cancelled":
                    while not server.requests:  # noqa: ASYNC110  # a thread fills it
                        await asyncio.sleep(0.01)
                    running.cancel()
                return await running
            except asyncio.CancelledError:
                return None
            finally:
                await made.session.close()

        result = run(go())
        if result is None:
            assert how == "cancelled"
            server.requests[0].gone.wait(30)
        elif how == "time-out":
            assert (result.ended, result.reason) == (
                "timeout",
                "It took longer than 3 s and was stopped, with all processes that it had started.",
            )
        else:
            assert (result.ended, result.exit_code) == ("failed", 1)
            assert "401" in result.reason or "key" in result.reason, result.reason
    assert json.dumps(made.meter.summary())
