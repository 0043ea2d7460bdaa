"""Days and times in natural language, of any language. No part of a text is ignored.

The library that parses them takes what it understands and ignores the rest: `tomorrow at 25:00` is tomorrow to it,
and `at 9` a month. So each number in a text has to be found in the result.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from marvin_core import ToolError

_TIMED = frozenset({"time", "part_of_day"})
_CLOCK = re.compile(r"(?<![\d:.+-])(\d{1,3}):(\d{2,3})(?!\d)")
_OCLOCK = re.compile(r"\b(\d{1,2})\s*o['\u2019]?\s?clock\b", re.IGNORECASE)
_BARE_HOUR = re.compile(
    r"(?:\b(?:at|um)\s+|@\s*)([01]?\d|2[0-3])(?=$|\s+(?:on|today|tomorrow|next|this|mon|tue|wed|thu|fri|sat|sun))",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_SLASHED = re.compile(r"(?<![\d/-])(\d{1,2})(?:/(\d{1,2})(?:/\d{2,4})?|-(\d{1,2})-\d{2,4})(?![\d/-])")
_DATE = re.compile(r"\b\d{4}-\d{1,2}-\d{1,2}\b|" + _SLASHED.pattern)
"""A date in digits."""
_SPAN = re.compile(
    r"(?<![\d:T-])\d{1,2}(?::\d{2}|\s*[ap]m)?\s*[-\u2013]\s*\d{1,2}(?::\d{2}|\s*[ap]m)(?![\d:])", re.IGNORECASE
)
"""Two times with a dash between them, which the library takes for a time zone or a month."""
_OFFSET = re.compile(r"[+-]\d{2}:?\d{2}\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


_OTHER_MONTH = timedelta(days=40)
_ODD = 987_654
"""Microseconds of the reference time, which show whether a result is relative to it."""


class Spoken(NamedTuple):
    """The meaning of a text: a time, a day, or a number of days from now."""

    moment: datetime
    kind: Literal["time", "day", "span"]


def spoken(text: str, base: datetime) -> Spoken | None:
    """The meaning of a text; None if it is not clear. Blocks, as the library does.

    Args:
        base: the reference for relative times, in local time.

    Raises:
        ToolError: it may mean two days.
    """
    for one, slashed, dashed in _SLASHED.findall(text):
        other = slashed or dashed
        if int(one) != int(other) and int(one) <= 12 and int(other) <= 12:
            raise ToolError(f"{text!r} may be in month {int(one)} or month {int(other)}. Write it as 2026-11-24.")
    if any(int(hour) > 23 or int(minute) > 59 for hour, minute in _CLOCK.findall(text)):
        return None
    text = _BARE_HOUR.sub(_with_minutes, _OCLOCK.sub(r"\1:00", text))
    text = _DOTTED.sub(lambda date: f"{date[3]}-{int(date[2]):02}-{int(date[1]):02}", text)
    found = _parsed(text, base.replace(microsecond=_ODD))
    if found is None:
        return None
    is_counted = found[0].microsecond == _ODD
    moment, period = found[0].replace(microsecond=base.microsecond if is_counted else 0), found[1]
    date = _DATE.search(text)
    rest = text if date is None else text[: date.start()] + text[date.end() :]
    numbers = {float(number) for number in _NUMBER.findall(_OFFSET.sub("", rest))}
    counted = _counted(base, moment) if is_counted else _days_between(base, moment)
    if is_counted and period not in _TIMED and numbers <= counted and (numbers or text.lower().startswith("in ")):
        return Spoken(moment, "span")
    numbers -= _clock(moment) | counted if period in _TIMED else set()
    if period not in (*_TIMED, "day") or not numbers <= ({moment.day, moment.year} if date is None else set()):
        return None
    if moment.day in numbers and not _names_month(text, base, moment):
        return None
    return Spoken(moment, "time" if period in _TIMED else "day")


def refuse_span(text: str) -> None:
    """Refuse two times with a dash, the second of which would be taken for a time zone.

    Raises:
        ToolError: the text is such a span.
    """
    if _SPAN.search(text):
        raise ToolError(
            f"{text!r} contains two times. Give only the start, such as 10:00; with a time zone: "
            "2026-11-24T10:00-05:00."
        )


def _names_month(text: str, base: datetime, moment: datetime) -> bool:
    """Whether a text names its month: the result then has the same month for any reference time."""
    other = _parsed(text, base + _OTHER_MONTH)
    return other is not None and (other[0].month, other[0].day) == (moment.month, moment.day)


def _with_minutes(hour: re.Match[str]) -> str:
    return f"{hour[0].replace('@', 'at ')}:00"


def _parsed(text: str, base: datetime) -> tuple[datetime, str] | None:
    from dateparser.date import DateDataParser  # importing it takes a third of a second

    settings: dict[str, Any] = {
        "RETURN_TIME_AS_PERIOD": True,
        "PREFER_DATES_FROM": "future",
        "RELATIVE_BASE": base,
    }
    for languages in (["en"], None):  # English first: loading the words of all languages takes seconds
        try:
            found = DateDataParser(languages=languages, settings=settings).get_date_data(text)
        except (ValueError, OverflowError, RecursionError):
            return None
        if found.date_obj is not None:
            return found.date_obj, str(found.period)
    return None


def _clock(moment: datetime) -> set[float]:
    """The numbers in which a time of day may be written."""
    return {moment.hour, (moment.hour - 1) % 12 + 1, moment.minute, moment.second}


def _days_between(base: datetime, moment: datetime) -> set[float]:
    """The numbers in which a count of days may be written if there is a time of day too, as in `in 2 days at 9am`."""
    days = abs((moment.date() - base.date()).days)
    return {days, days / 7}


def _counted(base: datetime, moment: datetime) -> set[float]:
    """The numbers in which the span between two times may be written."""
    seconds = abs((moment.replace(tzinfo=None) - base).total_seconds())
    months = abs((moment.year - base.year) * 12 + moment.month - base.month)
    minutes, hours, days = seconds // 60, seconds // 3_600, seconds // 86_400
    whole = {seconds, minutes, hours, days, days // 7, months, months // 12}
    parts = {seconds % 60, minutes % 60, hours % 24, days % 7, months % 12}
    return whole | parts | {round(seconds / unit, 3) for unit in (60, 3_600, 86_400)}
