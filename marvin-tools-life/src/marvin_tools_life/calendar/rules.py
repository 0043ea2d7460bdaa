"""Recurrence rules: which are supported, and their descriptions."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from .times import as_time

_A_DAY = 24
"""Occurrences a day; more frequent series are not expanded."""
_STEPS = 500_000
"""Steps that a library may take from the start of a series to the requested days; they take some seconds."""
_OFTEN = {"MINUTELY", "SECONDLY"}
_DAYS = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 28, "YEARLY": 365}
_OF_DAYS = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")
"""Parts of a rule that exclude days, with numbers that may match none."""
_EVERY = {
    "HOURLY": ("hourly", "hours"),
    "DAILY": ("daily", "days"),
    "WEEKLY": ("weekly", "weeks"),
    "MONTHLY": ("monthly", "months"),
    "YEARLY": ("yearly", "years"),
}


def rules_of(event: Any) -> list[Any]:
    """The rules of an event; there may be several."""
    rules = event.get("RRULE", [])
    return list(rules) if isinstance(rules, list) else [rules]


def check(event: Any, end: datetime) -> None:
    """Refuse rules of an event that would keep a library busy for minutes or for ever.

    Raises:
        ValueError: the text says why.
    """
    for rule in rules_of(event):
        _check(rule, event["DTSTART"].dt, end)


def in_words(rule: Any) -> str:
    """A description of a rule, such as `every 2 weeks on MO, WE until 2026-12-31`."""
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
    frequency, times = _frequency(rule), _times_a_day(rule)
    if frequency in _OFTEN or times > _A_DAY:
        raise ValueError(f"it happens more than {_A_DAY} times a day")
    last = min([end, *map(as_time, rule.get("UNTIL", [])[:1])])
    days = max(0, (last - as_time(start)).days)
    steps = days * 24 if frequency == "HOURLY" else days * times / _DAYS.get(frequency, 1)
    if steps / interval > _STEPS:
        raise ValueError(f"it happens too often since {start:%Y}")
    if frequency != "YEARLY" and not _fits(rule, start):
        raise ValueError("its rule matches no day")


def _fits(rule: Any, start: date | datetime) -> bool:
    """Whether a rule matches any day; a library would search for one, day by day, until the year 9999."""
    if _frequency(rule) in ("DAILY", "HOURLY") and "BYSETPOS" in rule:
        return min(abs(int(place)) for place in rule["BYSETPOS"]) <= _times_a_day(rule)
    days = {name.lower(): [int(str(value)) for value in rule[name]] for name in _OF_DAYS if name in rule}
    if not days:
        return True
    from dateutil.rrule import YEARLY, rrule  # type: ignore[import-untyped]

    begin = datetime(start.year, start.month, start.day)  # noqa: DTZ001  # any time
    # There are so few years that checking all of them takes less than a second.
    return next(iter(rrule(YEARLY, dtstart=begin, **days)), None) is not None


def _frequency(rule: Any) -> str:
    return str(rule.get("FREQ", [""])[0]).upper()


def _times_a_day(rule: Any) -> int:
    """Occurrences of a rule in one day at most."""
    times = 24 if _frequency(rule) == "HOURLY" else len(rule.get("BYHOUR", [0]))
    return times * len(rule.get("BYMINUTE", [0])) * len(rule.get("BYSECOND", [0]))
