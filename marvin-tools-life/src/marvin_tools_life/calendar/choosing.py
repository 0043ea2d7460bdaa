"""Which event of a calendar is meant."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from marvin_core import ToolError, one_line

from .text import EventText

_NAMED = 10
TITLE = 80
"""Characters of a title in an answer."""


def digest(event: EventText) -> str:
    """What differs once an event was changed, whatever its lines end in."""
    return sha256(event.data.replace(b"\r\n", b"\n")).hexdigest()


def chosen(events: Sequence[EventText], uid: str, title: str) -> list[EventText]:
    """The one event that is meant, with those of its times that differ.

    Raises:
        ToolError: there is none, or several.
    """
    if uid:
        found = [event for event in events if event.uid == uid]
        if not found:
            raise ToolError(f"There is no event {one_line(uid, TITLE)!r}. Find its id with calendar_list_upcoming.")
        return found
    wanted = " ".join(title.split()).casefold()
    found = [event for event in events if wanted in " ".join(event.title.split()).casefold()]
    if not found:
        raise ToolError(f"No event has {one_line(title, TITLE)!r} in its title. Look with calendar_view.")
    ids = {event.uid or f"\0{event.span.start}" for event in found}
    if len(ids) == 1:
        return [event for event in events if event.uid == found[0].uid] if found[0].uid else found
    exact = [event for event in found if event.title.casefold() == wanted]
    if len({event.uid for event in exact}) == 1 and exact[0].uid:
        return [event for event in events if event.uid == exact[0].uid]
    named = [f"{one_line(event.title, TITLE)!r} ({event.day}) [{one_line(event.uid, TITLE)}]" for event in found]
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    raise ToolError(f"{len(ids):,} events fit: {', '.join(named[:_NAMED])}{more}. Give the uid of one.")
