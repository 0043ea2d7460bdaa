"""What begins ends, exactly once: messages, turns, calls and prompts, however a prompt goes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from marvin_core import CallDelta, Deny, Hook, HookContext, Stop, StreamBroken, TextDelta, ThinkingDelta, ToolSpec
from marvin_core.api.errors import BudgetExceeded
from marvin_core.api.events import (
    AgentEnd,
    AgentStart,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from marvin_core.api.providers import Retrying, Switched
from tests.support.engine import USED, Hang, Made, make, run, says
from tests.support.examples import examples

CALL = CallDelta(key=0, id="a", name="look", arguments='{"name": "x"}')
STEPS = st.sampled_from(
    [
        TextDelta(text="Some text."),
        TextDelta(text=" \n"),
        ThinkingDelta(text="hm"),
        CALL,
        CallDelta(key=1, id="b", name="fails", arguments='{"kind": "cancelled"}'),
        CallDelta(key=2, id="c", name="fails", arguments='{"kind": "exit"}'),
        CallDelta(key=3, id="d", name="nowhere", arguments="{}"),
        CallDelta(key=4, id="e", name="look", arguments='{"na'),
        CallDelta(key=5, id="f", name="stuck", arguments="{}"),
        USED,
        Retrying(text="trying again"),
        Switched(previous="one", model="other", reason="because"),
        Hang(),
        StreamBroken("gone"),
        BudgetExceeded("spent"),
        RuntimeError("a bug"),
        asyncio.CancelledError(),
        GeneratorExit(),
        "which is not a part of an answer. Its pack is faulty",
    ]
)
ENDS = st.sampled_from([[], *([Stop(reason=reason)] for reason in ("stop", "tool_calls", "length", "refused"))])
ANSWERS = st.tuples(st.lists(STEPS, max_size=5), ENDS).map(lambda parts: [*parts[0], *parts[1]])
MOMENTS = st.one_of(st.none(), st.integers(0, 40))


class Moody(Hook):
    """A hook that does what a script says at each of its methods."""

    def __init__(self, moods: Sequence[BaseException | str | None]) -> None:
        self._moods = list(moods)

    async def _mood(self, context: HookContext) -> Any:
        mood = self._moods.pop() if self._moods else None
        if isinstance(mood, BaseException):
            raise mood
        if mood:
            context.send(mood)
        return mood

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        await self._mood(context)
        return None

    async def before_request(self, context: HookContext, messages: object) -> None:
        await self._mood(context)

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: object) -> Deny | None:
        return Deny(reason="no mood for it") if await self._mood(context) else None

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        found: str | None = await self._mood(context)
        return found


MOODS = st.lists(
    st.sampled_from(
        [None, None, "Go on.", SystemExit(2), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
    ),
    max_size=12,
)


def assert_paired(events: Sequence[Event]) -> None:
    """Each start has one end, inside of what was begun before it; nothing is told of what is over."""
    running: list[str] = []  # from the outside in; calls may end in any order
    for event in events:
        if isinstance(event, AgentStart):
            assert running == []
            running.append("prompt")
        elif isinstance(event, TurnStart):
            assert running == ["prompt"]
            running.append("turn")
        elif isinstance(event, MessageStart):
            assert running in (["prompt"], ["prompt", "turn"])
            running.append(f"{event.role} {event.origin}")
        elif isinstance(event, ToolExecutionStart):
            assert running[:2] == ["prompt", "turn"]
            assert event.call_id not in running
            running.append(event.call_id)
        elif isinstance(event, (MessageUpdate, MessageEnd)):
            message = running[-1] if isinstance(event, MessageUpdate) else running.pop()
            assert message == ("assistant model" if isinstance(event, MessageUpdate) else _name(event))
        elif isinstance(event, (ToolExecutionUpdate, ToolExecutionEnd)):
            assert event.call_id in running
            if isinstance(event, ToolExecutionEnd):
                running.remove(event.call_id)
        elif isinstance(event, (TurnEnd, AgentEnd)):
            assert running.pop() == ("turn" if isinstance(event, TurnEnd) else "prompt")
    assert running == []


def _name(event: MessageEnd) -> str:
    return f"{event.message.role} {event.origin}"


def assert_outputs(made: Made) -> None:
    """I15: every call of the conversation has one output, right after it; turn_end carries the same."""
    messages = made.parts.conversation.messages
    for number, message in enumerate(messages):
        if message.calls:
            outputs = messages[number + 1].outputs
            assert [call.id for call in message.calls] == [output.call_id for output in outputs]
    given = Counter(output.call_id for message in messages for output in message.outputs)
    assert given == Counter(output.call_id for event in made.seen(TurnEnd) for output in event.outputs)


async def cancelled_at(made: Made, moment: int | None) -> None:
    """One prompt, cancelled after so many steps of the loop; a silent answer is, in any case."""
    task = asyncio.ensure_future(made.session.submit("go"))
    steps = 0
    while not task.done():
        if steps == (400 if moment is None else moment):
            task.cancel()
        await asyncio.sleep(0)
        steps += 1
    await asyncio.wait([task])
    await made.session.close()


@examples(30, suppress_health_check=list(HealthCheck))
@example(script=[[CALL, Retrying(text="again"), *says("Fine.")]], moods=[], moment=None)
@example(script=[[ThinkingDelta(text="hm"), Stop(reason="stop")]], moods=[], moment=None)
@example(script=[[CALL, Switched(previous="one", model="other", reason="because"), Hang()]], moods=[], moment=None)
@example(script=[[CALL, Stop(reason="tool_calls")], [BudgetExceeded("spent")]], moods=[], moment=None)
@example(script=[says("Fine.")], moods=[], moment=1)
@example(script=[[Hang()]], moods=[], moment=0)
@given(script=st.lists(ANSWERS, min_size=1, max_size=4), moods=MOODS, moment=MOMENTS)
def test_each_start_has_exactly_one_end(
    script: list[list[Any]], moods: list[BaseException | str | None], moment: int | None
) -> None:
    """I13, I15: after errors, retries in the middle of a call, cancellations, ceilings and hooks of any kind."""
    with TemporaryDirectory() as folder:
        rest: list[list[Any]] = [says("Done.") for _ in range(12)]
        made = make(Path(folder), *script, *rest, hooks=[Moody(moods)])
        run(cancelled_at(made, moment))
    assert not made.session.busy
    assert_paired(made.events)
    assert_outputs(made)
    snapshot = made.session.snapshot()
    assert (snapshot.busy, snapshot.answer, snapshot.calls) == (False, None, ())
