"""The prompt of an agent: its task, how it works, and what the project is, so that it need not find its way first."""

from __future__ import annotations

from pathlib import Path

from ...api.agents import AgentTask
from ...api.errors import ToolError
from ...api.tool_context import Paths

_SPEC, _DESIGN, _INDEX = ".marvin/spec.md", ".marvin/design.md", ".marvin/memories/INDEX.md"
_SPEC_SHOWN, _DESIGN_SHOWN = 2_000, 1_500
_ENOUGH = 4
"""Bytes that a character takes at most."""

_NO_MOCKS = (
    "Tests use the real thing: no mocks, no test doubles, nothing that replaces behaviour by what only looks like it. "
    "Use temporary folders, local servers and databases in memory."
)
_TICKET = (
    "Begin with a ticket of your own below {ticket}: tk create with --parent {ticket}, a description and criteria. The "
    "first try is refused on purpose; write it with care, and try again."
)
_WRITING = (
    "What stays is what you write with the tools for files; nobody makes a file of your answer. Commit what you "
    "wrote{ticket} before you end. Your last answer says what you did, what you tried it with, and what is open."
)
_READING = (
    "You change nothing. Your last answer is all that is handed back: make it complete, with file:line for places."
)


def prompt_of(task: AgentTask, folder: Path, paths: Paths, *, reads_only: bool) -> str:
    """The whole prompt of an agent. Blocks: it reads documents and lists the folder.

    Args:
        folder: where it works.
        paths: the files below that folder.
    """
    way = f"# How you work\n{_way(task, reads_only=reads_only)}"
    parts = [task.instructions, task.prompt, way, _project(folder, paths)]
    return "\n\n".join(part for part in parts if part)


def _project(folder: Path, paths: Paths) -> str:
    parts = [f"# The project {folder.name}"]
    for name, most in ((_SPEC, _SPEC_SHOWN), (_DESIGN, _DESIGN_SHOWN)):
        if text := _beginning(paths, name, most):
            parts.append(f"## {name}\n{text}")
    parts.append(paths.overview())
    if _exists(paths, _INDEX):
        parts.append(f"{_INDEX} lists what was found out before, by keywords and files. Look there first.")
    parts.append(_NO_MOCKS)
    return "\n\n".join(parts)


def _way(task: AgentTask, *, reads_only: bool) -> str:
    if reads_only:
        return _READING
    if task.writable_files is not None:
        return f"You edit only: {', '.join(task.writable_files)}. Read, edit, and stop."
    if not task.ticket:
        return _WRITING.format(ticket="")
    ticket = f", naming the ticket {task.ticket} in the message,"
    return f"{_TICKET.format(ticket=task.ticket)}\n{_WRITING.format(ticket=ticket)}"


def _beginning(paths: Paths, name: str, most: int) -> str:
    """So many characters of a document; nothing where there is none that can be read."""
    try:
        if not paths.exists(name):
            return ""
        with paths.open(name) as stream:
            text = stream.read(most * _ENOUGH + 1).decode("utf-8", "replace")
    except (ToolError, OSError):
        return ""
    return text if len(text) <= most else f"{text[:most]}\n[... it goes on; read {name} for the rest]"


def _exists(paths: Paths, name: str) -> bool:
    try:
        return paths.exists(name)
    except (ToolError, OSError):
        return False
