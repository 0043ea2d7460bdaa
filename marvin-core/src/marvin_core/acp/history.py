"""The messages of a resumed session for an editor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from acp import schema

from ..api.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput
from ..api.tools import ToolSpec
from .updates import CallNames, Update, kind_of, quoted, text_block, text_chunk, thought_chunk, title_of

MOST_MESSAGES = 1_000
"""The maximum number of messages; older ones are left out, with a note."""


def history(messages: Sequence[Message], spec: Callable[[str], ToolSpec | None], calls: CallNames) -> Iterator[Update]:
    """The messages, oldest first."""
    left = len(messages) - MOST_MESSAGES
    if left > 0:
        yield text_chunk(f"[{left:,} earlier messages are not shown.]\n\n")
    for message in messages[max(0, left) :]:
        for block in message.content:
            yield from _of_block(message.role, block, spec, calls)
        if message.role == "assistant" and message.text:
            yield text_chunk("\n\n")


def _of_block(role: str, block: object, spec: Callable[[str], ToolSpec | None], calls: CallNames) -> Iterator[Update]:
    if isinstance(block, Text) and role == "user":
        yield schema.UserMessageChunk(session_update="user_message_chunk", content=text_block(block.text))
    elif isinstance(block, Image) and role == "user":
        image = schema.ImageContentBlock(type="image", data=block.data, mime_type=block.media_type)
        yield schema.UserMessageChunk(session_update="user_message_chunk", content=image)
    elif isinstance(block, Text) and role == "assistant" and block.text:
        yield text_chunk(block.text)
    elif isinstance(block, Thinking) and block.text:
        yield thought_chunk(block.text)
    elif isinstance(block, ToolCall):
        name, found, arguments = calls.of(block.id), spec(block.name), _arguments(block)
        calls.known.add(name)
        yield schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=name,
            title=title_of(block.name, arguments, found),
            kind=kind_of(found),
            status="pending",
            raw_input=arguments,
        )
    elif isinstance(block, ToolOutput):
        yield schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=calls.ended(block.call_id),
            status="failed" if block.is_error else "completed",
            content=[quoted(block.text)] if block.text.strip() else None,
        )


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        found = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
