"""The user's own tickets: tasks, their dependencies, and notes on them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from marvin_core import (
    Field,
    Table,
    Ticket,
    TicketFolder,
    TicketOutcome,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    one_line,
    output_text,
    tool,
)

from ..names import folded
from ..undo import check_undo
from .store import all_tickets, digest, look, run

Kind: TypeAlias = Literal["bug", "feature", "task", "epic", "chore"]
Id: TypeAlias = Annotated[str, "Its id, or a part of it"]
_TITLE = 200
_TEXT = 20_000
_LISTED = 200
_NOTE_OVERHEAD = 80
"""Characters of a note in addition to its text: a heading and the time."""


@tool(access=["write"])
async def create_ticket(
    title: Annotated[str, "What should be done"],
    description: Annotated[str, "Background and details"] = "",
    ticket_type: Annotated[Kind, "The kind of work"] = "task",
    priority: Annotated[int, Field(ge=0, le=4), "0 is the most urgent"] = 2,
    tags: Annotated[str, "Separated by commas"] = "",
    parent: Annotated[str, "The id of its parent ticket"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Make a personal ticket. Those of a project are made with tk."""
    title = one_line(title).lstrip("- ")
    if not title or len(title) > _TITLE:
        raise ToolError(
            f"The title has {len(title)} characters. Give 1 to {_TITLE}, and put the rest into description."
        )
    _check("description", description)
    words = ["create", title, "-t", ticket_type, "-p", str(priority)]
    given = {"-d": description.strip(), "--tags": ",".join(_tags(tags)), "--parent": parent.strip()}
    words += [word for option, value in given.items() if value for word in (option, value)]
    name = one_line("\n".join((await run(context, *words)).lines))
    made = await look(context, lambda folder: digest(folder.read(name).text))
    return ToolResult(content=f"Ticket {name} created: {title}", undo=call_of(ticket_close, ticket_id=name, made=made))


