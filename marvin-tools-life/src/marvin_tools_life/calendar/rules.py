"""Rules of series: which of them are followed, and what they say in words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from .times import as_time

_A_DAY = 24
"""How often a series may happen in a day; one that is more frequent is not written out."""
_STEPS = 500_000
"""How many steps a library may take from the beginning of a series to the days that are asked for; some seconds."""
_OFTEN = {"MINUTELY", "SECONDLY"}
_DAYS = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 28, "YEARLY": 365}
_MARGIN = timedelta(days=2)
"""More than the difference of any two time zones."""
_EVERY = {
    "HOURLY": ("hourly", "hours"),
    "DAILY": ("daily", "days"),
    "WEEKLY": ("weekly", "weeks"),
    "MONTHLY": ("monthly", "months"),
    "YEARLY": ("yearly", "years"),
}


def rules_of(event: Any) -> list[Any]:
    """The rules of an event, of which there may be several."""
    rules = event.get("RRULE", [])
    return list(rules) if isinstance(rules, list) else [rules]


def bound(event: Any, end: datetime) -> None:
    """End the rules of an event behind what is asked for: one that never fits would be tried until the year 9999.

    Raises:
        ValueError: a rule cannot be followed, or not in a time that people wait; the text says why.
    """
    start = event["DTSTART"].dt
    for rule in rules_of(event):
        _check(rule, start, end)
        if "COUNT" not in rule and ("UNTIL" not in rule or as_time(rule["UNTIL"][0]) > end + _MARGIN):
            rule["UNTIL"] = [_like(start, end + _MARGIN)]


def in_words(rule: Any) -> str:
    """A rule in words, such as `every 2 weeks on MO, WE until 2026-12-31`."""
    once, many = _EVERY.get(_frequency(rule), ("by a rule", "times"))
    interval = int(rule.get("INTERVAL", [1])[0])
    said = once if interval == 1 else f"every {interval} {many}"
    if rule.get("BYDAY"):
        said += f" on {', '.join(map(str, rule['BYDAY'][:7]))}"
    if rule.get("COUNT"):
        said += f", {rule['COUNT'][0]} times"
    if rule.get("UNTIL"):
        said += f" until {rule['UNTIL'][0]:%Y-%m-%d}"
    return said


def _check(rule: Any, start: date | datetime, end: datetime) -> None:
    interval = int(rule.get("INTERVAL", [1])[0])
    if interval < 1:
        raise ValueError(f"its rule has the interval {interval}")
    frequency = _frequency(rule)
    if frequency in _OFTEN or _times_a_day(rule) > _A_DAY:
        raise ValueError(f"it happens more than {_A_DAY} times a day")
    last = min([end, *map(as_time, rule.get("UNTIL", [])[:1])])
    days = max(0, (last - as_time(start)).days)
    steps = days * 24 if frequency == "HOURLY" else days * _times_a_day(rule) / _DAYS.get(frequency, 1)
    if steps / interval > _STEPS:
        raise ValueError(f"it happens too often since {start:%Y}")


def _frequency(rule: Any) -> str:
    return str(rule.get("FREQ", [""])[0]).upper()


def _times_a_day(rule: Any) -> int:
    """How often a rule has something happen on a day at most."""
    times = 24 if _frequency(rule) == "HOURLY" else len(rule.get("BYHOUR", [0]))
    return times * len(rule.get("BYMINUTE", [0])) * len(rule.get("BYSECOND", [0]))


def _like(start: date | datetime, end: datetime) -> date | datetime:
    """An end of the kind that a beginning asks for (RFC 5545, section 3.3.10)."""
    if not isinstance(start, datetime):
        return end.date()
    return end.astimezone(UTC) if start.tzinfo else end.replace(tzinfo=None)
