"""The command line and the environment of agents: what is handed on, and that nothing of it is an option."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from marvin_core import AgentTask, ToolError
from marvin_core.api.models import AgentModel
from marvin_core.config.flags import parse
from marvin_core.config.load import load
from marvin_core.engine.agents.command_line import AgentPlace, argv_of, environment_of
from tests.support.engine import settled

MODEL = AgentModel(provider="groq", model="llama", variables=("GROQ_API_KEY",))


def place(tmp_path: Path) -> AgentPlace:
    return AgentPlace(folder=tmp_path / "project", prompt_file=tmp_path / "p.md", log=tmp_path / "l.jsonl")


def argv(tmp_path: Path, *flags: str, task: AgentTask | None = None, model: AgentModel = MODEL, tools: str = "") -> Any:
    config, _ = settled(tmp_path, *flags)
    found = argv_of(task or AgentTask(prompt="Do it."), model, place(tmp_path), config, tools)
    assert found[:4] == [sys.executable, "-P", "-m", "marvin_core"]
    return parse(found[4:])


def test_the_prompt_is_handed_on_as_a_file(tmp_path: Path) -> None:
    found = argv(tmp_path)
    assert (found.prompt, found.words, found.prompt_file) == (None, [], str(tmp_path / "p.md"))
    assert (found.non_interactive, found.output_format) == (True, "stream-json")
    assert (found.provider, found.model, found.working_dir) == ("groq", ["llama"], str(tmp_path / "project"))
    assert (found.tools, found.design_first, found.trust_project) == (None, False, False)


@pytest.mark.parametrize("name", ["--help", "-x", "--", "opus=claude", "="])
def test_a_model_that_looks_like_a_flag_is_refused(tmp_path: Path, name: str) -> None:
    """I27"""
    with pytest.raises(ToolError, match="looks like a flag"):
        argv(tmp_path, model=AgentModel(provider="groq", model=name))


@pytest.mark.parametrize("name", ["--help", "-x", "--max-cost", "a b", "--prompt-file=/etc/passwd", "a\nb"])
def test_no_value_is_read_as_an_option(tmp_path: Path, name: str) -> None:
    """I27"""
    found = argv(tmp_path, model=AgentModel(provider=name, model="llama"), tools=name)
    assert (found.provider, found.model, found.tools) == (name, ["llama"], name)


def test_what_flags_said_of_tiers_thinking_and_trust_holds_below(tmp_path: Path) -> None:
    flags = ["--model=opus=big", "--thinking=high", "--thinking=opus=low", "--trust-project"]
    found = argv(tmp_path, *flags)
    assert (found.model, found.thinking, found.trust_project) == (["llama", "opus=big", "plan=big"], ["high"], True)
    assert argv(tmp_path, *flags, task=AgentTask(prompt="Do it.", model="opus")).thinking == ["low"]
    assert argv(tmp_path, *flags, task=AgentTask(prompt="Do it.", model="llama")).thinking == []
    config, _ = settled(tmp_path, *flags)
    elsewhere = place(tmp_path).replace(folder=tmp_path / "project" / "inner")
    below = argv_of(AgentTask(prompt="Do it."), MODEL, elsewhere, config, "")
    assert "--trust-project" not in below, "what another folder brings was not looked at"


@pytest.mark.parametrize("phase", ["1a", "2a"])
def test_the_pipeline_begins_with_a_phase(tmp_path: Path, phase: Any) -> None:
    found = argv(tmp_path, task=AgentTask(prompt="Do it.", phase=phase))
    assert (found.design_first, found.from_, found.yes) == (True, phase, True)


def environment(tmp_path: Path, task: AgentTask, base: dict[str, str], **env: str) -> dict[str, str]:
    _, secrets = settled(tmp_path, env=env)
    return environment_of(task, MODEL, place(tmp_path), base, secrets)


def test_a_key_is_handed_over_by_name(tmp_path: Path) -> None:
    """I24"""
    found = environment(tmp_path, AgentTask(prompt="Do it."), {}, GROQ_API_KEY="gsk-one", OPENAI_API_KEY="sk-two")
    assert found == {
        "MARVIN_MODEL": "llama",
        "MARVIN_SUBAGENT_LOG": str(tmp_path / "l.jsonl"),
        "GROQ_API_KEY": "gsk-one",
    }
    assert "GROQ_API_KEY" not in environment(tmp_path, AgentTask(prompt="Do it."), {})


def test_what_would_lead_to_the_files_of_the_project_is_left_out(tmp_path: Path) -> None:
    base = {"PYTHONPATH": "/p", "MARVIN_LIFELINE": "7", "A": "b"}
    found = environment(tmp_path, AgentTask(prompt="Do it."), base)
    assert found.keys() & base.keys() == {"A"}


@pytest.mark.parametrize(
    ("files", "above", "expected"),
    [
        (("a.md", "b/c.md"), None, "{0}/a.md,{0}/b/c.md"),
        ((), None, ","),
        (("a.md", "b.md"), "{0}/b.md", "{0}/b.md"),
        (("x/../b.md",), "{0}/b.md", "{0}/x/../b.md"),
        (("a.md",), ",", ","),
        (("a.md",), "{0}/b.md", ","),
    ],
)
def test_an_agent_writes_no_file_that_the_one_above_may_not(
    tmp_path: Path, files: tuple[str, ...], above: str | None, expected: str
) -> None:
    folder = tmp_path / "project"
    base = {} if above is None else {"MARVIN_WRITABLE_FILES": above.format(folder)}
    found = environment(tmp_path, AgentTask(prompt="Do it.", writable_files=files), base)
    assert found["MARVIN_WRITABLE_FILES"] == expected.format(folder)
    config, _ = load((), {"HOME": str(tmp_path), **found}, cwd=folder)
    assert config.writable_files == tuple(filter(None, expected.format(folder).split(",")))


def test_what_binds_the_one_above_is_not_taken_away(tmp_path: Path) -> None:
    """I23"""
    base = {"MARVIN_READONLY": "1", "MARVIN_TICKET": "x-1", "MARVIN_DEPTH": "3", "MARVIN_WRITABLE_FILES": "/w/a.md"}
    found = environment(tmp_path, AgentTask(prompt="Do it.", read_only=False), base)
    assert {name: found[name] for name in base} == base
    assert environment(tmp_path, AgentTask(prompt="Do it.", ticket="x-2"), base)["MARVIN_TICKET"] == "x-2"
