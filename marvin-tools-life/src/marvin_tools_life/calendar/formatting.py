"""Formats events and months as text."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, timedelta

from marvin_core import Table, one_line

from .reading import Agenda, Occurrence
from .times import as_time

_TITLE, _PLACE, _TEXT, _ID = 200, 120, 200, 120
_LINES = 200
_LEFT_OUT = 5
_WEEK = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")


def span(start: date | datetime, end: date | datetime) -> str:
    """The start and the end of an event in this machine's time zone."""
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        last = end - timedelta(days=1)
        return f"{start:%a %Y-%m-%d}" if last <= start else f"{start:%a %Y-%m-%d} to {last:%a %Y-%m-%d}"
    if end == start:
        return f"{start:%a %Y-%m-%d %H:%M}"
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%a %Y-%m-%d %H:%M}"
    return f"{start:%a %Y-%m-%d %H:%M} to {until}"


def lines(agenda: Agenda) -> list[str]:
    """The occurrences, one a line, and what is left out."""
    shown = [_line(one) for one in agenda.occurrences[:_LINES]]
    if len(agenda.occurrences) > _LINES:
        shown.append(f"[{_LINES} of {len(agenda.occurrences):,} are shown. Ask for fewer days.]")
    shown += [f"[Left out: {one_line(said, _TEXT)}]" for said in agenda.left_out[:_LEFT_OUT]]
    if len(agenda.left_out) > _LEFT_OUT:
        shown.append(f"[{len(agenda.left_out) - _LEFT_OUT:,} more were left out.]")
    return shown


def table(occurrences: Sequence[Occurrence], title: str) -> Table:
    """The occurrences as a table for people."""
    rows = [
        (span(one.start, one.end), _title(one), one_line(one.location, _PLACE), one.repeats)
        for one in occurrences[:_LINES]
    ]
    left = max(0, len(occurrences) - _LINES)
    return Table(columns=("when", "event", "where", "repeats"), rows=rows, title=title, omitted=left)


def month_grid(year: int, month: int, marked: Collection[int]) -> str:
    """A month as a grid with weeks from Monday; days with events have a star."""
    head = " ".join(f"{name:>3}" for name in _WEEK)
    weeks = [
        " ".join(f"{'' if not day else f'{day}*' if day in marked else f'{day} ':>3}" for day in week).rstrip()
        for week in calendar.monthcalendar(year, month)
    ]
    return "\n".join([f"{calendar.month_name[month]} {year}", head, *weeks])


def days_of(occurrences: Iterable[Occurrence], year: int, month: int) -> set[int]:
    """The days of a month with events."""
    first = date(year, month, 1)
    after = date(year + month // 12, month % 12 + 1, 1)
    found: set[int] = set()
    for one in occurrences:
        begin = as_time(one.start).date()
        # An event that ends at midnight is not on the day that starts then.
        end = (as_time(one.end) - timedelta(microseconds=1)).date()
        day, last = max(begin, first), min(max(begin, end), after - timedelta(days=1))
        while day <= last:
            found.add(day.day)
            day += timedelta(days=1)
    return found


def _title(one: Occurrence) -> str:
    return one_line(one.title, _TITLE) + (" (cancelled)" if one.is_cancelled else "")


def _line(one: Occurrence) -> str:
    place = f" ({one_line(one.location, _PLACE)})" if one.location else ""
    repeats = f", {one.repeats}" if one.repeats else ""
    text = f" - {one_line(one.description, _TEXT)}" if one.description.strip() else ""
    uid = f" [{one_line(one.uid, _ID)}]" if one.uid else ""
    return f"{span(one.start, one.end)}: {_title(one)}{place}{repeats}{text}{uid}"
