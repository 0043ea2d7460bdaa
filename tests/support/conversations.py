"""Conversations for tests of compaction: made by hand or at random, and what every service demands of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from marvin_core.api.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput, tool, user


def answer(text: str, *calls: ToolCall) -> Message:
    """An answer of a model."""
    return Message(role="assistant", content=(*([Text(text=text)] if text else []), *calls), stop_reason="stop")


def call(identity: str, name: str = "read_file", **arguments: object) -> ToolCall:
    """A call of a tool."""
    return ToolCall(id=identity, name=name, arguments=json.dumps(arguments))


def output(identity: str, text: str, name: str = "read_file", *, is_error: bool = False) -> ToolOutput:
    """The output of a call."""
    return ToolOutput(call_id=identity, name=name, content=(Text(text=text),), is_error=is_error)


def rounds(count: int, size: int = 100, start: int = 0) -> list[Message]:
    """So many rounds of one call: two messages each."""
    found: list[Message] = []
    for number in range(start, start + count):
        found.append(answer(f"Step {number}.", call(f"c{number}", path=f"src/part{number}.py")))
        found.append(tool([output(f"c{number}", f"{number}: " + "x" * size)]))
    return found


def turns(count: int) -> list[Message]:
    """So many requests with a short answer each."""
    return [m for n in range(count) for m in (user(f"Request number {n}"), answer(f"Answer number {n}"))]


SIZES = st.sampled_from([0, 1, 30, 400, 5_000, 90_000])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A conversation as sessions make them: turns with rounds of calls, images and reasoning."""
    found: list[Message] = []
    number = 0
    for turn in range(draw(st.integers(1, 6))):
        image = [Image(media_type="image/png", data="QUJD")] if draw(st.integers(0, 9)) == 0 else []
        found.append(user(f"request {turn} " + "r" * draw(SIZES), *image))
        for _ in range(draw(st.integers(0, 8))):
            ids = [f"c{(number := number + 1)}" for _ in range(draw(st.integers(1, 5)))]
            thought = (Thinking(text="t" * draw(SIZES)),) if draw(st.booleans()) else ()
            calls = tuple(call(i, path=f"p{i}", content="é" * draw(SIZES)) for i in ids)
            found.append(Message(role="assistant", content=(*thought, *calls)))
            found.append(tool([output(i, "o" * draw(SIZES)) for i in ids]))
        found.append(answer(f"answer {turn} " + "a" * draw(SIZES)))
    return found


def assert_accepted(messages: Sequence[Message]) -> None:
    """What services refuse otherwise."""
    assert messages[0].role == "user"
    waiting: list[str] = []
    for message in messages:
        assert message.content
        if message.role == "tool":
            assert [output.call_id for output in message.outputs] == waiting
            waiting = []
        else:
            assert not waiting
            waiting = [call.id for call in message.calls]
            for one in message.calls:
                assert isinstance(json.loads(one.arguments), dict)
        if message.role == "user":
            assert message.text or len(message.content) > len(message.outputs)
    assert not waiting
