"""Tools that read and write files, for tests of what comes with their outputs."""

from __future__ import annotations

from marvin_core import ToolContext, tool
from marvin_core.tools.schema import describe


@tool(access=["read"])
async def read(context: ToolContext, paths: list[str]) -> str:
    """Read files."""
    texts = []
    for path in paths:
        with context.paths.open(path) as stream:
            texts.append(stream.read().decode())
    return "".join(texts)


@tool(access=["write"])
async def write(context: ToolContext, path: str, text: str) -> str:
    """Write a file."""
    context.paths.replace(path, text.encode())
    return "written"


SPECS = tuple(describe(one, source="tests", module=__name__) for one in (read, write))
