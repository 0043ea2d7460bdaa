"""The folder of the user's tickets: next to the profiles, in the format of project tickets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from marvin_core import (
    Ticket,
    TicketError,
    TicketFolder,
    TicketOutcome,
    TicketPlace,
    ToolContext,
    ToolError,
    did_you_mean,
    in_thread,
    near_names,
    run_tickets,
)

T = TypeVar("T")


def place_of(context: ToolContext) -> str:
    """The folder of the tickets, which may not exist."""
    return str(context.profile_folder.parents[1] / "tickets")


async def run(context: ToolContext, *words: str) -> TicketOutcome:
    """The output of a ticket command. Raises `ToolError` if it fails."""
    folder = place_of(context)
    place = TicketPlace(os.path.dirname(folder), folder)
    place.strict = True
    place.timeouts = context.timeouts
    return await _explained(context, lambda: run_tickets(words, place))


async def look(context: ToolContext, work: Callable[[TicketFolder], T]) -> T:
    """Return `work` of the folder, run in a thread. Raises `ToolError` if there is no ticket yet."""
    path, timeouts = place_of(context), context.timeouts
    if not await in_thread(lambda: os.path.isdir(path)):
        raise ToolError(_none_yet(path))

    def looked() -> T:
        with TicketFolder(path, timeouts=timeouts) as folder:
            return work(folder)

    return await _explained(context, looked)


def all_tickets(folder: TicketFolder) -> Mapping[str, Ticket]:
    """Every ticket by its id. Raises `ToolError` if there is none."""
    found = folder.all()
    if not found:
        raise ToolError(_none_yet(folder.path))
    return found


def digest(text: str) -> str:
    """A hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


async def _explained(context: ToolContext, work: Callable[[], T]) -> T:
    try:
        return await in_thread(work)
    except (TicketError, OSError) as error:
        names = await in_thread(lambda: _names(place_of(context)))
        raise ToolError(_in_words(str(error), names, place_of(context))) from None


def _names(path: str) -> Sequence[str]:
    try:
        with TicketFolder(path) as folder:
            return folder.names()
    except TicketError:
        return ()


def _none_yet(path: str) -> str:
    """The message if there are no tickets; those of an older Marvin are JSON files in the same folder."""
    try:
        is_older = any(name.endswith(".json") for name in os.listdir(path))
    except OSError:
        is_older = False
    older = (
        " The command `marvin import` imports the tickets of an older version of Marvin: tell the user."
        if is_older
        else ""
    )
    return f"There are no tickets yet. Use create_ticket to create one.{older}"


def _in_words(error: str, names: Sequence[str], path: str) -> str:
    said = error.removeprefix("Error: ").partition("\n")[0].rstrip(".")
    if "does not exist" in said or "no .tickets directory" in said:
        return _none_yet(path)
    if "not found" in said:
        asked = said.partition("'")[2].partition("'")[0]
        return f"There is no ticket {asked!r}. {did_you_mean(near_names(asked, names)) or 'ticket_list lists them.'}"
    if "ambiguous" in said:
        return f"{said}. Give more of the id; ticket_list lists the tickets."
    return f"{said}. Tell the user."