@tool(access=["write"], unlisted=["remove"])
async def ticket_add_dep(
    ticket_id: Id,
    depends_on: Annotated[str, "The id of the ticket that must be done first"],
    remove: bool = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Have a ticket wait for another one."""
    if remove:
        check_undo(context, "remove")
        return ToolResult(content=_said(await run(context, "undep", ticket_id, depends_on)))
    first, then = await look(context, lambda folder: _checked_names(folder, ticket_id, depends_on))
    outcome = await run(context, "dep", first, then)
    undo = call_of(ticket_add_dep, ticket_id=first, depends_on=then, remove=True) if outcome.undo else None
    return ToolResult(content=_said(outcome), undo=undo)


@tool(access=["write"], unlisted=["status"])
async def ticket_start(
    ticket_id: Id, status: Literal["in_progress", "open"] = "in_progress", *, context: ToolContext
) -> ToolResult:
    """Mark a ticket as in progress."""
    return await _with_status(context, ticket_id, status)


@tool(access=["write"], unlisted=["made"])
async def ticket_close(ticket_id: Id, made: str = "", *, context: ToolContext) -> ToolResult:
    """Mark a ticket as done."""
    if made:
        check_undo(context, "made")
        return ToolResult(content=await look(context, lambda folder: _removed(folder, ticket_id, made)))
    return await _with_status(context, ticket_id, "closed")


@tool(access=["write"], unlisted=["without"])
async def ticket_add_note(
    ticket_id: Id, note: Annotated[str, "Its text"], without: str = "", *, context: ToolContext
) -> ToolResult:
    """Add a note with a timestamp to a ticket."""
    if without:
        check_undo(context, "without")
        return ToolResult(content=await look(context, lambda folder: _without_note(folder, ticket_id, without)))
    _check("note", note)
    if not note.strip():
        raise ToolError("The note is empty. Give its text.")
    before = await look(context, lambda folder: folder.read(folder.resolve(ticket_id)))
    outcome = await run(context, "add-note", before.name, note.strip())
    after = await look(context, lambda folder: folder.read(before.name))
    undo = None
    # If another note was added in between, the length of the text before is not the start of this one.
    if after.text.startswith(before.text) and len(after.text) - len(before.text) <= len(note) + _NOTE_OVERHEAD:
        known = f"{len(before.text)}:{digest(after.text)}"
        undo = call_of(ticket_add_note, ticket_id=before.name, note=note, without=known)
    return ToolResult(content=_said(outcome), undo=undo)


@tool(access=["read"])
async def ticket_show(ticket_id: Id, *, context: ToolContext) -> str:
    """Show everything about a ticket: text, notes, what it waits for and what waits for it."""
    return _said(await run(context, "show", ticket_id))


@tool(access=["read"])
async def ticket_list(
    status: Annotated[Literal["", "open", "in_progress", "closed"], "Default: all"] = "",
    tags: Annotated[str, "Only with all of these tags, separated by commas"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """List the user's own tickets, the most urgent first."""
    tickets = await look(context, all_tickets)
    wanted = set(map(folded, _tags(tags)))
    found = [
        ticket
        for ticket in tickets.values()
        if status in ("", ticket.status) and wanted <= set(map(folded, ticket.items("tags")))
    ]
    if not found:
        return ToolResult(content=f"None of the {len(tickets)} tickets matches. Leave out status or tags.")
    found.sort(key=lambda ticket: (ticket.status == "closed", ticket.priority, ticket.id))
    rows = [_row(ticket) for ticket in found[:_LISTED]]
    lines = [
        f"{name} [{state}, P{priority}] {title}"
        + (f" ({labels})" if labels else "")
        + (f" waits for {on}" if on else "")
        for name, state, priority, title, labels, on in rows
    ]
    if len(found) > _LISTED:
        lines.append(f"{len(found) - _LISTED} more were left out. Give a status or tags.")
    table = Table(columns=("ticket", "status", "priority", "title", "tags", "waits for"), rows=rows)
    return ToolResult(content="\n".join(lines), show=[table])


@tool(access=["read"])
async def ticket_dep_tree(ticket_id: Id, *, context: ToolContext) -> str:
    """Show what a ticket waits for, and what that waits for, as a tree."""
    return _said(await run(context, "dep", "tree", ticket_id))


async def _with_status(context: ToolContext, ticket_id: str, status: str) -> ToolResult:
    outcome = await run(context, "status", ticket_id, status)
    undo = None
    if outcome.undo:
        _, name, before = outcome.undo
        if before == "closed":
            undo = call_of(ticket_close, ticket_id=name)
        else:
            undo = call_of(ticket_start, ticket_id=name, status=before)
    return ToolResult(content=_said(outcome), undo=undo)


def _said(outcome: TicketOutcome) -> str:
    return output_text("\n".join(outcome.lines).encode("utf-8", "surrogateescape")).strip()


def _row(ticket: Ticket) -> tuple[str, ...]:
    tags, waits_for = (", ".join(ticket.items(field)) for field in ("tags", "deps"))
    return tuple(map(one_line, (ticket.id, ticket.status, ticket.priority, ticket.title, tags, waits_for)))


def _tags(text: str) -> list[str]:
    """Tags in a form that a ticket's list allows."""
    found = []
    for part in text.split(","):
        tag = one_line("".join(" " if letter in "[]#'\"" else letter for letter in part))
        if tag:
            found.append(tag)
    return found


def _check(name: str, text: str) -> None:
    if len(text) > _TEXT:
        raise ToolError(
            f"The {name} has {len(text):,} characters; the limit is {_TEXT:,}. Split it into several notes."
        )


def _checked_names(folder: TicketFolder, ticket_id: str, depends_on: str) -> tuple[str, str]:
    """The ids of two tickets, after checking that the first may depend on the second."""
    first, then = folder.resolve(ticket_id), folder.resolve(depends_on)
    tickets = folder.all()
    if first == then or first in _below(tickets, then):
        raise ToolError(
            f"{then} waits for {first} already, so {first} cannot wait for it: that would be a cycle."
            if first != then
            else f"{first} cannot wait for itself. Give another ticket."
        )
    return first, then


def _below(tickets: Mapping[str, Ticket], name: str) -> set[str]:
    """All direct and indirect dependencies of a ticket."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        ticket = tickets.get(waiting.pop())
        for one in ticket.deps if ticket else ():
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def _removed(folder: TicketFolder, name: str, made: str) -> str:
    """Remove a ticket that is unchanged since it was created."""
    with folder.locked():
        ticket = folder.read(folder.resolve(name))
        if digest(ticket.text) != made:
            raise ToolError(
                f"{ticket.name} was changed after it was created, so it was not removed. Close it with ticket_close."
            )
        os.unlink(os.path.join(folder.path, f"{ticket.name}.md"))
    return f"Ticket {ticket.name} was removed."


def _without_note(folder: TicketFolder, name: str, known: str) -> str:
    """Remove the newest note if nothing was added after it."""
    length, _, after = known.partition(":")
    with folder.locked():
        ticket = folder.read(folder.resolve(name))
        if digest(ticket.text) != after or not length.isdigit():
            raise ToolError(f"{ticket.name} was changed after the note was added, so the note was not removed.")
        folder.write(ticket.name, ticket.text[: int(length)])
    return f"The note of {ticket.name} was removed."
