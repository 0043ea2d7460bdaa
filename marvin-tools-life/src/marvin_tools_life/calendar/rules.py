"""Rules of series: which of them are followed, and what they say in words."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from .times import as_time

_A_DAY = 24
"""How often a series may happen in a day; one that is more frequent is not written out."""
_STEPS = 500_000
"""How many steps a library may take from the beginning of a series to the days that are asked for; some seconds."""
_OFTEN = {"MINUTELY", "SECONDLY"}
_DAYS = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 28, "YEARLY": 365}
_OF_DAYS = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")
"""What leaves days out, by numbers that may fit none."""
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


def check(event: Any, end: datetime) -> None:
    """Refuse rules of an event that a library would follow for ever, or for minutes, on its way to an end.

    Raises:
        ValueError: the text says why.
    """
    for rule in rules_of(event):
        _check(rule, event["DTSTART"].dt, end)


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
    """Whether there is a day that a rule leaves; it would be looked for, day by day, until the year 9999."""
    if _frequency(rule) in ("DAILY", "HOURLY") and "BYSETPOS" in rule:
        return min(abs(int(place)) for place in rule["BYSETPOS"]) <= _times_a_day(rule)
    days = {name.lower(): [int(str(value)) for value in rule[name]] for name in _OF_DAYS if name in rule}
    if not days:
        return True
    from dateutil.rrule import YEARLY, rrule  # type: ignore[import-untyped]

    begin = datetime(start.year, start.month, start.day)  # noqa: DTZ001  # any time
    # Of years there are so few that all of them are looked through in less than a second.
    return next(iter(rrule(YEARLY, dtstart=begin, **days)), None) is not None


def _frequency(rule: Any) -> str:
    return str(rule.get("FREQ", [""])[0]).upper()


def _times_a_day(rule: Any) -> int:
    """How often a rule has something happen on a day at most."""
    times = 24 if _frequency(rule) == "HOURLY" else len(rule.get("BYHOUR", [0]))
    return times * len(rule.get("BYMINUTE", [0])) * len(rule.get("BYSECOND", [0]))
