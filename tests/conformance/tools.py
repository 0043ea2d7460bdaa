"""The tools that the conformance suite calls: `run.py` makes of this a user's own file of tools."""

from __future__ import annotations

import asyncio

from marvin_core import Image, Text, ToolContext, ToolError, ToolResult, tool

_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@tool(access=["read"])
async def test_simple_text() -> str:
    """Say a sentence."""
    return "This is a simple text response for testing."


@tool(access=["read"])
async def test_image_content() -> ToolResult:
    """Show a dot."""
    return ToolResult(content=(Image(media_type="image/png", data=_DOT),))


@tool(access=["read"])
async def test_multiple_content_types() -> ToolResult:
    """Say a sentence and show a dot."""
    return ToolResult(content=(Text(text="Multiple content types test:"), Image(media_type="image/png", data=_DOT)))


@tool(access=["read"])
async def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(access=["read"])
async def test_tool_with_progress(context: ToolContext) -> str:
    """Tell how far it is, three times."""
    for done in (0, 50, 100):
        context.progress("working", float(done), 100.0)
        await asyncio.sleep(0.05)
    return "It is done."


@tool(access=["read"])
async def test_elicitation(context: ToolContext, message: str) -> str:
    """Ask the person behind the client.

    Args:
        message: the question
    """
    return f"User response: {await context.ask_text(message)}"
