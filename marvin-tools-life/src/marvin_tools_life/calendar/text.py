"""The text of an iCalendar file, edited event by event: everything else stays unchanged, byte by byte.

Libraries rewrite a calendar as a whole, with other folds, escapes and orders; so events are found, inserted and
removed as text here. The format: RFC 5545, section 3.1 for lines and folds, 3.4 and 3.6 for components.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_MARK = re.compile(rb"^(?:\xef\xbb\xbf)?(BEGIN|END):([A-Z0-9-]+)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE | re.IGNORECASE)
_FOLD = re.compile(rb"\r?\n[ \t]")
_FACT = re.compile(
    rb"^(UID|SUMMARY|DTSTART|DTEND|DURATION|RRULE|RDATE|RECURRENCE-ID|SEQUENCE)((?:;[^:\r\n]*)?):([^\r\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_ZONE_RULE = re.compile(rb"^(?:RRULE|EXRULE)(?:;[^:\r\n]*)?:([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_ZONE_NAME = re.compile(rb"^TZID(?:;[^:\r\n]*)?:([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_OFTEN = re.compile(rb"BYHOUR=|BYMINUTE=|BYSECOND=|INTERVAL=0*(?!\d)")
_DAY = re.compile(r"\d{8}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NEVER = "99999999"
_SIMPLE = {"FREQ", "INTERVAL", "COUNT", "WKST"}
_LONG = 366
"""Days that one occurrence of a series may last, and more."""
_DIGITS = 5
PRODUCT = "-//Marvin//marvin-tools-life//EN"


class CalendarError(ValueError):
    """A file is not a complete calendar; the text says why."""


class Span(NamedTuple):
    """The place of a component: from `start` up to, but not including, `end`."""

    start: int
    end: int


class EventText:
    """An event as it is written in the file, and the properties that are read without a parser."""

    def __init__(self, data: bytes, span: Span) -> None:
        self.span = span
        self.data = data[span.start : span.end]

    @cached_property
    def _facts(self) -> Mapping[str, str]:
        facts: dict[str, str] = {}
        for name, _, value in _FACT.findall(_FOLD.sub(b"", _own_lines(self.data))):
            facts.setdefault(name.decode("ascii").upper(), value.decode("utf-8", "replace"))
        return facts

    @property
    def uid(self) -> str:
        """Its id; empty if it has none."""
        return self._facts.get("UID", "").strip()

    @property
    def title(self) -> str:
        """Its title, unescaped."""
        return _ESCAPED.sub(lambda found: " " if found[1] in "nN" else found[1], self._facts.get("SUMMARY", ""))

    @property
    def day(self) -> str:
        """The day of its start, as written; for a series that of the first occurrence."""
        found = _DAY.search(self._facts.get("DTSTART", ""))
        return f"{found[0][:4]}-{found[0][4:6]}-{found[0][6:]}" if found else "no day"

    @property
    def begins_in_utc(self) -> bool:
        """Whether its start is in UTC."""
        return self._facts.get("DTSTART", "").strip().upper().endswith("Z")

    @property
    def is_recurring(self) -> bool:
        """Whether it is a series or a modified occurrence."""
        return not {"RRULE", "RDATE", "RECURRENCE-ID"}.isdisjoint(self._facts)

    @property
    def is_one_time(self) -> bool:
        """Whether it is a modified occurrence of a series."""
        return "RECURRENCE-ID" in self._facts

    @property
    def has_id(self) -> bool:
        """Whether it has an id, possibly an empty one."""
        return "UID" in self._facts

    @property
    def has_beginning(self) -> bool:
        """Whether it has a start."""
        return "DTSTART" in self._facts

    @property
    def sequence(self) -> int:
        """Its sequence number; 0 if there is none."""
        number = self._facts.get("SEQUENCE", "").strip()
        return int(number) if number.isdecimal() and len(number) <= _DIGITS * 2 else 0

    def may_touch(self, first: str, last: str) -> bool:
        """Whether it may occur between two days, both included, as YYYYMMDD.

        The days are extended for time zones. If in doubt, the answer is yes.
        """
        start = _DAY.search(self._facts.get("DTSTART", ""))
        if start is None or not {"RDATE", "RECURRENCE-ID"}.isdisjoint(self._facts):
            return True
        if "RRULE" in self._facts:
            return start[0] <= last and _last_day(start[0], self._facts["RRULE"]) >= first
        end = _DAY.search(self._facts.get("DTEND", ""))
        until = end[0] if end else (_NEVER if "DURATION" in self._facts else start[0])
        return start[0] <= last and until >= first


def _last_day(start: str, rule: str) -> str:
    """The last day on which an occurrence can start, or a later one, as YYYYMMDD."""
    parts = dict(part.split("=", 1) for part in rule.strip().upper().split(";") if "=" in part)
    until = _DAY.match(parts.get("UNTIL", ""))
    if until:
        return _later(until[0], _LONG)
    days = {"DAILY": 1, "WEEKLY": 7}.get(parts.get("FREQ", ""), 0)
    # Other parts of the rule may leave out days and weeks, so that this many occurrences take longer.
    if not days or not parts.keys() <= _SIMPLE or not parts.get("COUNT", "").isdecimal():
        return _NEVER
    interval = parts.get("INTERVAL", "1")
    if not interval.isdecimal() or len(interval) > _DIGITS or len(parts["COUNT"]) > _DIGITS:
        return _NEVER
    return _later(start, days * (int(parts["COUNT"]) + 1) * max(1, int(interval)) + _LONG)


def _later(day: str, days: int) -> str:
    """The day this many days after another one; the last possible day if that overflows."""
    try:
        return f"{date(int(day[:4]), int(day[4:6]), int(day[6:])) + timedelta(days=days):%Y%m%d}"
    except (ValueError, OverflowError):
        return _NEVER


class CalendarText:
    """An iCalendar file.

    Args:
        data: the whole file; empty for a file that does not exist yet.

    Raises:
        CalendarError: it is not a complete calendar.
    """

    def __init__(self, data: bytes) -> None:
        if not data.strip():
            data = new_calendar()
        self.data = data
        self._end = -1
        self._events: list[Span] = []
        self._zones: list[Span] = []
        self._header = 0
        self._find()

    def events(self) -> Iterator[EventText]:
        """The events in order."""
        return (EventText(self.data, span) for span in self._events)

    @property
    def line_end(self) -> bytes:
        """The line end of the first line."""
        first = self.data.find(b"\n")
        return b"\r\n" if first < 1 or self.data[first - 1 : first] == b"\r" else b"\n"

    def with_event(self, event: bytes) -> bytes:
        """The file with an event added after the last one. `event` has CRLF line ends."""
        return b"".join((self.data[: self._end], event.replace(b"\r\n", self.line_end), self.data[self._end :]))

    def without(self, spans: Sequence[Span]) -> bytes:
        """The file without some events."""
        kept, at = [], 0
        for span in sorted(spans):
            kept.append(self.data[at : span.start])
            at = span.end
        return b"".join((*kept, self.data[at:]))

    def only(self, events: Sequence[EventText]) -> bytes:
        """A calendar with some of the events: its own properties and time zones, and nothing else."""
        zones = (zone for zone in self._zone_texts if _changes_at_times(zone))
        head = self.data[: self._header].removeprefix(_BOM)
        whole = b"".join((head, *zones, *(event.data for event in events), b"END:VCALENDAR\r\n"))
        # Some programs fold inside a character, which is invalid until the line is unfolded.
        return _FOLD.sub(b"", whole)

    @cached_property
    def refused_zones(self) -> Sequence[str]:
        """The names of time zones with clock changes at every hour or second: no library could expand them."""
        refused = [_ZONE_NAME.search(zone) for zone in self._zone_texts if not _changes_at_times(zone)]
        return [found[1].decode("utf-8", "replace") for found in refused if found]

    @cached_property
    def _zone_texts(self) -> list[bytes]:
        return [_FOLD.sub(b"", self.data[span.start : span.end]) for span in self._zones]

    def _find(self) -> None:
        """Find the components. Each search starts after the component that the one before found."""
        stack: list[tuple[bytes, int]] = []
        calendars = 0
        for mark in _MARK.finditer(self.data):
            kind, name = mark[1].upper(), mark[2].upper()
            if kind == b"BEGIN":
                if name == b"VCALENDAR":
                    calendars += 1
                elif calendars == 1 and not self._header:
                    self._header = mark.start()
                stack.append((name, mark.start()))
                continue
            if not stack or stack[-1][0] != name:
                raise CalendarError(f"END:{name.decode()} has no matching BEGIN")
            _, start = stack.pop()
            self._note(name, Span(start, mark.end()), depth=len(stack), end=mark.start())
        if stack:
            raise CalendarError(f"{stack[-1][0].decode()} has no end, so it may be cut off")
        if self._end < 0:
            raise CalendarError("it contains no VCALENDAR")

    def _note(self, name: bytes, span: Span, *, depth: int, end: int) -> None:
        if name == b"VCALENDAR":
            self._end = end
            self._header = self._header or end
        elif name == b"VEVENT" and depth == 1:
            self._events.append(span)
        elif name == b"VTIMEZONE" and depth == 1:
            self._zones.append(span)


def _changes_at_times(zone: bytes) -> bool:
    """Whether the clock changes of a time zone follow yearly rules, as those of all real ones do."""
    rules = [rule.upper() for rule in _ZONE_RULE.findall(zone)]
    return all(b"FREQ=YEARLY" in rule and not _OFTEN.search(rule) for rule in rules)


def new_calendar() -> bytes:
    """A calendar without events."""
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:{PRODUCT}\r\nEND:VCALENDAR\r\n".encode()


def _own_lines(event: bytes) -> bytes:
    """The lines of an event without those of its alarms, which have titles and ids of their own."""
    kept, at, depth = [], 0, 0
    for mark in _MARK.finditer(event):
        if mark[1].upper() == b"BEGIN":
            if depth == 1:
                kept.append(event[at : mark.start()])
            depth += 1
        else:
            depth -= 1
            at = mark.end() if depth == 1 else at
    return b"".join((*kept, event[at:]))
