"""The spans of events, without a session around them."""

from __future__ import annotations

import asyncio
from typing import Any

from marvin_core.api.events import (
    AgentEnd,
    AgentStart,
    SessionClear,
    SessionStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    UsageReport,
)
from marvin_core.api.messages import Text, ToolCall, ToolOutput, Usage, tool, user
from marvin_core.api.providers import Request
from marvin_core.telemetry import names
from marvin_core.telemetry.content import Content
from marvin_core.telemetry.spans import Measurement, Span
from marvin_core.telemetry.trace_context import TraceContext
from marvin_core.telemetry.tree import SpanTree


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.measured: list[Measurement] = []

    def prepare(self) -> None:
        """Nothing takes long here."""

    def put(self, item: Span | Measurement) -> None:
        """Keep it."""
        if isinstance(item, Span):
            self.spans.append(item)
        else:
            self.measured.append(item)


def grown(sampled: bool = True) -> tuple[SpanTree, Kept]:
    kept = Kept()
    return SpanTree(TraceContext(trace_id=1, span_id=0, sampled=sampled), kept), kept


def begin(call_id: str) -> ToolExecutionStart:
    return ToolExecutionStart(call_id=call_id, name=f"tool_{call_id}", arguments={})


def end(call_id: str) -> ToolExecutionEnd:
    return ToolExecutionEnd(call_id=call_id, name=f"tool_{call_id}", text="", is_error=False, elapsed=0.0)


def test_a_program_belongs_to_the_call_in_whose_task_it_is_started() -> None:
    """Calls run side by side, and what one leaves behind goes on when it is over."""
    tree, _ = grown()
    seen: dict[str, str] = {}

    async def call(call_id: str, other: asyncio.Event, own: asyncio.Event) -> None:
        tree.listen(begin(call_id))
        own.set()
        await other.wait()
        seen[call_id] = tree.child_variables()["TRACEPARENT"]
        left = asyncio.ensure_future(later(call_id))
        tree.listen(end(call_id))
        seen[f"{call_id} over"] = tree.child_variables()["TRACEPARENT"]
        await left

    async def later(call_id: str) -> None:
        await asyncio.sleep(0.01)
        seen[f"{call_id} later"] = tree.child_variables()["TRACEPARENT"]

    async def run() -> None:
        one, two = asyncio.Event(), asyncio.Event()
        tree.listen(AgentStart(prompt="x"))
        seen["agent"] = tree.child_variables()["TRACEPARENT"]
        await asyncio.gather(call("1", two, one), call("2", one, two))

    asyncio.run(run())
    assert len({seen["agent"], seen["1"], seen["2"]}) == 3
    assert {seen[f"{call_id} {when}"] for call_id in "12" for when in ("over", "later")} == {seen["agent"]}


def test_a_program_outside_of_any_span_has_nothing_above_it() -> None:
    tree, kept = grown()
    assert tree.child_variables() == {}
    tree.close()
    assert kept.spans == []


def test_what_is_open_at_the_end_is_told_as_cancelled() -> None:
    tree, kept = grown()
    tree.listen(SessionStart(session_id="s", provider="p", model="m", working_dir="/"))
    tree.listen(AgentStart(prompt="x"))
    tree.listen(begin("1"))
    tree.close()
    tree.listen(end("1"))
    tree.listen(AgentEnd(stop_reason="done", text=""))
    assert [(span.name, span.error) for span in kept.spans] == [
        ("execute_tool tool_1", "cancelled"),
        ("invoke_agent marvin", "cancelled"),
    ]
    assert {span.attributes[names.CONVERSATION] for span in kept.spans} == {"s"}


def test_a_conversation_that_was_cleared_has_no_id() -> None:
    tree, kept = grown()
    tree.listen(SessionStart(session_id="s", provider="p", model="m", working_dir="/"))
    tree.listen(SessionClear(session_id="s"))
    tree.listen(begin("1"))
    tree.listen(end("1"))
    assert names.CONVERSATION not in kept.spans[0].attributes


def test_a_trace_that_nobody_keeps_is_measured_all_the_same() -> None:
    tree, kept = grown(sampled=False)
    tree.listen(AgentStart(prompt="x"))
    tree.listen(UsageReport(provider="p", model="m", usage=Usage(), cost=0.5))
    assert tree.child_variables()["TRACEPARENT"].endswith("-00")
    tree.listen(AgentEnd(stop_reason="done", text=""))
    assert (kept.spans, [item.value for item in kept.measured]) == ([], [0.5])


def test_an_unknown_cost_is_not_told_as_none_at_all() -> None:
    tree, kept = grown()
    tree.listen(AgentStart(prompt="x"))
    tree.listen(UsageReport(provider="p", model="m", usage=Usage(), cost=None))
    tree.listen(AgentEnd(stop_reason="done", text=""))
    assert kept.measured == []
    assert names.COST not in kept.spans[0].attributes


def test_texts_are_cut_cleaned_and_can_be_encoded() -> None:
    """A secret that is cut off is none that is left in part, and a half of a character stops nothing."""
    content = Content(lambda text: text.replace("secret-value", "[redacted]"), longest=10)
    calls = ToolCall(id="1", name="t" * 1_000, arguments='{"a": "secret-value"}')
    outputs = tool([ToolOutput(call_id="1", name="t", content=(Text(text="\udce9 and more than that"),))])
    request = Request(
        system="s" * 100, messages=(user("ab secret-value"), outputs.replace(content=(calls, *outputs.content)))
    )
    found: dict[str, Any] = {**content.request(request), **content.arguments({"x": object()})}
    whole = "".join(found.values()).encode()
    assert b"secret" not in whole
    assert max(len(content.short(name)) for name in ("t" * 1_000, "\udce9")) == 200
    assert len(found[names.TOOL_ARGUMENTS]) == 11


def test_the_newest_messages_are_sent_where_there_is_no_room_for_all() -> None:
    content = Content(str, longest=100)
    request = Request(system="", messages=tuple(user(f"{number:03} " + "x" * 90) for number in range(50)))
    found = content.request(request)[names.INPUT]
    assert "049 x" in found
    assert "000 x" not in found
    assert len(found) < 1_000
