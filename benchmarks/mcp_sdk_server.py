"""A server written with the SDK, as most are: one tool that adds two numbers, by stdio."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("one", log_level="ERROR")


@server.tool(structured_output=False)  # the bare client would validate structured output, and Marvin does not
def add(a: int, b: int) -> str:
    """The sum of two numbers."""
    return str(a + b)


if __name__ == "__main__":
    server.run("stdio")
