"""The times of events: days and times as people write them, and as calendars store them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import NamedTuple

from marvin_core import ToolError

from ..spoken_times import refuse_span, spoken

_LONGEST = 100
_FORMS = "Give a time such as '2026-11-24 15:00' or 'tomorrow 3pm', or a day such as '2026-12-24' for the whole day."
_USUAL = timedelta(hours=1)
_DAY = timedelta(days=1)


class EventTime(NamedTuple):
    """The start and the end of an event: two times in this machine's time zone, or two days, the end excluded.

    RFC 5545, section 3.6.1, defines the end of all-day events so.
    """

    start: date | datetime
    end: date | datetime

    @property
    def is_all_day(self) -> bool:
        """Whether it lasts whole days."""
        return not isinstance(self.start, datetime)

    @property
    def begins(self) -> float:
        """Its start in seconds since the epoch; of a day its first moment here."""
        return as_time(self.start).timestamp()


def event_time(start: str, end: str, now: float) -> EventTime:
    """The time of an event. Blocks, as the library that reads it does.

    Args:
        end: empty for an hour, or for one day; else a time, the last day, or a duration such as `90m`.
        now: the present, in seconds since the epoch.

    Raises:
        ToolError: one of the two is not a time, or the end is not after the start.
    """
    here = datetime.fromtimestamp(now).astimezone()
    begin, _ = _read(start, here.replace(tzinfo=None))
    if not isinstance(begin, datetime):
        return _days(begin, start, end)
    if not end.strip():
        return EventTime(begin, begin + _USUAL)
    finish, is_span = _read(end, begin.replace(tzinfo=None))
    if not isinstance(finish, datetime):
        if not is_span:
            raise ToolError(f"The end {end!r} is a day and the start {start!r} a time. Give two times, or two days.")
        finish = as_time(datetime.combine(finish, begin.time()))
    if finish <= begin:
        raise ToolError(
            f"The end {end!r} is not after the start {start!r}. Give a later end, or a duration such as 90m."
        )
    return EventTime(begin, finish)


def _days(begin: date, start: str, end: str) -> EventTime:
    """All-day times. The end is given as the last day, or as a number of days."""
    if not end.strip():
        return EventTime(begin, begin + _DAY)
    last, is_span = _read(end, datetime.combine(begin, datetime.min.time()))
    if isinstance(last, datetime):
        raise ToolError(f"The start {start!r} is a day and the end {end!r} a time. Give two times, or two days.")
    if last < begin:
        raise ToolError(f"The end {end!r} is before the start {start!r}. Swap them, or leave the end out.")
    return EventTime(begin, last if is_span and last > begin else last + _DAY)


def as_time(moment: date | datetime) -> datetime:
    """A day or time as a time in this machine's time zone, which is also assumed for one without a time zone."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, datetime.min.time())
    return moment.astimezone()


def _read(text: str, base: datetime) -> tuple[date | datetime, bool]:
    """A day, or a time with a time zone; and whether it was a number of days from `base`."""
    written = " ".join(text.split())
    if not written or len(written) > _LONGEST:
        raise ToolError(f"{written[:_LONGEST]!r} is not a time. {_FORMS}")
    refuse_span(written)
    found, is_span = _exact(written), False
    if found is None and (said := spoken(written, base)) is not None:
        found = said.moment if said.kind == "time" else said.moment.date()
        is_span = said.kind == "span"
    if found is None:
        raise ToolError(f"{written!r} is not a time. {_FORMS}")
    try:
        if not 1970 <= found.year <= 9000:
            raise ValueError
        return (as_time(found) if isinstance(found, datetime) else found), is_span
    except (ValueError, OverflowError, OSError):
        raise ToolError(f"{written!r} is too far away. {_FORMS}") from None


def _exact(text: str) -> date | datetime | None:
    """A day or time in ISO 8601, which needs no guessing."""
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text)
        except ValueError:
            continue
    return None
