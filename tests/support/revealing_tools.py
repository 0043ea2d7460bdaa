"""Tools that have others offered, as one that connects to a server does."""

from __future__ import annotations

from typing import Any

from marvin_core import ToolResult, tool


@tool(access=["read"], group="servers")
async def connect(names: list[str]) -> ToolResult:
    """Connect to a server."""
    return ToolResult(content=f"connected, and {len(names)} tools with it", reveals=names)


@tool(access=["read"], group="servers")
async def misreveal(what: str) -> ToolResult:
    """Reveal what is no name."""
    made: dict[str, Any] = {
        "number": 5,
        "text": "g_95",
        "numbers": ["g_95", 5],
        "lists": [["g_95"]],
        "long": ["x" * 1_000_000, "\ud800", "", "g_95"],
    }
    return ToolResult(content="done", reveals=made[what])
