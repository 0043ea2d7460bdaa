"""What happens in a span of days: recurrences, time zones and exceptions of all events, in the zone of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from marvin_core import Record

from .text import CalendarText, EventText
from .times import as_time

_SECONDS = 20.0
"""How long series of events are looked at; a rule that never fits takes its library seconds."""
_A_DAY = 24
"""How often a series may happen in a day; one that is more frequent is not written out."""
_OFTEN = {"MINUTELY", "SECONDLY"}
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
    for events in _groups(list(text.events()), first, last):
        found.look(events)
    found.occurrences.sort(key=lambda one: (as_time(one.start), not one.is_all_day, one.title))
    return Agenda(occurrences=found.occurrences, left_out=found.left_out)


def _groups(events: Sequence[EventText], first: str, last: str) -> list[list[EventText]]:
    """The events of some days that belong together: those that happen once, and each series with all that is of it."""
    touching = [event for event in events if event.may_touch(first, last)]
    recurring = {event.uid for event in touching if event.is_recurring}
    series: dict[str, list[EventText]] = {}
    for event in events:
        if event.uid in recurring:
            series.setdefault(event.uid, []).append(event)
    once = [event for event in touching if event.uid not in recurring]
    return [once, *series.values()] if once else [*series.values()]


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
            self.occurrences += self._of(events)
        except Exception as error:  # the libraries raise whatever the values in a file make them raise
            if len(events) == 1 or events[0].uid == events[-1].uid:
                self.left_out.append(f"{name}: {error}")
                return
            half = len(events) // 2
            self.look(events[:half])
            self.look(events[half:])

    def _of(self, events: Sequence[EventText]) -> list[Occurrence]:
        import recurring_ical_events  # type: ignore[import-untyped]
        from icalendar import Calendar

        calendar = Calendar.from_ical(self._text.only(events))
        found = calendar.walk("VEVENT")
        rules = {str(event.get("UID", "")): event["RRULE"] for event in found if "RRULE" in event}
        if any(_times_a_day(rule) > _A_DAY for rules_of_one in rules.values() for rule in _listed(rules_of_one)):
            raise ValueError(f"it happens more than {_A_DAY} times a day")
        told = [_told(event, rules) for event in recurring_ical_events.of(calendar).between(self._start, self._end)]
        return [one for one in told if self._is_in(one)]

    def _is_in(self, one: Occurrence) -> bool:
        begin, end = as_time(one.start), as_time(one.end)
        return begin < self._end and (end > self._start or begin == end == self._start)


def _told(event: Any, rules: dict[str, Any]) -> Occurrence:
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
        repeats=_rule(rules[uid]) if uid in rules else "",
        is_cancelled=str(event.get("STATUS", "")).upper() == "CANCELLED",
    )


def _listed(rules: Any) -> list[Any]:
    """The rules of an event, of which there may be several."""
    return list(rules) if isinstance(rules, list) else [rules]


def _times_a_day(rule: Any) -> float:
    """How often a rule has something happen on a day at most."""
    frequency = str(rule.get("FREQ", [""])[0]).upper()
    if frequency in _OFTEN:
        return float("inf")
    times = 24 if frequency == "HOURLY" else len(rule.get("BYHOUR", [0]))
    return float(times * len(rule.get("BYMINUTE", [0])) * len(rule.get("BYSECOND", [0])))


_EVERY = {
    "HOURLY": ("hourly", "hours"),
    "DAILY": ("daily", "days"),
    "WEEKLY": ("weekly", "weeks"),
    "MONTHLY": ("monthly", "months"),
    "YEARLY": ("yearly", "years"),
}


def _rule(rule: Any) -> str:
    """A rule in words, such as `every 2 weeks on MO, WE until 2026-12-31`."""
    rule = _listed(rule)[0]
    once, many = _EVERY.get(str(rule.get("FREQ", [""])[0]).upper(), ("by a rule", "times"))
    interval = int(rule.get("INTERVAL", [1])[0])
    said = once if interval == 1 else f"every {interval} {many}"
    if rule.get("BYDAY"):
        said += f" on {', '.join(map(str, rule['BYDAY'][:7]))}"
    if rule.get("COUNT"):
        said += f", {rule['COUNT'][0]} times"
    if rule.get("UNTIL"):
        said += f" until {rule['UNTIL'][0]:%Y-%m-%d}"
    return said
