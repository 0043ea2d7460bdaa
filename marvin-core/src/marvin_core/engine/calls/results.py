"""Converts results and errors of tools into forms that the rest of the program can handle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ...api.errors import NeverUndone, ToolError
from ...api.messages import Image, Text, ToolCall, ToolOutput
from ...api.tools import ToolResult
from ...conversation.pairing import interrupted
from ...util.failures import told

GO_ON = "It may have done its work. Check, then try another way."


def as_result(returned: object) -> ToolResult:
    """The return value of a tool as a result; a text is converted to one."""
    if isinstance(returned, ToolResult):
        return returned
    return ToolResult(content="(no output)" if returned in (None, "") else str(returned))


def presentable(name: str, result: ToolResult) -> ToolResult:
    """The result in a form that a model, a session file and interfaces can handle.

    Raises:
        ToolError: if it is not a valid result.
    """
    content: object = result.content
    blocks = content if isinstance(content, (tuple, list)) else [Text(text=content)]  # type: ignore[arg-type]
    if not all(map(_is_content, blocks)):
        raise ToolError(f"{name} returned {content!r:.100}, which is neither text nor image. {GO_ON}")
    details = result.details
    kinds = (type(result), type(content), type(result.is_error))
    if kinds == (ToolResult, tuple, bool) and result.is_plain and details is None:
        return result  # as most are
    if details is not None:
        from ...util.plain_data import plain

        try:
            details = plain(dict(details))
        except (TypeError, ValueError) as error:
            raise ToolError(f"{name} returned details that cannot be used: {error}. {GO_ON}") from None
    return ToolResult(content=tuple(blocks), details=details, is_error=bool(result.is_error))


def failed(error: ToolError) -> ToolResult:
    """The result of a call that has raised an error."""
    return ToolResult(content=f"Error: {text_of(error)}", is_error=True, is_final=isinstance(error, NeverUndone))


def text_of(error: ToolError) -> str:
    """The error text of a tool; an error class of its own may fail at that too."""
    try:
        return str(error)
    except Exception:
        return told(error)


def _is_content(block: object) -> bool:
    texts: list[object] = []
    if isinstance(block, Image):
        texts = [block.media_type, block.data]
    elif isinstance(block, Text):
        texts = [block.text]
    return bool(texts) and all(isinstance(text, str) for text in texts)


def as_written(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call as the model wrote them; empty if they cannot be parsed without repair."""
    from ...util.untrusted_json import parse_json

    try:
        given = parse_json(call.arguments)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def output_of(call: ToolCall, task: asyncio.Task[ToolOutput] | None) -> ToolOutput:
    """The output of a call whose task has ended; "interrupted" if it has none."""
    if task is None or not task.done() or task.cancelled() or task.exception() is not None:
        return interrupted(call.id, call.name)
    return task.result()
