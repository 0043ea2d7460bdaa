"""Ensures that every call has exactly one output, even an interrupted one."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.messages import Message, Text, ToolCall, ToolOutput, tool

INTERRUPTED = (
    "This call was interrupted before it had a result. It may have done part of its work. Check, then make the call "
    "again if it is still needed."
)


def heal(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """Give every call exactly one output, and drop outputs without a call.

    Returns the messages, and the number of calls without an output.
    """
    healed: list[Message] = []
    count = 0
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            continue  # processed below with the calls that it answers; alone it answers none
        healed.append(message)
        calls = message.calls if message.role == "assistant" else ()
        if not calls:
            continue
        if _is_answered(calls, messages[index : index + 2]):
            healed.append(messages[index])
            index += 1
            continue
        outputs: dict[str, ToolOutput] = {}
        while index < len(messages) and messages[index].role == "tool":
            for output in messages[index].outputs:
                outputs.setdefault(output.call_id, output)
            index += 1
        count += sum(call.id not in outputs for call in calls)
        healed.append(tool([outputs.get(call.id) or interrupted(call.id, call.name) for call in calls]))
    return tuple(healed), count


def _is_answered(calls: Sequence[ToolCall], following: Sequence[Message]) -> bool:
    """Whether the next message has exactly one output for each of the calls, in order, and nothing else."""
    if not following or any(message.role == "tool" for message in following[1:]):
        return False
    message, ids = following[0], [call.id for call in calls]
    if message.role != "tool" or len({*ids}) < len(ids):
        return False
    return [block.call_id if isinstance(block, ToolOutput) else None for block in message.content] == ids


def interrupted(call_id: str, name: str) -> ToolOutput:
    """The output of an interrupted call."""
    return ToolOutput(call_id=call_id, name=name, content=(Text(text=INTERRUPTED),), is_error=True)
