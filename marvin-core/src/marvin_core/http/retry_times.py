"""When a service can be asked again, according to headers, dates and sentences: in seconds from now."""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST = 366 * 24 * 3600.0
"""A longer time is a mistake."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WORDS = {"sec": "s", "min": "m", "hou": "h"}
_EPOCH = 1_000_000_000.0
"""Larger numbers are times, not durations: in seconds or, if a thousand times larger, in milliseconds."""
_LIMITS = ("", "-requests", "-tokens")


def seconds(value: str) -> float | None:
    """A number of seconds; None if it is not a number, negative, or longer than a year."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if 0 <= found <= _LONGEST else None


def after_headers(headers: Mapping[str, str], carried: Mapping[str, str]) -> float | None:
    """The time in the headers of an answer, or in those that a gateway passed on inside its error."""
    for given in (headers, carried):
        milliseconds = seconds(given.get("retry-after-ms", ""))
        if milliseconds is not None:
            return milliseconds / 1000
        value = given.get("retry-after", "").strip()
        found = seconds(value)
        if found is None and value:
            found = _until(value)
        if found is None:
            found = _reset(given)
        if found is not None:
            return found
    return None


def after_text(message: str) -> float | None:
    """The seconds in "Please try again in 1m2.5s", the only form that some services use."""
    import re

    found = re.search(
        r"(?:try again|retry) (?:in|after) (?:(\d{1,5})h)?(?:(\d{1,5})m(?!s))?(?:(\d{1,9}(?:\.\d{1,12})?) ?(ms|s)?)?",
        message,
        re.IGNORECASE,
    )
    if found is None or not any(found.groups()):
        return None
    hours, minutes, rest, unit = found.groups()
    if rest and unit is None:
        word = message[found.end() :].lstrip()[:3].lower()
        unit = _WORDS.get(word, "")
    total = float(hours or 0) * 3600 + float(minutes or 0) * 60 + float(rest or 0) * _UNITS.get((unit or "").lower(), 0)
    return total if 0 < total <= _LONGEST else None


def _until(date: str) -> float | None:
    """The seconds until an HTTP date; 0 if it is past."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date[:100])
        left = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, left) if left <= _LONGEST else None


def _reset(headers: Mapping[str, str]) -> float | None:
    """The seconds until the used-up limits are restored: `x-ratelimit-reset` and similar headers."""
    used_up = [name for name in _LIMITS if headers.get(f"x-ratelimit-remaining{name}", "").strip() == "0"]
    found = [_duration(headers.get(f"x-ratelimit-reset{name}", "").strip()) for name in used_up]
    return max((value for value in found if value is not None), default=None)


def _duration(value: str) -> float | None:
    """The seconds in `20ms`, `7.66s`, `6m0s`, `90`, or until a time given as a number."""
    number = _plain_number(value)
    if number is not None:
        if number < _EPOCH:
            return seconds(value)
        import time

        left = number / (1000 if number >= _EPOCH * 1000 else 1) - time.time()
        return max(0.0, left) if left <= _LONGEST else None
    import re

    parts = re.findall(r"(\d{1,9}(?:\.\d{1,12})?)(ms|s|m|h|d)", value[:40])
    if not parts or "".join(map("".join, parts)) != value:
        return None
    total = sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    return total if total <= _LONGEST else None


def _plain_number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
