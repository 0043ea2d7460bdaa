"""Tools of each origin and each use, for the tests of labels: what they read is what they are given."""

from __future__ import annotations

from typing import Annotated

from marvin_core import Image, Text, ToolContext, ToolError, ToolResult, tool
from marvin_core.tools.schema import describe


def _log(context: ToolContext, what: str) -> str:
    log: list[str] = context.state.setdefault("log", [])
    log.append(what)
    return "done"


@tool(access=["net"], group="pages")
async def page(text: str) -> str:
    """A page or a feed that says this."""
    return text


@tool(access=["net"], group="pages")
async def broken_page(text: str) -> str:
    """A page that is not available; the service says why."""
    raise ToolError(text)


@tool(access=["net"], group="pages")
async def picture(text: str) -> ToolResult:
    """A picture with this among its metadata."""
    return ToolResult(content=(Text(text=text), Image(media_type="image/png", data="aGk=")))


@tool(access=["read"], group="files")
async def file(text: str) -> str:
    """A file of the repository that says this, or has this name."""
    return text


@tool(access=["read"], group="notes")
async def stored(text: str) -> str:
    """A note that says this."""
    return text


@tool(access=["write", "exec", "net"], group="shell")
async def shell(context: ToolContext, command: Annotated[str, "What runs"]) -> str:
    """Run something."""
    return _log(context, "shell")


@tool(access=["net", "write"], group="notify")
async def publish(context: ToolContext, text: str = "") -> str:
    """Send something."""
    return _log(context, "publish")


@tool(access=["write", "exec", "net"], group="agents")
async def agent(context: ToolContext, task: str = "") -> str:
    """Start an agent."""
    return _log(context, "agent")


@tool(access=["net"], group="search")
async def reach(context: ToolContext, query: str = "") -> str:
    """Ask a service."""
    return _log(context, "reach")


@tool(access=["write"], group="files", passes=["writable-files"])
async def write(context: ToolContext, text: str = "") -> str:
    """Write a file."""
    return _log(context, "write")


@tool(access=["state"], group="session")
async def mixed(text: str, origin: str = "") -> ToolResult:
    """What says of each of its results where it comes from."""
    return ToolResult(content=text, origins=[origin] if origin else [])


ALL = (mixed, page, broken_page, picture, file, stored, shell, publish, agent, reach, write)
SPECS = tuple(describe(one, source="tests", module=__name__) for one in ALL)
