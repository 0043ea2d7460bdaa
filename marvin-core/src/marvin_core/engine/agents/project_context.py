"""The prompt of an agent: its task, working rules, and a summary of the project, so that it need not explore first."""

from __future__ import annotations

from pathlib import Path

from ...api.agents import AgentTask
from ...api.errors import ToolError
from ...api.tool_context import Paths

_SPEC, _DESIGN, _INDEX = ".marvin/spec.md", ".marvin/design.md", ".marvin/memories/INDEX.md"
_SPEC_SHOWN, _DESIGN_SHOWN = 2_000, 1_500
_ENOUGH = 4
"""The maximum size of a character in bytes."""

_NO_MOCKS = (
    "Tests use real components: no mocks and no test doubles. Use temporary folders, local servers and in-memory "
    "databases."
)
_TICKET = (
    "Begin with your own ticket below {ticket}: tk create with --parent {ticket}, a description and acceptance "
    "criteria. The first attempt is refused on purpose; write the ticket with care, and try again."
)
_WRITING = (
    "Only what you write with the file tools is kept; your answer is not saved as a file. Commit what you "
    "wrote{ticket} before you end. In your last answer, say what you did, how you tested it, and what is still open."
)
_READING = "You change nothing. Only your last answer is returned: make it complete, with file:line for places."


def prompt_of(task: AgentTask, folder: Path, paths: Paths, *, reads_only: bool) -> str:
    """The complete prompt of an agent. Blocks: it reads documents and lists the folder.

    Args:
        folder: its working directory.
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
        parts.append(f"{_INDEX} lists earlier findings, by keywords and files. Look there first.")
    parts.append(_NO_MOCKS)
    return "\n\n".join(parts)


def _way(task: AgentTask, *, reads_only: bool) -> str:
    if reads_only:
        return _READING
    if task.writable_files is not None:
        return f"You may edit only: {', '.join(task.writable_files)}. Read, edit, and stop."
    if not task.ticket:
        return _WRITING.format(ticket="")
    ticket = f", naming the ticket {task.ticket} in the message,"
    return f"{_TICKET.format(ticket=task.ticket)}\n{_WRITING.format(ticket=ticket)}"


def _beginning(paths: Paths, name: str, most: int) -> str:
    """The first characters of a document; empty if it cannot be read."""
    try:
        if not paths.exists(name):
            return ""
        with paths.open(name) as stream:
            text = stream.read(most * _ENOUGH + 1).decode("utf-8", "replace")
    except (ToolError, OSError):
        return ""
    return text if len(text) <= most else f"{text[:most]}\n[... cut here; read {name} for the rest]"


def _exists(paths: Paths, name: str) -> bool:
    try:
        return paths.exists(name)
    except (ToolError, OSError):
        return False
