"""Third-party tools with which the gates of agents are tested: one that keeps tickets, and some that declare little."""

from __future__ import annotations

import json
import shlex

from marvin_core import ToolContext, ToolError, tool


@tool(access=["write"], group="tickets", passes=["readonly", "ticket"], aliases={"args": ["line"]})
async def tk(context: ToolContext, args: str) -> str:
    """Keep tickets: `create TITLE --parent ID`, `ls`, `close ID`."""
    words = shlex.split(args)
    tickets: list[list[str]] = context.state.setdefault("tickets", [])
    if words[0] == "create" and words[1:2] == ["fail"]:
        raise ToolError("The disk is full. Make room.")
    if words[0] in ("create", "close"):
        tickets.append(words)
        return f"created T-{len(tickets)}" if words[0] == "create" else "closed"
    return json.dumps(tickets)


@tool
async def undeclared(context: ToolContext) -> str:
    """Do something, nobody knows what."""
    context.state.setdefault("done", []).append("undeclared")
    return "done"


@tool(access=["read", "net"])
async def reads(name: str) -> str:
    """Read something."""
    return f"read {name}"


@tool(access=["write"], passes=["writable-files"])
async def writes(context: ToolContext, path: str, content: str) -> str:
    """Write a file."""
    context.paths.replace(path, content.encode())
    return f"wrote {path}"


@tool(access=["state"], interactive=True)
async def moves(context: ToolContext, path: str) -> str:
    """Work in another folder."""
    from pathlib import Path

    context.session.set_working_dir(Path(path))
    return f"now in {path}"


@tool(access=["write", "exec"], typed="!", confirm=True)
async def shell(context: ToolContext, command: str) -> str:
    """Run a shell command."""
    result = await context.processes.run(["sh", "-c", command], merge_stderr=True)
    return result.output.decode()


@tool(access=["exec"])
async def lists_programs(context: ToolContext) -> str:
    """Run a program that writes nothing."""
    return (await context.processes.run(["echo", "programs"])).output.decode()


ALL = (tk, undeclared, reads, writes, moves, shell, lists_programs)
