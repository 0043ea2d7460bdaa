"""What happens in a span of days: recurrences, time zones and exceptions of all events, in the zone of this machine."""

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
"""How long series of events are looked at."""
_PARSING = threading.Lock()
"""The library remembers time zones of files by their names, for the whole process: it begins anew for each file."""
_MARGIN = timedelta(days=2)
"""More than the difference of any two time zones."""


class Occurrence(Record):
    """An event at one of its times, in the zone of this machine; `start` and `end` are days for whole days."""

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
    """What happens in a span of days, in its order. `left_out` says what is not in it, and why."""

    occurrences: Sequence[Occurrence]
    left_out: Sequence[str] = ()


def agenda(text: CalendarText, start: datetime, end: datetime) -> Agenda:
    """What happens between two times, the last of which is not in. Blocks: call it in a thread."""
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
    """The events of some days that belong together: those that happen once, and each series with all that is of it.

    The library takes events of one id for one event, of which the newest counts. Others that happen to have the same
    id, or an empty one, are in groups of their own.
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
        seen[event.uid] += event.has_id  # the library tells apart those without one
    return [*rounds, *(group for one in series.values() for group in _one_each(one))]


def newest(events: Iterable[EventText]) -> list[EventText]:
    """The events without those of which there is a later version: one of the same id with a higher number."""
    found = list(events)
    highest: dict[str, int] = {}
    for event in found:
        highest[event.uid] = max(highest.get(event.uid, 0), event.sequence)
    return [event for event in found if not event.uid or event.sequence == highest[event.uid]]


def _one_each(series: Sequence[EventText]) -> list[list[EventText]]:
    """The events of one id as series, each with one event that the others are times of."""
    heads = newest(event for event in series if not event.is_one_time)
    times = [event for event in series if event.is_one_time]
    return [[*heads[:1], *times], *([head] for head in heads[1:])]


class _Found:
    """Collects what happens between two times."""

    def __init__(self, text: CalendarText, start: datetime, end: datetime) -> None:
        self._text = text
        self._start = start
        self._end = end
        self._stop = time.monotonic() + _SECONDS
        self.occurrences: list[Occurrence] = []
        self.left_out: list[str] = []

    def look(self, events: Sequence[EventText]) -> None:
        """Add when these events happen. One that cannot be understood takes none of the others with it."""
        name = repr(events[0].title)
        if time.monotonic() > self._stop:
            self.left_out.append(f"{name}: looking through all took too long")
            return
        try:
            calendar = parsed(self._text.only(events))
        except Exception as error:  # the library raises whatever the values in a file make it raise
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
        """When events of a calendar of the library happen. `words` are those of their rules, by their ids."""
        import recurring_ical_events  # type: ignore[import-untyped]

        part = calendar.copy()  # its own values, and nothing that is in it
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
    """Have names of time zones mean what the file says that is parsed in the block, and no other one."""
    from icalendar.timezone import tzp

    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the library guesses; nobody could do anything about it here
        tzp.use_default()
        yield


def parsed(data: bytes) -> Any:
    """A calendar as the library has it. Raises whatever the values in it make the library raise."""
    from icalendar import Calendar

    return Calendar.from_ical(data)


def _words(event: Any) -> str:
    """What the first rule of an event says; nothing where that cannot be told, or by the id whose it is."""
    try:
        return in_words(rules_of(event)[0]) if event.get("UID") else ""
    except Exception:  # values of any kind; whoever follows the rule says what is wrong with it
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
