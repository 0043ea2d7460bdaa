"""The occurrences in a span of days: recurrences, time zones and exceptions of all events, in this machine's time
zone."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from marvin_core import Record

from .rules import check, in_words, rules_of
from .text import CalendarText, EventText
from .times import as_time

_SECONDS = 20.0
"""Seconds that expanding series may take."""
_PARSING = threading.Lock()
"""The library caches time zones of files by name for the whole process: the cache is reset for each file."""
_MARGIN = timedelta(days=2)
"""More than the difference of any two time zones."""


class Occurrence(Record):
    """An occurrence of an event in this machine's time zone; `start` and `end` are dates for all-day events."""

    start: date | datetime
    end: date | datetime
    title: str
    uid: str
    location: str = ""
    description: str = ""
    repeats: str = ""
    is_cancelled: bool = False

    @property
    def is_all_day(self) -> bool:
        """Whether it lasts whole days."""
        return not isinstance(self.start, datetime)


class Agenda(Record):
    """The occurrences in a span of days, in order. `left_out` says what is missing, and why."""

    occurrences: Sequence[Occurrence]
    left_out: Sequence[str] = ()


def agenda(text: CalendarText, start: datetime, end: datetime) -> Agenda:
    """The occurrences between two times, the end excluded. Blocks: call it in a thread."""
    first, last = ((moment + side).strftime("%Y%m%d") for moment, side in ((start, -_MARGIN), (end, _MARGIN)))
    found = _Found(text, start, end)
    found.left_out += [f"the time zone {name!r} has rules that are not supported" for name in text.refused_zones]
    known = list(text.events())
    found.left_out += [f"{event.title!r}: it has no beginning" for event in known if not event.has_beginning]
    with own_zones():
        for events in _groups([event for event in known if event.has_beginning], first, last):
            found.look(events)
    found.occurrences.sort(key=lambda one: (as_time(one.start), not one.is_all_day, one.title))
    return Agenda(occurrences=found.occurrences, left_out=found.left_out)


def _groups(events: Sequence[EventText], first: str, last: str) -> list[list[EventText]]:
    """The events of some days in groups: each single event, and each series with its modified occurrences.

    The library takes events with one id for versions of one event. Unrelated events with the same id, or with
    an empty one, are in groups of their own.
    """
    touching = [event for event in events if event.may_touch(first, last)]
    recurring = {event.uid for event in touching if event.is_recurring and event.uid}
    series: dict[str, list[EventText]] = {}
    for event in events:
        if event.uid in recurring:
            series.setdefault(event.uid, []).append(event)
    rounds: list[list[EventText]] = []
    seen: Counter[str] = Counter()
    for event in newest(event for event in events if event.uid not in recurring):
        if not event.may_touch(first, last):
            continue
        if seen[event.uid] >= len(rounds):
            rounds.append([])
        rounds[seen[event.uid]].append(event)
        seen[event.uid] += event.has_id  # the library keeps those without an id apart
    return [*rounds, *(group for one in series.values() for group in _one_each(one))]


def newest(events: Iterable[EventText]) -> list[EventText]:
    """The events without outdated versions: those with the same id and a lower sequence number."""
    found = list(events)
    highest: dict[str, int] = {}
    for event in found:
        highest[event.uid] = max(highest.get(event.uid, 0), event.sequence)
    return [event for event in found if not event.uid or event.sequence == highest[event.uid]]


def _one_each(series: Sequence[EventText]) -> list[list[EventText]]:
    """The events of one id as series, each with its main event and the modified occurrences."""
    heads = newest(event for event in series if not event.is_one_time)
    times = [event for event in series if event.is_one_time]
    return [[*heads[:1], *times], *([head] for head in heads[1:])]


class _Found:
    """Collects the occurrences between two times."""

    def __init__(self, text: CalendarText, start: datetime, end: datetime) -> None:
        self._text = text
        self._start = start
        self._end = end
        self._stop = time.monotonic() + _SECONDS
        self.occurrences: list[Occurrence] = []
        self.left_out: list[str] = []

    def look(self, events: Sequence[EventText]) -> None:
        """Add the occurrences of these events. An invalid event does not affect the others."""
        name = repr(events[0].title)
        if time.monotonic() > self._stop:
            self.left_out.append(f"{name}: looking through all took too long")
            return
        try:
            calendar = parsed(self._text.only(events))
        except Exception as error:  # the library raises any exception for unexpected values in a file
            if len(events) == 1:
                self.left_out.append(f"{name}: {error}")
                return
            half = len(events) // 2
            self.look(events[:half])
            self.look(events[half:])
            return
        found = calendar.walk("VEVENT")
        words = {str(event.get("UID", "")): _words(event) for event in found if "RRULE" in event}
        try:
            self.occurrences += self._of(calendar, found, words)
        except Exception as error:
            is_series = len(events) == 1 or (events[0].uid and events[0].uid == events[-1].uid)
            if is_series:
                self.left_out.append(f"{name}: {error}")
                return
            for event in found:
                self._look_at_one(calendar, event, words)

    def _look_at_one(self, calendar: Any, event: Any, words: Mapping[str, str]) -> None:
        try:
            self.occurrences += self._of(calendar, [event], words)
        except Exception as error:  # as above
            self.left_out.append(f"{str(event.get('SUMMARY', ''))!r}: {error}")

    def _of(self, calendar: Any, events: Sequence[Any], words: Mapping[str, str]) -> list[Occurrence]:
        """Occurrences of a parsed calendar. `words` are descriptions of the recurrence rules, by event id."""
        import recurring_ical_events  # type: ignore[import-untyped]

        part = calendar.copy()  # only its own values, no nested ones
        for event in events:
            check(event, self._end)
            part.add_component(event)
        told = [_told(event, words) for event in recurring_ical_events.of(part).between(self._start, self._end)]
        return [one for one in told if self._is_in(one)]

    def _is_in(self, one: Occurrence) -> bool:
        begin, end = as_time(one.start), as_time(one.end)
        return begin < self._end and (end > self._start or begin == end == self._start)


@contextmanager
def own_zones() -> Iterator[None]:
    """Within the block, resolve time zone names only by the definitions of the file that is parsed."""
    from icalendar.timezone import tzp

    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about guesses of the library, which nobody could act on here
        tzp.use_default()
        yield


def parsed(data: bytes) -> Any:
    """A calendar parsed by the library. Raises any exception that the library raises for its values."""
    from icalendar import Calendar

    return Calendar.from_ical(data)


def _words(event: Any) -> str:
    """The first rule of an event as text, by its id; nothing if it has no readable one."""
    try:
        return in_words(rules_of(event)[0]) if event.get("UID") else ""
    except Exception:  # values of any kind; expanding the rule reports the error
        return ""


def _told(event: Any, rules: Mapping[str, str]) -> Occurrence:
    uid = str(event.get("UID", ""))
    start, end = event.start, event.end
    if isinstance(start, datetime):
        start, end = as_time(start), as_time(end)
    return Occurrence(
        start=start,
        end=end,
        title=str(event.get("SUMMARY", "")) or "(no title)",
        uid=uid,
        location=str(event.get("LOCATION", "")),
        description=str(event.get("DESCRIPTION", "")),
        repeats=rules.get(uid, ""),
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
    )
