"""Events: one closed union, each written as one line of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from marvin_core.api import events
from marvin_core.api.events import Event
from marvin_core.api.messages import Text, ToolCall, Usage, user
from marvin_core.api.record import Record
from marvin_core.util.event_lines import event_line

EXAMPLES: dict[str, Event] = {
    "app_start": events.AppStart(version="1"),
    "session_start": events.SessionStart(session_id="s", provider="p", model="m", working_dir="/w"),
    "session_resume": events.SessionResume(session_id="s", provider="p", model="m", messages=3, healed=1),
    "session_clear": events.SessionClear(session_id="s"),
    "agent_start": events.AgentStart(prompt="hi"),
    "turn_start": events.TurnStart(round=1),
    "message_start": events.MessageStart(role="assistant"),
    "message_update": events.MessageUpdate(kind="text", delta="a\nb\u2028"),
    "message_end": events.MessageEnd(
        message=user("hi").replace(
            content=(Text(text="a"), ToolCall(id="1", name="look", arguments="{}")), usage=Usage(input_tokens=3)
        ),
        stop_reason="tool_calls",
    ),
    "tool_execution_start": events.ToolExecutionStart(call_id="1", name="look", arguments={"a": [1, None]}),
    "tool_execution_update": events.ToolExecutionUpdate(call_id="1", name="look", text="half"),
    "tool_execution_end": events.ToolExecutionEnd(
        call_id="1", name="look", text="out", is_error=False, elapsed=0.5, details={"diff": "+a"}
    ),
    "notice": events.Notice(level="warning", text="careful"),
    "usage": events.UsageReport(provider="p", model="m", usage=Usage(output_tokens=2), cost=None),
    "model_cycle": events.ModelCycle(previous="a", model="b", reason="full"),
    "turn_end": events.TurnEnd(round=1),
    "agent_end": events.AgentEnd(stop_reason="done", text="bye"),
}


def _declared() -> dict[str, type[Record]]:
    found = [value for value in vars(events).values() if isinstance(value, type) and issubclass(value, Record)]
    return {cls.__dict__["type"]: cls for cls in found if "type" in cls.__dict__}


def test_the_union_holds_every_event_and_each_has_a_type_of_its_own() -> None:
    declared = _declared()
    assert set(get_args(Event)) == set(declared.values())
    assert len(get_args(Event)) == len(declared) == 17


def test_every_event_is_shown_here() -> None:
    assert {name: type(event) for name, event in EXAMPLES.items()} == _declared()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_event_is_one_line_of_json_with_its_type_first(name: str) -> None:
    event = EXAMPLES[name]
    line = event_line(event)
    data = json.loads(line)
    assert "\n" not in line
    assert next(iter(data.items())) == ("type", name)
    assert set(data) == {"type", *event.as_dict()}


def test_a_message_is_written_in_its_plain_form_and_usage_with_all_its_counts() -> None:
    ended = json.loads(event_line(EXAMPLES["message_end"]))
    assert ended["message"]["content"][1] == {"type": "tool_call", "id": "1", "name": "look", "arguments": "{}"}
    report = json.loads(event_line(EXAMPLES["usage"]))
    assert report["cost"] is None
    assert report["usage"]["output_tokens"] == 2


@pytest.mark.parametrize("value", [Path("/a"), {1, 2}, object(), b"x"])
def test_details_that_json_does_not_know_are_written_as_text(value: Any) -> None:
    """A pack puts into `details` what it likes; that must not silence the interface."""
    event = events.ToolExecutionEnd(call_id="1", name="x", text="", is_error=False, elapsed=0.0, details={"v": value})
    assert json.loads(event_line(event))["details"] == {"v": str(value)}
