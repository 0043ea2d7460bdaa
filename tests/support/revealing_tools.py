"""A tool that has others offered, as one that connects to a server does."""

from __future__ import annotations

from marvin_core import ToolResult, tool


@tool(access=["read"], group="servers")
async def connect(names: list[str]) -> ToolResult:
    """Connect to a server."""
    return ToolResult(content=f"connected, and {len(names)} tools with it", reveals=names)
