"""The tools launch_agent and launch_research_agent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from marvin_core import (
    AgentResult,
    AgentTask,
    Isolation,
    PipelinePhase,
    TicketError,
    TicketFolder,
    ToolContext,
    ToolError,
    ToolResult,
    find_ticket_folder,
    head_and_tail,
    in_thread,
    tool,
)

from ..shell.commands import shown_path
from .adapters import (
    LAUNCH_IGNORED,
    LAUNCH_NAMES,
    RESEARCH_IGNORED,
    RESEARCH_NAMES,
    launch_arguments,
    research_arguments,
)

_TICKET = re.compile(r"[A-Za-z0-9][\w.-]*")
_DESIGN = ".marvin/design.md"
_LONGEST = 50_000
"""Characters of an agent's answer that the model sees."""
_BUILD, _RESEARCH = 3600.0, 600.0
"""Default timeouts of the service in seconds. The service itself enforces the configured ones."""


@tool(
    known_as=["agent", "task", "spawn_agent"],
    access=["write", "exec", "net"],
    group="agents",
    timeout=_BUILD,
    parallel="isolation",
    settings=["TICKETS_DIR"],
    aliases=LAUNCH_NAMES,
    ignores=LAUNCH_IGNORED,
    adapt=launch_arguments,
)
async def launch_agent(
    context: ToolContext,
    ticket_id: Annotated[str, "Ticket"],
    prompt: Annotated[str, "All it needs to know"],
    model: Annotated[str, "auto, a tier, model or defined agent"] = "auto",
    working_dir: Annotated[str | None, "Folder"] = None,
    design_first: Annotated[bool, "Whole pipeline"] = False,
    tdd: Annotated[bool, "Tests first"] = False,
    isolation: Annotated[str, "worktree: own branch"] = "",
) -> ToolResult:
    """Have another agent work on a ticket."""
    if not _TICKET.fullmatch(ticket_id):
        raise ToolError(f"{ticket_id!r} is not a ticket id. Create a ticket with tk, and pass the id that it prints.")
    if isolation not in get_args(Isolation):
        raise ToolError(f"isolation cannot be {isolation!r}. Give worktree, or leave it out.")
    folder = working_dir or ""
    if tdd and not design_first and not context.paths.exists(f"{folder}/{_DESIGN}" if folder else _DESIGN):
        raise ToolError(
            f"tdd starts with the tests, but there is no {_DESIGN} to test against. Pass design_first=true."
        )
    ticket = await in_thread(lambda: _found(ticket_id, context, folder))
    phase: PipelinePhase = "1a" if design_first else "2a" if tdd else ""
    task = AgentTask(
        prompt=prompt,
        model=model,
        working_dir=folder,
        ticket=ticket,
        isolation=cast("Isolation", isolation),
        phase=phase,
    )
    return _told(await context.agents.run(task, context.progress), context.paths.root, wrote_here=not isolation)


@tool(
    access=["exec", "net"],
    group="agents",
    timeout=_RESEARCH,
    parallel=True,
    aliases=RESEARCH_NAMES,
    ignores=RESEARCH_IGNORED,
    adapt=research_arguments,
)
async def launch_research_agent(
    context: ToolContext,
    query: Annotated[str, "All it needs to know"],
    model: Annotated[str, "As for launch_agent; search: finds places"] = "auto",
) -> ToolResult:
    """Have a read-only agent find out something; several at once."""
    task = AgentTask(prompt=query, kind="research", model=model, read_only=True)
    return _told(await context.agents.run(task, context.progress), context.paths.root, wrote_here=False)


def _found(given: str, context: ToolContext, folder: str) -> str:
    """The full id of the ticket that an agent in a folder will work on. Blocks.

    Raises:
        ToolError: there is no such ticket. Without it the agent could neither create tickets below it nor do anything.
    """
    paths = context.paths
    place = str(paths.root / paths.locate(folder)) if folder else str(paths.root)
    tickets_dir = context.setting("TICKETS_DIR") or ""
    try:
        found = find_ticket_folder(place, tickets_dir)
        if found is None:
            raise TicketError("there are no tickets here")
        with TicketFolder(found, follow=bool(tickets_dir)) as tickets:
            return tickets.resolve(given)
    except TicketError as error:
        why = str(error).removeprefix("Error: ")
        raise ToolError(f"No agent was started: {why}. Create it with tk, and pass the id that it prints.") from None


def _told(result: AgentResult, root: Path, *, wrote_here: bool) -> ToolResult:
    """What the model gets: the agent's answer, or why there is none, and how the run ended.

    Args:
        wrote_here: whether it could write into the session's folder.
    """
    facts = [f"{result.seconds:.0f} s", "cost unknown" if result.cost is None else f"{result.cost:.4f} USD"]
    facts += [f"session {result.session_id}"] if result.session_id else []
    facts += [f"its calls: {shown_path(result.log, root)}"] if result.log is not None else []
    parts = [head_and_tail(result.text.strip(), _LONGEST, "Ask for less to see the whole answer.")]
    if not result.answered:
        parts.append(f"The agent did not finish ({result.ended}): {result.reason}")
        if wrote_here:
            parts.append("The files that it wrote were kept. Check them before you continue or start another agent.")
    parts += [result.worktree, f"[agent {result.ended}; {'; '.join(facts)}]"]
    details: dict[str, Any] = {
        "ended": result.ended,
        "exit_code": result.exit_code,
        "cost": result.cost,
        "session": result.session_id,
        "seconds": result.seconds,
    }
    return ToolResult(content="\n\n".join(filter(None, parts)), details=details, is_error=not result.answered)
