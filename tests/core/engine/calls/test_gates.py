"""The gates of agents: they hold for the tools of any pack, and whatever becomes of the conversation."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core.api.tools import ToolSpec
from marvin_core.tools.schema import describe
from tests.support import gate_tools
from tests.support.engine import Made, calls, do, make, run, says

SPECS = tuple(describe(tool, source="strangers", module=gate_tools.__name__) for tool in gate_tools.ALL)
CREATE = "create 'Do it' --parent T-9 -d 'what and why' --acceptance 'tests pass'"
TALKED = [f"{n} " + "fill " * 200 for n in range(20)]
TALK = [*([says("word " * 200)] * len(TALKED)), says("What was said, in short.")]
"""The answers to TALKED, and the summary that compaction asks for."""
TICKET = {"MARVIN_TICKET": "T-9", "MARVIN_DEPTH": "1"}


def agent(tmp_path: Path, env: dict[str, str], *script: object, specs: tuple[ToolSpec, ...] = SPECS) -> Made:
    # All tools by name: an agent below another one is given those for coding only.
    names = ",".join(spec.name for spec in specs)
    return make(tmp_path, *script, argv=("--non-interactive", "--tools", names), specs=specs, env=env)  # type: ignore[arg-type]


# --- the ticket -----------------------------------------------------------------------------------------------------


def test_nothing_is_written_before_there_is_a_ticket(tmp_path: Path) -> None:
    """I3: tools of any pack, those that declare nothing among them; what only reads is free."""
    made = agent(tmp_path, TICKET)
    outputs = do(
        made,
        ("writes", {"path": "a.txt", "content": "x"}),
        ("undeclared", {}),
        ("shell", {"command": "touch b.txt"}),
        ("lists_programs", {}),
        ("reads", {"name": "x"}),
        ("tk", {"args": "ls"}),
    )
    assert [output.is_error for output in outputs] == [True, True, True, True, False, False]
    assert "writes was not run: this agent must create its ticket before it writes or runs anything" in outputs[0].text
    assert 'Call tk with {"args": "create' in outputs[0].text
    assert list((tmp_path / "project").iterdir()) == []
    assert "done" not in made.parts.state.get("strangers", {})


def test_the_first_ticket_is_refused_on_purpose_and_the_second_opens_the_gate(tmp_path: Path) -> None:
    """I3."""
    made = agent(tmp_path, TICKET)
    first, second, written = do(
        made, ("tk", {"args": CREATE}), ("tk", {"args": CREATE}), ("writes", {"path": "a.txt", "content": "x"})
    )
    assert first.is_error
    assert "refused on purpose" in first.text
    assert "--acceptance" in first.text
    assert "--parent T-9" in first.text
    assert second.text == "created T-1"
    assert written.text == "wrote a.txt"


@pytest.mark.parametrize(
    "line",
    [
        "create 'Do it'",
        "create 'Do it' --parent T-8",
        "create 'Do it' --parent T",
        "create 'Do it' --parent T-9 --parent T-8",
        "create 'Do it' -d --parent T-9",
        "create 'Do it' -d '--parent T-9'",
        "create fail --parent T-9",
        "create 'Do it --parent T-9",
        "ls create --parent T-9",
        "close T-9",
    ],
)
def test_no_other_line_opens_the_gate(tmp_path: Path, line: str) -> None:
    """I3: the ticket has to be there, and to be a child of the one that the agent works on."""
    made = agent(tmp_path, TICKET)
    outputs = do(made, ("tk", {"args": CREATE}), ("tk", {"args": line}), ("undeclared", {}))
    assert outputs[2].is_error
    assert "done" not in made.parts.state.get("strangers", {})


def test_where_no_tool_creates_tickets_the_agent_is_told_to_say_so(tmp_path: Path) -> None:
    made = agent(tmp_path, TICKET, specs=tuple(spec for spec in SPECS if spec.name != "tk"))
    (output,) = do(made, ("undeclared", {}))
    assert "no tool that creates tickets is offered here" in output.text


@pytest.mark.parametrize("more", [{"MARVIN_READONLY": "1"}, {"MARVIN_WRITABLE_FILES": "a.txt"}])
def test_who_may_write_next_to_nothing_needs_no_ticket(tmp_path: Path, more: dict[str, str]) -> None:
    made = agent(tmp_path, {**TICKET, **more})
    outputs = do(made, ("reads", {"name": "x"}), ("writes", {"path": "a.txt", "content": "x"}))
    assert not outputs[0].is_error
    assert "ticket" not in outputs[1].text


def prompted(made: Made, *steps: str) -> list[str]:
    """What the calls of the script came to, with something done to the conversation in between."""

    async def go() -> list[str]:
        try:
            for step in steps:
                if step == "compact":
                    await made.session.compact(1_000)
                elif step == "clear":
                    made.session.sessions.clear()
                else:
                    (await made.session.submit(step)).check()
        finally:
            await made.session.close()
        return [output.text for message in made.parts.conversation.messages for output in message.outputs]

    return run(go())


def test_the_gate_stays_shut_when_the_conversation_was_compacted(tmp_path: Path) -> None:
    """I23, I3: that the first ticket was refused is forgotten by the model only."""
    script = [
        *TALK,
        calls(("a", "undeclared", "{}")),
        says("Refused."),
    ]
    made = agent(tmp_path, TICKET, *script)
    texts = prompted(made, *TALKED, "compact", "Now do it.")
    assert "this agent must create its ticket before it writes or runs anything" in texts[-1]


def test_the_gate_stays_open_when_the_conversation_was_compacted(tmp_path: Path) -> None:
    """I23: and the ticket is not asked for again."""
    script = [
        calls(("a", "tk", json.dumps({"args": CREATE}))),
        calls(("b", "tk", json.dumps({"args": CREATE}))),
        says("Created."),
        *TALK,
        calls(("c", "undeclared", "{}")),
        says("Done."),
    ]
    made = agent(tmp_path, TICKET, *script)
    texts = prompted(made, "Begin.", *TALKED, "compact", "Now do it.")
    assert texts[-1] == "done"


@pytest.mark.parametrize("env", [{"MARVIN_READONLY": "1"}, {"MARVIN_WRITABLE_FILES": "spec.md"}])
def test_what_an_agent_may_not_do_stays_so_when_the_conversation_was_compacted(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """I23."""
    script = [*TALK, calls(("a", "undeclared", "{}")), says("Refused.")]
    made = agent(tmp_path, env, *script)
    texts = prompted(made, *TALKED, "compact", "Now do it.")
    assert "undeclared is not available here: this agent" in texts[-1]


def test_a_ticket_that_was_created_counts_for_the_session_that_goes_on(tmp_path: Path) -> None:
    script = [calls(("a", "tk", json.dumps({"args": CREATE}))), calls(("b", "tk", json.dumps({"args": CREATE})))]
    made = agent(tmp_path, TICKET, *script, says("Created."))
    prompted(made, "Begin.")
    (session,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    again = agent(tmp_path, TICKET)
    again.session.resume(session)
    assert [output.text for output in do(again, ("undeclared", {}))] == ["done"]
    other = agent(tmp_path, {**TICKET, "MARVIN_TICKET": "T-10"})
    other.session.resume(session)
    assert do(other, ("undeclared", {}))[0].is_error, "it is below another ticket"


# --- read-only ------------------------------------------------------------------------------------------------------


def test_a_read_only_agent_has_nothing_that_writes_or_runs_programs(tmp_path: Path) -> None:
    made = agent(tmp_path, {"MARVIN_READONLY": "1"})
    assert [spec.name for spec in made.session.tools] == ["tk", "reads"]
    outputs = do(made, *((name, {}) for name in ("undeclared", "writes", "shell", "lists_programs", "moves")))
    assert all("is not available here" in output.text for output in outputs)


@pytest.mark.parametrize("line", ["ls", "show T-1", "dep tree T-1", "query x", "ready", "blocked", "closed"])
def test_a_read_only_agent_looks_at_tickets(tmp_path: Path, line: str) -> None:
    made = agent(tmp_path, {"MARVIN_READONLY": "1"})
    assert not do(made, ("tk", {"args": line}))[0].is_error


@pytest.mark.parametrize("line", [CREATE, "close T-1", "dep T-1 T-2", "add-note T-1 x", "ls '", "", "sh -c x"])
def test_a_read_only_agent_changes_no_ticket(tmp_path: Path, line: str) -> None:
    made = agent(tmp_path, {"MARVIN_READONLY": "1"})
    (output,) = do(made, ("tk", {"args": line}))
    assert "so it can only read tickets. Use show" in output.text
    assert made.parts.state == {}


@pytest.mark.parametrize("name", ["args", "line"])
def test_gates_know_a_line_by_the_parameters_other_names(tmp_path: Path, name: str) -> None:
    """I3: what opens and shuts them is what the tool gets."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    reading = agent(tmp_path / "a", {"MARVIN_READONLY": "1"})
    looked, closed = do(reading, ("tk", {name: "ls"}), ("tk", {name: "close T-1"}))
    assert (looked.is_error, closed.is_error) == (False, True)
    working = agent(tmp_path / "b", TICKET)
    _, created, done = do(working, ("tk", {name: CREATE}), ("tk", {name: CREATE}), ("undeclared", {}))
    assert (created.text, done.is_error) == ("created T-1", False)


