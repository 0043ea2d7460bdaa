"""Removes one day from a series: an exception in the event's text (RFC 5545, section 3.8.5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from marvin_core import ToolError, one_line

from .choosing import TITLE
from .reading import own_zones, parsed
from .rules import check
from .text import CalendarText, EventText
from .times import as_time

_LINE = 75
"""Bytes of a line, RFC 5545, section 3.1."""
_BEGIN = re.compile(
    rb"^DTSTART((?:;[^:\r\n]*(?:\r?\n[ \t][^:\r\n]*)*)?):[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*(\r?\n)",
    re.MULTILINE | re.IGNORECASE,
)
_FOLD = re.compile(rb"\r?\n[ \t]")


class DayTaken(NamedTuple):
    """The change to a series: `gone` are the events to remove, `text` replaces the first of them."""

    gone: Sequence[EventText]
    text: bytes


def without_day(calendar: CalendarText, series: Sequence[EventText], day: date) -> DayTaken:
    """A series without its occurrences on a day, in this machine's time zone, and without their modifications.

    Raises:
        ToolError: it is not a series, or has no occurrence on that day.
    """
    with own_zones():
        return _without_day(calendar, series, day)


def _without_day(calendar: CalendarText, series: Sequence[EventText], day: date) -> DayTaken:
    heads = [event for event in series if not event.is_one_time]
    title = one_line(series[0].title, TITLE)
    if not heads or not heads[0].is_recurring:
        raise ToolError(f"{title!r} is not a series: it happens once. Delete it without a day.")
    try:
        times = list(_times(calendar, series, day))
    except Exception as error:  # the libraries raise any exception for unexpected values in a file
        raise ToolError(
            f"When {title!r} happens cannot be determined: {one_line(str(error))}. Tell the user."
        ) from error
    if not times:
        raise ToolError(f"{title!r} does not happen on {day}. Search with calendar_list_upcoming or calendar_view.")
    head = heads[0]
    place = _BEGIN.search(head.data)
    if place is None:
        raise ToolError(f"The event {title!r} cannot be changed. Ask the user to do it in their calendar program.")
    parameters = _FOLD.sub(b"", place[1])
    lines = b"".join(_folded(b"EXDATE" + parameters + b":" + _value(one, head), place[2]) for one in times)
    moved = [event for event in series if event.is_one_time and _is_of(calendar, event, times)]
    return DayTaken([head, *moved], head.data[: place.end()] + lines + head.data[place.end() :])


def replaced(calendar: CalendarText, change: DayTaken) -> tuple[bytes, bytes]:
    """The calendar without the removed events, and with the changed event in the place of the first."""
    left = calendar.without([event.span for event in change.gone])
    first = change.gone[0].span.start
    before = sum(len(event.data) for event in change.gone[1:] if event.span.start < first)
    at = first - before
    return left, left[:at] + change.text + left[at:]


def _times(calendar: CalendarText, series: Sequence[EventText], day: date) -> Iterator[date | datetime]:
    """The keys of a series' occurrences on a day."""
    import recurring_ical_events  # type: ignore[import-untyped]

    start = as_time(day)
    end = as_time(day + timedelta(days=1))
    found = parsed(calendar.only(series))
    for event in found.walk("VEVENT"):
        check(event, end)
    for event in recurring_ical_events.of(found).between(start, end):
        begin = event["DTSTART"].dt
        if (as_time(begin).date() if isinstance(begin, datetime) else begin) == day:
            yield event["RECURRENCE-ID"].dt


def _value(moment: date | datetime, head: EventText) -> bytes:
    """A time in the form of the series' start."""
    if not isinstance(moment, datetime):
        return f"{moment:%Y%m%d}".encode()
    if head.begins_in_utc:
        return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}".encode()
    return f"{moment:%Y%m%dT%H%M%S}".encode()


def _is_of(calendar: CalendarText, event: EventText, times: Sequence[date | datetime]) -> bool:
    """Whether an event modifies one of these occurrences."""
    (found,) = parsed(calendar.only([event])).walk("VEVENT")
    moment = found["RECURRENCE-ID"].dt
    return any(_same(moment, one) for one in times)


def _same(one: date | datetime, other: date | datetime) -> bool:
    if isinstance(one, datetime) != isinstance(other, datetime):
        return as_time(one).date() == as_time(other).date()
    return as_time(one) == as_time(other)


def _folded(line: bytes, line_end: bytes) -> bytes:
    """A line folded to the maximum length, between characters."""
    pieces, rest = [], line
    while len(rest) > _LINE - 1:
        cut = _LINE - 1
        while rest[cut] & 0xC0 == 0x80:
            cut -= 1
        pieces.append(rest[:cut])
        rest = rest[cut:]
    return (line_end + b" ").join([*pieces, rest]) + line_end
