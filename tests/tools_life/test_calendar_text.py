"""The text of calendars: what is found, put in and taken out, and when things happen, against other libraries."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import Calendar, Event

from marvin_tools_life.calendar.reading import agenda
from marvin_tools_life.calendar.text import CalendarError, CalendarText, new_calendar
from marvin_tools_life.calendar.times import as_time, event_time

NAMES = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=90)
LINES = st.sampled_from(["\r\n", "\n"])
ALARM = "BEGIN:VALARM\nUID:alarm\nSUMMARY:not the title\nTRIGGER:-PT5M\nACTION:DISPLAY\nEND:VALARM\n"


def made(uid: str, title: str, description: str) -> bytes:
    """An event as another library writes it, with its folds and escapes."""
    event = Event()
    event.add("uid", uid)
    event.add("summary", title)
    event.add("description", description)
    event.add("dtstart", datetime(2026, 3, 4, 10, tzinfo=UTC))
    return bytes(event.to_ical())


@given(titles=st.lists(NAMES, min_size=1, max_size=6), description=NAMES, line_end=LINES, alarm=st.booleans())
def test_events_of_another_library_are_found_with_their_titles_and_taken_out(
    titles: list[str], description: str, line_end: str, alarm: bool
) -> None:
    data = new_calendar()
    for number, title in enumerate(titles):
        event = made(f"uid-{number}", title, description)
        if alarm:
            event = event.replace(b"END:VEVENT", ALARM.replace("\n", "\r\n").encode() + b"END:VEVENT")
        data = CalendarText(data).with_event(event)
    data = data.replace(b"\r\n", line_end.encode())
    text = CalendarText(data)
    found = list(text.events())
    assert [event.uid for event in found] == [f"uid-{number}" for number in range(len(titles))]
    theirs = [str(event["SUMMARY"]) for event in Calendar.from_ical(data).walk("VEVENT")]
    assert [event.title for event in found] == theirs
    for place, one_event in enumerate(found):
        less = CalendarText(text.without([one_event.span]))
        assert [one.data for one in less.events()] == [one.data for i, one in enumerate(found) if i != place]
        assert less.data[: one_event.span.start] + one_event.data + less.data[one_event.span.start :] == data
    assert CalendarText(text.without([event.span for event in found])).data.replace(b"\r\n", b"\n") == (
        new_calendar().replace(b"\r\n", b"\n")
    )


@given(
    st.lists(
        st.sampled_from(
            [
                "BEGIN:VCALENDAR",
                "END:VCALENDAR",
                "BEGIN:VEVENT",
                "END:VEVENT",
                "BEGIN:VALARM",
                "END:VALARM",
                "UID:x",
                " y",
            ]
        ),
        max_size=14,
    )
)
def test_any_text_is_a_calendar_or_is_refused(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    try:
        text = CalendarText(data)
    except CalendarError:
        return
    for event in text.events():
        assert event.data.startswith(b"BEGIN:VEVENT\n")
        assert event.data.endswith(b"END:VEVENT\n")


def test_much_that_is_open_is_looked_through_once() -> None:
    """A text of many megabytes that is no calendar is refused soon: no part of it is read again for each line."""
    with pytest.raises(CalendarError, match="no end"):
        CalendarText(b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\nSUMMARY:x\n" * 400_000)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules as people's calendars have them."""
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    rule = f"FREQ={frequency};INTERVAL={draw(st.integers(1, 4))}"
    if frequency == "WEEKLY":
        days = draw(st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), max_size=3, unique=True))
        rule += f";BYDAY={','.join(days)}" if days else ""
    if frequency == "MONTHLY":
        rule += draw(st.sampled_from(["", ";BYMONTHDAY=-1", ";BYDAY=2TU", ";BYDAY=-1FR", ";BYMONTHDAY=31"]))
    end = draw(st.sampled_from(["", "count", "until"]))
    if end == "count":
        rule += f";COUNT={draw(st.integers(1, 60))}"
    elif end == "until":
        rule += f";UNTIL={draw(st.integers(2020, 2027))}0615T100000Z"
    return rule


@settings(deadline=None)
@given(rule=rules(), day=st.integers(0, 2_000), view=st.integers(0, 2_400), excluded=st.sets(st.integers(0, 5)))
def test_recurrences_are_those_of_dateutil(rule: str, day: int, view: int, excluded: set[int]) -> None:
    start = datetime(2020, 1, 1, 10, 30, tzinfo=UTC) + timedelta(days=day)
    first = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=view)
    last = first + timedelta(days=45)
    theirs = rrulestr(f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:{rule}")
    out = {moment for i, moment in zip(range(6), theirs, strict=False) if i in excluded}
    lines = [f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{start + timedelta(hours=1):%Y%m%dT%H%M%SZ}", f"RRULE:{rule}"]
    lines += [f"EXDATE:{moment:%Y%m%dT%H%M%SZ}" for moment in sorted(out)]
    event = "\r\n".join(["BEGIN:VEVENT", "UID:x", "SUMMARY:x", *lines, "END:VEVENT", ""])
    found = agenda(CalendarText(CalendarText(b"").with_event(event.encode())), first, last)
    assert not found.left_out
    expected = [m for m in theirs.between(first - timedelta(hours=1), last, inc=False) if m not in out and m < last]
    # A rule that does not fit the start itself: the first time counts all the same (RFC 5545, section 3.8.5.3).
    if (
        next(iter(theirs), None)
        and first - timedelta(hours=1) < start < last
        and start not in expected
        and start not in out
    ):
        expected = sorted([start, *expected])
    assert [as_time(one.start) for one in found.occurrences] == expected


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(1, 100_000))  # noqa: DTZ001
def test_times_are_read_as_they_are_written(moment: datetime, minutes: int) -> None:
    moment = moment.replace(microsecond=0)
    when = event_time(f"{moment:%Y-%m-%d %H:%M:%S}", (moment + timedelta(minutes=minutes)).isoformat(), 0.0)
    assert re.sub(r"[+-]\d\d:\d\d$", "", f"{when.start.isoformat()}") == moment.isoformat()


@pytest.mark.parametrize(
    ("start", "end", "begins", "ends"),
    [
        ("2026-11-24 15:00", "", "2026-11-24T15:00", "2026-11-24T16:00"),
        ("2026-11-24T15:00", "16:30", "2026-11-24T15:00", "2026-11-24T16:30"),
        ("2026-11-24 23:30", "00:30", "2026-11-24T23:30", "2026-11-25T00:30"),
        ("2026-11-24 15:00", "90m", "2026-11-24T15:00", "2026-11-24T16:30"),
        ("2026-11-24 15:00", "in 2 hours", "2026-11-24T15:00", "2026-11-24T17:00"),
        ("tomorrow 3pm", "5pm", "2026-11-24T15:00", "2026-11-24T17:00"),
        ("friday at noon", "", "2026-11-27T12:00", "2026-11-27T13:00"),
        ("2026-12-24", "", "2026-12-24", "2026-12-25"),
        ("Dec 24", "Dec 26", "2026-12-24", "2026-12-27"),
        ("tomorrow", "", "2026-11-24", "2026-11-25"),
        ("20261224", "", "2026-12-24", "2026-12-25"),
    ],
)
def test_days_and_times_are_told_apart(start: str, end: str, begins: str, ends: str) -> None:
    now = datetime(2026, 11, 23, 10).astimezone().timestamp()
    when = event_time(start, end, now)
    assert when.start.isoformat()[: len(begins)] == begins
    assert when.end.isoformat()[: len(ends)] == ends
    assert when.is_all_day == ("T" not in begins)
