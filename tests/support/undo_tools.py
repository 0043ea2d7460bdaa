"""Tools that change files in every way there is, for tests of list what can be undone."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from marvin_core import Call, ToolContext, ToolError, ToolResult, tool


@tool(access=["write"])
async def put(context: ToolContext, files: dict[str, str | None], fails: bool = False, waits: bool = False) -> str:
    """Write files; remove those without a content."""
    for path, content in files.items():
        if content is None:
            context.paths.remove(path)
        else:
            context.paths.replace(path, content.encode())
    if fails:
        raise ToolError("The rest failed. Try again.")
    if waits:
        await asyncio.Event().wait()
    return "put"


@tool(access=["write"])
def add(context: ToolContext, path: str, content: str) -> str:
    """Append to a file, in a thread."""
    context.paths.append(path, content.encode())
    return "added"


@tool(access=["write"])
async def fill(context: ToolContext, path: str, size: int) -> str:
    """Write a file of some size, by its real path."""
    with context.paths.real_file(path, writing=True) as real:
        real.write_bytes(b"x" * size)
    return "filled"


@tool(access=["write"], confirm=True)
async def book(context: ToolContext, place: str, key: str = "") -> ToolResult:
    """Book a place."""
    booked: list[str] = context.state.setdefault("booked", [])
    booked.append(place)
    return ToolResult(content="booked", undo=Call(name="cancel", arguments={"place": place, "key": key}))


@tool(access=["write"], confirm=True)
async def cancel(context: ToolContext, place: str, key: str = "") -> ToolResult:
    """Cancel a booking."""
    booked: list[str] = context.state.setdefault("booked", [])
    if place not in booked:
        raise ToolError(f"{place} is not booked. Book it first.")
    booked.remove(place)
    context.state["key"] = key
    return ToolResult(content="cancelled", undo=Call(name="book", arguments={"place": place}))


ALL: tuple[Any, ...] = (put, add, fill, book, cancel)


def works_and_waits(home: Path, project: Path) -> None:
    """A Marvin in a process of its own: it changes a file, says so, and stays until it is killed."""
    from marvin_core.testing import ToolRunner

    with ToolRunner(home, project) as runner:
        runner.call(put, files={"other.txt": "of another"})
        (project / "ready").write_text("ready")
        while os.getppid() != 1:
            time.sleep(0.05)