# --- writable files -------------------------------------------------------------------------------------------------


def test_an_agent_with_writable_files_writes_those_and_nothing_else(tmp_path: Path) -> None:
    """I4: however a name is spelled, and whatever links there are."""
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("outside")
    (project / "linked.md").symlink_to("other.md")
    (project / "away.md").symlink_to(tmp_path / "outside.md")
    (project / "alias").symlink_to("docs")
    (project / "to_spec.md").symlink_to("docs/spec.md")
    made = agent(tmp_path, {"MARVIN_WRITABLE_FILES": "docs//spec.md, linked.md,away.md,./ux.md,../outside.md"})
    assert [spec.name for spec in made.session.tools] == ["reads", "writes"]
    good = ["docs/spec.md", "./docs/../docs/spec.md", "alias/spec.md", "to_spec.md", "ux.md"]
    bad = ["other.md", "linked.md", "away.md", "docs/other.md", "../outside.md", "docs/SPEC.md", "ux.md/x"]
    outputs = do(made, *(("writes", {"path": path, "content": path}) for path in [*good, *bad]))
    assert {path for path, output in zip([*good, *bad], outputs, strict=True) if not output.is_error} == set(good)
    assert (tmp_path / "outside.md").read_text() == "outside"
    written = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    assert written == ["away.md", "docs/spec.md", "to_spec.md", "ux.md"]


