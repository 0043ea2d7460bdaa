"""Times as people write them: `14:30`, `tomorrow 9am`, `30m`, `2027-03-01 09:00`."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from marvin_core import ToolError

from ..spoken_times import refuse_span, spoken

_LONGEST = 100
_LATEST = 100 * 366 * 86_400
_FORMS = "Give a time such as '14:30', 'tomorrow 9am', '2027-03-01 09:00', '30m' or '1h30m'."
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?(h|m|s)(?:(?<=h)(?:rs?|ours?)|(?<=m)in(?:ute)?s?|(?<=s)ec(?:ond)?s?)?(?![a-z])"
)
_ONLY_A_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


def moment(text: str, now: float, zone: tzinfo | None = None) -> float:
    """The time in seconds since the epoch; for a time of day its next occurrence. Blocks: call it in a thread.

    Args:
        now: the present, in seconds since the epoch.
        zone: the time zone of times without one; without it that of this machine.

    Raises:
        ToolError: it is not a time, or is in the past.
    """
    written = " ".join(text.split())
    if not written or len(written) > _LONGEST or written.isdigit():
        raise ToolError(f"{written[:_LONGEST]!r} is not a time. {_FORMS}")
    if _ONLY_A_DAY.fullmatch(written):
        raise ToolError(_no_time_of_day(written))
    refuse_span(written)
    span = _span(written.lower())
    here = datetime.fromtimestamp(now, zone)
    due = now + span if span is not None else _seconds(_exact(written) or _parsed(written, here), zone)
    if due is None:
        raise ToolError(f"{written!r} is not a time. {_FORMS}")
    if due <= now:
        raise ToolError(f"{written!r} is in the past: it is {here:%Y-%m-%d %H:%M} now. Give a later time.")
    if due - now > _LATEST:
        raise ToolError(f"{written!r} is too far away. Give a time in the next hundred years.")
    return due


def _span(text: str) -> float | None:
    """Hours, minutes and seconds from now, in seconds of elapsed time, whatever changes of the clock."""
    rest = _SPAN.sub("", text.removeprefix("in ")).replace(" and ", " ").strip(" ,")
    found = _SPAN.findall(text)
    if not found or rest:
        return None
    return sum(float(number) * _SECONDS["".join(units)] for number, *units in found)


def _exact(text: str) -> datetime | None:
    """A time in ISO 8601, which needs no guessing."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _parsed(text: str, here: datetime) -> datetime | None:
    found = spoken(text, here.replace(tzinfo=None))
    if found is not None and found.kind == "day" and found.moment.date() >= here.date():
        raise ToolError(_no_time_of_day(text))
    return found.moment if found is not None else None


def _no_time_of_day(text: str) -> str:
    return f"{text!r} is a day without a time. Add a time, as in '{text} 09:00'."


def _seconds(found: datetime | None, zone: tzinfo | None) -> float | None:
    """A time in seconds since the epoch; without a time zone it is in this machine's, with the rules of that day."""
    if found is None:
        return None
    try:
        return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
    except (OverflowError, ValueError, OSError):
        return float("inf")
