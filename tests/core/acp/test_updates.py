"""What an editor is told of a session's events, and of an earlier session. The schema takes a second to import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.events import (
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from marvin_core.api.messages import Message, Text, ToolCall, ToolOutput, tool, user
from marvin_core.api.tools import Access, ToolSpec

pytestmark = pytest.mark.slow


def told(*events: Event) -> list[Any]:
    """What an editor is told of these."""
    from marvin_core.acp.updates import EventUpdates

    made = EventUpdates(lambda: Path("/project"), lambda name: None)
    return [update for event in events for update in made.of(event)]


def call(identity: str, text: str = "") -> list[Event]:
    """A call from its beginning to its end."""
    return [
        ToolExecutionStart(call_id=identity, name="act", arguments={"path": "a.txt"}),
        ToolExecutionUpdate(call_id=identity, name="act", text="first"),
        ToolExecutionUpdate(call_id=identity, name="act", text="second"),
        ToolExecutionEnd(call_id=identity, name="act", text=text, is_error=False, elapsed=1.0),
    ]


def test_calls_with_one_id_are_different_ones_to_an_editor() -> None:
    names = [update.tool_call_id for update in told(*call("c"), *call("c"), *call("c"))]
    assert names == ["c"] * 4 + ["c#2"] * 4 + ["c#3"] * 4


def test_the_lines_of_a_running_call_add_up_and_its_result_takes_their_place() -> None:
    *_, under_way, ended = told(*call("c", "``` a fence of its own"))
    assert under_way.content[0].content.text == "```\nfirst\nsecond\n```"
    assert ended.content[0].content.text == "````\n``` a fence of its own\n````"


COMMAND = ToolSpec(name="act", description="", parameters={}, access=frozenset[Access]({"exec"}), group="t")


def run(*shown: str, text: str, **details: Any) -> list[Any]:
    """What an editor with terminals is told of a command."""
    from marvin_core.acp.updates import EventUpdates

    made = EventUpdates(lambda: Path("/project"), lambda name: COMMAND, terminals=True)
    end = ToolExecutionEnd(call_id="c", name="act", text=text, is_error=False, elapsed=1.0, details=details)
    events: list[Event] = [
        ToolExecutionStart(call_id="c", name="act", arguments={"command": "make"}),
        *(ToolExecutionUpdate(call_id="c", name="act", text=lines) for lines in shown),
        end,
    ]
    return [update for event in events for update in made.of(event)]


LONG = "\n".join(f"line {number}" for number in range(20_000))
"""More than is compared."""


def terminal(updates: list[Any]) -> str:
    """What stands in the terminal."""
    assert updates[0].field_meta == {"terminal_info": {"terminal_id": "c", "cwd": "/project"}}
    return "".join(
        update.field_meta["terminal_output"]["data"] for update in updates if "terminal_output" in update.field_meta
    )


@pytest.mark.parametrize(
    ("shown", "text", "stands"),
    [
        ((), "a\nb\n[exit code 0]", "a\nb\n"),
        (("a",), "a\n\nb\n[exit code 0]", "a\n\nb\n"),
        (("a", "b"), "a\n\nb\n[exit code 0]", "a\nb\n"),
        (("b",), "a\nb\n[exit code 0]", "b\n\n[The output:]\na\nb\n"),
        (("a", "b"), "a\n[exit code 0]", "a\nb\n\n[The output:]\na\n"),
        (("x" * 200_000,), "x\n[exit code 0]", "x" * 200_000 + "\n"),
        ((LONG,), f"{LONG}\n[exit code 0]", f"{LONG}\n"),
        (("b", LONG), f"{LONG}\n[exit code 0]", f"b\n{LONG}\n\n[The output:]\n{LONG}\n"),
        (("a\x1b]52;c;aGk=\x07",), "a\n[exit code 0]", "a\n"),
    ],
)
def test_a_terminal_ends_with_all_that_a_command_printed(shown: tuple[str, ...], text: str, stands: str) -> None:
    updates = run(*shown, text=text, exit_code=0, aside="\n[exit code 0]")
    assert terminal(updates) == stands
    assert updates[-1].field_meta == {"terminal_exit": {"terminal_id": "c", "exit_code": 0, "signal": None}}
    assert [part.type for part in updates[-1].content] == ["terminal"]


def test_a_command_that_never_ran_says_why_in_words() -> None:
    updates = run(text="Error: they refused it.")
    assert terminal(updates) == ""
    assert "refused" in updates[-1].content[0].content.text
    assert "terminal_exit" in updates[-1].field_meta


@pytest.mark.parametrize("said", [None, {}, {"terminal_output": "yes"}, {"terminal_output": False}])
def test_without_the_extension_there_are_no_terminals(said: Any) -> None:
    from acp import schema

    from marvin_core.acp.terminals import shows_terminals

    assert not shows_terminals(None)
    assert not shows_terminals(schema.ClientCapabilities(terminal=True, field_meta=said))


def test_an_answer_that_broke_off_is_told_from_the_one_in_its_place() -> None:
    message = Message(role="assistant", content=(Text(text="Half"),))
    begun = MessageStart(role="assistant")
    broken = MessageEnd(message=message, stop_reason="broken")
    said = [
        update.content.text
        for update in told(
            begun,
            MessageUpdate(kind="text", delta="Half"),
            broken,
            begun,
            MessageUpdate(kind="text", delta="Whole"),
        )
    ]
    assert said[0] == "Half"
    assert "broke off" in said[1]
    assert said[2] == "Whole"


def test_a_warning_stands_in_the_answer_and_other_notices_beside_it() -> None:
    warning, aside = told(Notice(level="warning", text="Careful"), Notice(level="info", text="By the way"))
    assert (warning.session_update, aside.session_update) == ("agent_message_chunk", "agent_thought_chunk")


def test_an_earlier_session_is_shown_with_its_calls() -> None:
    from marvin_core.acp.history import MOST_MESSAGES, history
    from marvin_core.acp.updates import CallNames

    asked = Message(role="assistant", content=(ToolCall(id="c", name="act", arguments='{"path": "a"'),))
    output = tool([ToolOutput(call_id="c", name="act", content=(Text(text="no"),), is_error=True)])
    shown = list(history([user("Do it"), asked, output, asked, output], lambda name: None, CallNames()))
    assert [update.session_update for update in shown] == [
        "user_message_chunk", "tool_call", "tool_call_update", "tool_call", "tool_call_update",
    ]  # fmt: skip
    assert [update.tool_call_id for update in shown[1:]] == ["c", "c", "c#2", "c#2"]
    assert shown[2].status == "failed"
    long: list[Any] = list(history([user("x")] * (MOST_MESSAGES + 5), lambda name: None, CallNames()))
    assert len(long) == MOST_MESSAGES + 1
    assert "5 earlier messages" in long[0].content.text