def test_writable_files_are_those_of_the_folder_that_the_agent_began_in(tmp_path: Path) -> None:
    """Whoever moves it elsewhere does not hand it files of the same names there."""
    (tmp_path / "other").mkdir()
    made = make(tmp_path, argv=(), specs=SPECS, env={"MARVIN_WRITABLE_FILES": "spec.md"})
    assert "moves" not in [spec.name for spec in made.session.tools]
    made.parts.workspace.move(tmp_path / "other")
    assert made.call("writes", path="spec.md", content="x").is_error
    assert os.listdir(tmp_path / "other") == []


# --- what a command's Marvin inherits -------------------------------------------------------------------------------


def test_a_command_hands_on_what_binds_the_agent_and_one_level_more(tmp_path: Path) -> None:
    """I7."""
    made = agent(tmp_path, {**TICKET, "MARVIN_SUBAGENT_LOG": "logs/calls.jsonl"})
    *_, output = do(
        made,
        ("tk", {"args": CREATE}),
        ("tk", {"args": CREATE}),
        ("shell", {"command": "env | grep ^MARVIN_ | sort"}),
    )
    found = dict(line.split("=", 1) for line in output.text.splitlines())
    assert (found["MARVIN_DEPTH"], found["MARVIN_TICKET"]) == ("2", "T-9")
    assert found["MARVIN_SUBAGENT_LOG"] == str(tmp_path / "project" / "logs" / "calls.jsonl")
    assert not {"MARVIN_READONLY", "MARVIN_WRITABLE_FILES"} & set(found)


@pytest.mark.parametrize(("given", "handed"), [("", "1"), ("0", "1"), ("4", "5"), ("5", "6")])
def test_the_depth_goes_up_by_one(tmp_path: Path, given: str, handed: str) -> None:
    """I7."""
    made = agent(tmp_path, {"MARVIN_DEPTH": given})
    assert do(made, ("shell", {"command": "printf %s $MARVIN_DEPTH"}))[0].text == handed


def test_a_mode_that_is_chosen_later_holds_what_is_started_later(tmp_path: Path) -> None:
    """I23: a Marvin below a chat is told what the chat was told."""

    async def yes(question: str, choices: Sequence[str]) -> str:
        return "yes"

    made = make(tmp_path, argv=("--permission-mode", "auto", "--on-ask", "deny"), specs=SPECS, asker=yes)
    shown = {"command": "printf '%s %s' $MARVIN_PERMISSION_MODE $MARVIN_ON_ASK"}

    async def go() -> list[str]:
        texts = []
        try:
            for mode in ("", "edit", "readonly"):
                if mode:
                    made.session.permissions.switch(mode)
                texts.append((await made.session.dispatcher.by_hand("shell", shown, "typed")).text)
        finally:
            await made.session.close()
        return texts

    assert run(go()) == ["auto deny", "edit deny", "readonly deny"]
