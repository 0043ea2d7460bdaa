"""When an event is: days and times as people write them, and as calendars have them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import NamedTuple

from marvin_core import ToolError

_LONGEST = 100
_FORMS = "Give a time such as '2026-11-24 15:00' or 'tomorrow 3pm', or a day such as '2026-12-24' for all of it."
_USUAL = timedelta(hours=1)
_DAY = timedelta(days=1)
_TIMED = frozenset({"time", "part_of_day"})


class EventTime(NamedTuple):
    """When an event begins and ends: two times in the zone of this machine, or two days, the last of which is not in.

    RFC 5545, section 3.6.1, has the end of an event on whole days so.
    """

    start: date | datetime
    end: date | datetime

    @property
    def is_all_day(self) -> bool:
        """Whether it lasts whole days."""
        return not isinstance(self.start, datetime)

    @property
    def begins(self) -> float:
        """Its beginning in seconds since the epoch; of a day its first moment here."""
        return as_time(self.start).timestamp()


def event_time(start: str, end: str, now: float) -> EventTime:
    """The time of an event. Blocks, as the library that reads it does.

    Args:
        end: empty for an hour, or for one day; else a time, a day that is still in, or a span such as `90m`.
        now: the present, in seconds since the epoch.

    Raises:
        ToolError: one of the two is no time, or the end is not behind the start.
    """
    here = datetime.fromtimestamp(now).astimezone()
    begin = _read(start, here.replace(tzinfo=None))
    if not isinstance(begin, datetime):
        last = _read(end, datetime.combine(begin, datetime.min.time())) if end.strip() else begin
        if isinstance(last, datetime):
            raise ToolError(f"The start {start!r} is a day and the end {end!r} a time. Give two times, or two days.")
        if last < begin:
            raise ToolError(f"The end {end!r} is before the start {start!r}. Swap them, or leave the end out.")
        return EventTime(begin, last + _DAY)
    if not end.strip():
        return EventTime(begin, begin + _USUAL)
    finish = _read(end, begin.replace(tzinfo=None))
    if not isinstance(finish, datetime):
        raise ToolError(f"The end {end!r} is a day and the start {start!r} a time. Give two times, or two days.")
    if finish <= begin:
        raise ToolError(f"The end {end!r} is not behind the start {start!r}. Give a later one, or a span such as 90m.")
    return EventTime(begin, finish)


def as_time(moment: date | datetime) -> datetime:
    """A day or time as a time in the zone of this machine. One without a zone is of this one, wherever it is read."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, datetime.min.time())
    return moment.astimezone()


def _read(text: str, base: datetime) -> date | datetime:
    """What is meant: a day, or a time with a zone. `base` is what the text counts from."""
    written = " ".join(text.split())
    if not written or len(written) > _LONGEST:
        raise ToolError(f"{written[:_LONGEST]!r} is no time. {_FORMS}")
    found = _exact(written) or _parsed(written, base)
    if found is None:
        raise ToolError(f"{written!r} is no time. {_FORMS}")
    try:
        if not 1970 <= found.year <= 9000:
            raise ValueError
        return as_time(found) if isinstance(found, datetime) else found
    except (ValueError, OverflowError, OSError):
        raise ToolError(f"{written!r} is too far away. {_FORMS}") from None


def _exact(text: str) -> date | datetime | None:
    """A day or time in the form of ISO 8601, of which nothing has to be guessed."""
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text)
        except ValueError:
            continue
    return None


def _parsed(text: str, base: datetime) -> date | datetime | None:
    from dateparser.date import DateDataParser  # it takes a third of a second

    settings = {"RETURN_TIME_AS_PERIOD": True, "PREFER_DATES_FROM": "future", "RELATIVE_BASE": base}
    for languages in (["en"], None):  # English first: reading the words of all languages takes seconds
        try:
            found = DateDataParser(languages=languages, settings=settings).get_date_data(text)
        except (ValueError, OverflowError, RecursionError):
            return None
        if found.date_obj is not None:
            return found.date_obj if found.period in _TIMED else found.date_obj.date()
    return None
