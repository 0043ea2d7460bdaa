"""Finds the event that a call means, and the day of a series."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from hashlib import sha256
from typing import NamedTuple

from marvin_core import ToolError, one_line

from ..names import folded
from .text import EventText

_NAMED = 10
TITLE = 80
"""Characters of a title in an answer."""
_WITH_DAY = re.compile(r"(.*?\S)\s+(?:on\s+)?(\d{4}-\d\d-\d\d)")


class Chosen(NamedTuple):
    """The event that is meant, with its modified occurrences; and the day, if only one occurrence is meant."""

    events: Sequence[EventText]
    day: date | None = None


def digest(event: EventText) -> str:
    """A hash of an event. It does not depend on the kind of line ends."""
    return sha256(event.data.replace(b"\r\n", b"\n")).hexdigest()


def chosen(events: Sequence[EventText], uid: str, title: str) -> Chosen:
    """The one event with an id, a part of a title, or both, optionally followed by a day.

    Raises:
        ToolError: there is none, or several match.
    """
    try:
        return Chosen(_one(events, uid, title))
    except ToolError:
        for apart_uid, apart_title, day in _with_day(uid, title):
            return Chosen(_one(events, apart_uid, apart_title), day)
        raise


def _with_day(uid: str, title: str) -> list[tuple[str, str, date]]:
    """The id and the title without the day at the end of one of them; nothing if there is none."""
    found = _WITH_DAY.fullmatch(uid or title)
    if found is None:
        return []
    try:
        day = date.fromisoformat(found[2])
    except ValueError:
        return []
    return [(found[1], title, day) if uid else ("", found[1], day)]


def _one(events: Sequence[EventText], uid: str, title: str) -> Sequence[EventText]:
    found = [event for event in events if not uid or event.uid == uid]
    if not found:
        raise ToolError(f"There is no event {one_line(uid, TITLE)!r}. Find its id with calendar_list_upcoming.")
    wanted = folded(title)
    if not uid or len(_heads(found)) > 1:
        found = [event for event in found if wanted in folded(event.title)]
    if not found:
        raise ToolError(f"No event has {one_line(title, TITLE)!r} in its title. Search with calendar_view.")
    for candidates in (found, [event for event in found if folded(event.title) == wanted]):
        if candidates and len({_key(event) for event in candidates}) == 1:
            whole = _with_times(events, candidates)
            if len({digest(event) for event in _heads(whole)}) <= 1:
                return whole
    raise ToolError(_several(found))


def _with_times(events: Sequence[EventText], found: Sequence[EventText]) -> Sequence[EventText]:
    """The events and the modified occurrences of their series. Events with the same id by accident are left out."""
    if not found[0].uid:
        return found
    heads = {event.span for event in _heads(found)}
    same = [event for event in events if event.uid == found[0].uid]
    return [event for event in same if event.is_one_time or not heads or event.span in heads]


def _heads(events: Sequence[EventText]) -> list[EventText]:
    return [event for event in events if not event.is_one_time]


def _key(event: EventText) -> str:
    return event.uid or f"\0{event.span.start}"


def _several(found: Sequence[EventText]) -> str:
    named = [f"{one_line(event.title, TITLE)!r} ({event.day}) [{one_line(event.uid, TITLE)}]" for event in found]
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    how = "Give the uid of one" if len({event.uid for event in found}) > 1 else "Give the uid and the title of one"
    return f"{len(found):,} events match: {', '.join(named[:_NAMED])}{more}. {how}."
