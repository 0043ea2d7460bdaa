"""What times of alarms mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_tools_life.alarms.times import moment

# The words of all languages are read once, not once in each worker.
pytestmark = pytest.mark.xdist_group("dates")

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 15, 0, tzinfo=BERLIN)


def meant(text: str, now: datetime = NOW) -> datetime:
    return datetime.fromtimestamp(moment(text, now.timestamp(), BERLIN), BERLIN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16:30", "2026-11-23 16:30"),
        ("14:30", "2026-11-24 14:30"),
        ("9pm", "2026-11-23 21:00"),
        ("tomorrow 9am", "2026-11-24 09:00"),
        ("next monday 8:00", "2026-11-30 08:00"),
        ("2027-03-01 09:00", "2027-03-01 09:00"),
        ("2027-07-01 09:00", "2027-07-01 09:00"),
        ("2027-07-01T09:00:30+00:00", "2027-07-01 11:00:30"),
        ("30m", "2026-11-23 15:30"),
        ("1h30m", "2026-11-23 16:30"),
        ("1h 5m", "2026-11-23 16:05"),
        ("1.5h", "2026-11-23 16:30"),
        ("90 seconds", "2026-11-23 15:01:30"),
        ("in 1 hour and 20 minutes", "2026-11-23 16:20"),
        ("in 2 days", "2026-11-25 15:00"),
        ("2 weeks", "2026-12-07 15:00"),
        ("morgen um 9:15", "2026-11-24 09:15"),
        ("morgen um 9", "2026-11-24 09:00"),
        ("at 9", "2026-11-24 09:00"),
        ("tomorrow at 9", "2026-11-24 09:00"),
        ("9 o'clock", "2026-11-24 09:00"),
        ("noon", "2026-11-24 12:00"),
        ("31.12.2026 10:00", "2026-12-31 10:00"),
        ("31/12/2026 8am", "2026-12-31 08:00"),
        ("12/12/2026 8am", "2026-12-12 08:00"),
        ("dec 1st 9:05 pm", "2026-12-01 21:05"),
        ("2026-11-25 10:00 UTC", "2026-11-25 11:00"),
        ("2 days 3 hours", "2026-11-25 18:00"),
        ("2026-11-25T10:00-05:00", "2026-11-25 16:00"),
        ("2026-11-25 10:00:00-05:00", "2026-11-25 16:00"),
        ("in 2 days at 9am", "2026-11-25 09:00"),
        ("in 2 weeks at 9:30", "2026-12-07 09:30"),
        ("15 january 8am", "2027-01-15 08:00"),
        ("8am on january 8", "2027-01-08 08:00"),
        ("25-12-2026 10:00", "2026-12-25 10:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert meant(text) == datetime.fromisoformat(expected).replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a time"),
        ("5", "is not a time"),
        ("soon", "is not a time"),
        ("x" * 5_000, "is not a time"),
        ("2026-03-01 09:00", "is in the past: it is 2026-11-23 15:00 now"),
        ("2026-02-30 09:00", "is not a time"),
        ("2027-03-01", "is a day without a time"),
        ("tomorrow", "is a day without a time"),
        ("monday", "is a day without a time"),
        ("24 december", "is a day without a time"),
        ("1 december", "is a day without a time"),
        ("next week", "is not a time"),
        ("november 2027", "is not a time"),
        ("2027", "is not a time"),
        ("25:00", "is not a time"),
        ("24:00", "is not a time"),
        ("tomorrow at 25:00", "is not a time"),
        ("tomorrow at 15:61", "is not a time"),
        ("tomorrow 15", "is not a time"),
        ("3pm 99", "is not a time"),
        ("10:00 5", "is not a time"),
        ("9:00 in 5", "is not a time"),
        ("monday 10am 20", "is not a time"),
        ("12 13:00", "is not a time"),
        ("10:00-11:00", "contains two times"),
        ("2027-01-02 10:00-11:00", "contains two times"),
        ("3-4pm", "contains two times"),
        ("10-11-2026 10:00", "may be in month 10 or month 11"),
        ("12/11/2026 10:00", "may be in month 12 or month 11"),
        ("0m", "is in the past"),
        ("999999999h", "too far away"),
        ("9999-12-31 23:59", "too far away"),
        ("((((((((", "is not a time"),
    ],
)
def test_what_is_no_time_is_explained(text: str, says: str) -> None:
    """I10: the error says what to give instead."""
    with pytest.raises(ToolError, match=says) as raised:
        meant(text)
    assert len(str(raised.value)) < 300


def test_a_span_is_counted_across_a_change_of_the_clocks() -> None:
    before = datetime(2027, 3, 28, 1, 30, tzinfo=BERLIN)  # at two, the clocks are set to three
    assert meant("1h", before) == datetime(2027, 3, 28, 3, 30, tzinfo=BERLIN)
    assert meant("9am", before) == datetime(2027, 3, 28, 9, 0, tzinfo=BERLIN)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(1, 99))
def test_spans_add_up(hours: int, minutes: int, seconds: int) -> None:
    expected = NOW.astimezone(UTC) + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    for text in (f"{hours}h{minutes}m{seconds}s", f"in {hours} hours, {minutes} min and {seconds} sec"):
        assert meant(text) == expected


@pytest.mark.slow
@given(st.text(max_size=30))
def test_any_text_is_a_later_time_or_an_error(text: str) -> None:
    try:
        found = moment(text, NOW.timestamp(), BERLIN)
    except ToolError:
        return
    assert found > NOW.timestamp()
