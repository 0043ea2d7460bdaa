"""Calendars as others write them, well or badly: every event that can be told is told, and nothing costs minutes."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner

from .test_calendar import NOWHERE, event, file, of_events, shown, tools

__all__ = ["tools"]  # the fixture of the tests below

BERLIN = (
    "BEGIN:VTIMEZONE\r\nTZID:Office\r\n"
    "BEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\n"
    "TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n"
    "BEGIN:DAYLIGHT\r\nDTSTART:19700329T020000\r\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\n"
    "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n"
)
STANDUP = event(
    "UID:standup",
    "DTSTART;TZID=Office:20310303T100000",
    "DTEND;TZID=Office:20310303T101500",
    "RRULE:FREQ=DAILY;COUNT=5",
    "SUMMARY:Standup",
    "BEGIN:VALARM",
    "TRIGGER:-PT5M",
    "END:VALARM",
)
MOVED = event(
    "UID:standup",
    "RECURRENCE-ID;TZID=Office:20310305T100000",
    "DTSTART;TZID=Office:20310305T140000",
    "DTEND;TZID=Office:20310305T141500",
    "SUMMARY:Standup\\, moved",
)


def march(tools: ToolRunner) -> str:
    return tools.call("calendar_view", month=3, year=2031).text


def test_a_mark_before_the_first_line_hides_nothing(tools: ToolRunner) -> None:
    of_events(tools, event("UID:a", "DTSTART:20310304T100000Z", "SUMMARY:Tea"))
    before = b"\xef\xbb\xbf" + file(tools).read_bytes()
    file(tools).write_bytes(before)
    assert "Tea" in march(tools)
    tools.call("calendar_add_event", title="Ours", start="2031-03-05")
    assert file(tools).read_bytes().startswith(before.removesuffix(b"END:VCALENDAR\r\n"))


@pytest.mark.parametrize("fold", [b"\r\n ", b"\n\t"])
def test_a_line_that_is_folded_within_a_character_is_read(tools: ToolRunner, fold: bytes) -> None:
    of_events(tools, event("UID:a", "DTSTART:20310304T100000Z", "SUMMARY:Zoë und Übung 🎉"))
    data = file(tools).read_bytes()
    for sign in ("ë", "Ü", "🎉"):
        raw = sign.encode()
        data = data.replace(raw, raw[:1] + fold + raw[1:])
    file(tools).write_bytes(data)
    assert "Zoë und Übung 🎉" in march(tools)
    assert "Deleted 'Zoë und Übung 🎉'" in tools.call("calendar_delete_event", title="übung").text


def test_events_without_an_id_or_with_the_same_one_are_all_there(tools: ToolRunner) -> None:
    of_events(
        tools,
        event("DTSTART:20310304T100000Z", "SUMMARY:None 1"),
        event("DTSTART:20310305T100000Z", "SUMMARY:None 2", "RRULE:FREQ=DAILY;COUNT=1"),
        event("UID:", "DTSTART:20310306T100000Z", "SUMMARY:Empty 1"),
        event("UID:", "DTSTART:20310307T100000Z", "SUMMARY:Empty 2"),
        event("UID:same", "DTSTART:20310308T100000Z", "SUMMARY:Same 1"),
        event("UID:same", "DTSTART:20310309T100000Z", "SUMMARY:Same 2"),
        event("UID:series", "DTSTART:20310310T100000Z", "RRULE:FREQ=DAILY;COUNT=2", "SUMMARY:Series 1"),
        event("UID:series", "DTSTART:20310312T100000Z", "RRULE:FREQ=DAILY;COUNT=2", "SUMMARY:Series 2"),
        event("UID:old", "SEQUENCE:1", "DTSTART:20310314T100000Z", "SUMMARY:Outdated"),
        event("UID:old", "SEQUENCE:2", "DTSTART:20310414T100000Z", "SUMMARY:Put off"),
        event("DTSTART:nonsense", "SUMMARY:Bad"),
    )
    text = march(tools)
    for title in ("None 1", "None 2", "Empty 1", "Empty 2", "Same 1", "Same 2"):
        assert text.count(f": {title}") == 1, title
    assert text.count(": Series 1") == text.count(": Series 2") == 2
    assert "Outdated" not in text
    assert "Put off" in tools.call("calendar_view", month=4, year=2031).text
    assert "[Left out: 'Bad'" in text


def test_of_events_with_the_same_id_only_the_one_that_is_meant_goes(tools: ToolRunner) -> None:
    of_events(
        tools,
        event("UID:same", "DTSTART:20310308T100000Z", "SUMMARY:Lunch"),
        event("UID:same", "DTSTART:20310309T100000Z", "SUMMARY:Dinner"),
    )
    before = file(tools).read_bytes()
    several = tools.call("calendar_delete_event", uid="same")
    assert "2 events match: 'Lunch' (2031-03-08) [same], 'Dinner'" in several.text
    assert "Give the uid and the title of one" in several.text
    assert "Deleted 'Lunch'" in tools.call("calendar_delete_event", uid="same", title="lunch").text
    assert "Dinner" in march(tools)
    assert "Lunch" not in march(tools)
    tools.take_back()
    assert file(tools).read_bytes() == before
    assert "Deleted 'Dinner'" in tools.call("calendar_delete_event", title="dinner").text


def test_what_has_no_beginning_is_named_and_hides_nothing(tools: ToolRunner) -> None:
    of_events(tools, *(event(f"UID:{number}", "SUMMARY:Someday") for number in range(300)),
              event("UID:a", "DTSTART:20310304T100000Z", "SUMMARY:Tea"))  # fmt: skip
    text = march(tools)
    assert "Tea" in text
    assert "'Someday': it has no beginning" in text
    assert "295 more were left out" in text


def test_a_calendar_behind_an_empty_one_is_read(tools: ToolRunner) -> None:
    of_events(tools, event("UID:a", "DTSTART:20310304T100000Z", "SUMMARY:Tea"))
    file(tools).write_bytes(b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n" + file(tools).read_bytes())
    assert march(tools).count("Tea") == 1


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("FREQ=DAILY;INTERVAL=0", "the interval 0"),
        ("FREQ=YEARLY;INTERVAL=-1", "left out"),
        ("FREQ=HOURLY", "too often since"),
        ("FREQ=MINUTELY;COUNT=99999999", "24 times a day"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "its rule matches no day"),
        ("FREQ=HOURLY;INTERVAL=24;BYMONTH=2;BYMONTHDAY=30", "its rule matches no day"),
        ("FREQ=WEEKLY;BYWEEKNO=1;BYMONTH=7", "its rule matches no day"),
        ("FREQ=DAILY;BYSETPOS=2", "its rule matches no day"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", ""),
        ("FREQ=DAILY;BYMONTH=13", "left out"),
        ("FREQ=DAILY;COUNT=0", ""),
        ("FREQ=DAILY;UNTIL=19000101", ""),
        ("FREQ=DAILY;UNTIL=20310301T000000Z;COUNT=3", ""),
        ("FREQ=YEARLY;BYEASTER=0", ""),
        ("FREQ=WEEKLY;BYDAY=XX", "left out"),
        (";", ""),
    ],
)
def test_a_hostile_rule_costs_no_minutes_and_no_other_event(tools: ToolRunner, rule: str, says: str) -> None:
    of_events(
        tools,
        event("UID:a", "DTSTART:19010304T100000Z", f"RRULE:{rule}", "SUMMARY:Hostile"),
        event("UID:b", "DTSTART:20310304T100000Z", "SUMMARY:Tea"),
    )
    began = time.monotonic()
    text = march(tools)
    assert time.monotonic() - began < 30, "idle it takes a second"
    assert ": Tea" in text
    if says:
        assert "Left out: 'Hostile'" in text
        assert says in text.lower()


def test_a_time_zone_whose_clocks_change_each_second_costs_no_minutes(tools: ToolRunner) -> None:
    hostile = BERLIN.replace("Office", "Hell").replace("FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU", "FREQ=SECONDLY")
    of_events(
        tools,
        hostile,
        event("UID:a", "DTSTART;TZID=Hell:20310304T100000", "SUMMARY:Meeting"),
        event("UID:b", "DTSTART:20310304T100000Z", "SUMMARY:Tea"),
    )
    text = march(tools)
    assert ": Tea" in text
    assert "the time zone 'Hell' has rules that are not supported" in text


def test_a_time_zone_is_that_of_its_file_whatever_an_earlier_one_called_so(tools: ToolRunner) -> None:
    """Outlook calls each zone of one's own `Customized Time Zone`."""
    meeting = event("UID:a", "DTSTART;TZID=Office:20310304T100000", "SUMMARY:Meeting")
    of_events(tools, BERLIN, meeting)
    assert f"{shown('Europe/Berlin', 2031, 3, 4, 10)}: Meeting" in march(tools)
    of_events(tools, BERLIN.replace("+0100", "+0900").replace("+0200", "+0900"), meeting)
    assert f"{shown('Asia/Tokyo', 2031, 3, 4, 10)}: Meeting" in march(tools)


def test_a_name_of_a_zone_that_has_to_be_guessed_warns_nobody(tools: ToolRunner) -> None:
    zone = "/freeassociation.sourceforge.net/Europe/Berlin"
    of_events(tools, event("UID:a", f"DTSTART;TZID={zone}:20310304T100000", "SUMMARY:Meeting"))
    assert f"{shown('Europe/Berlin', 2031, 3, 4, 10)}: Meeting" in march(tools)


def test_dates_that_are_added_and_left_out_count(tools: ToolRunner) -> None:
    of_events(
        tools,
        event(
            "UID:a",
            "DTSTART;VALUE=DATE:20310328",
            "RRULE:FREQ=DAILY;UNTIL=20310331",
            "EXDATE;VALUE=DATE:20310329,20310330",
            "RDATE;VALUE=DATE:20310304",
            'X-ODD;X-PARAM="a:b;c":anything',
            "SUMMARY:Day",
        ),
    )
    days = [line.partition(":")[0] for line in march(tools).splitlines() if ": Day" in line]
    assert days == ["Tue 2031-03-04", "Fri 2031-03-28", "Mon 2031-03-31"]


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
def test_one_day_of_a_series_is_taken_out_and_comes_back(tools: ToolRunner, line_end: str) -> None:
    of_events(tools, BERLIN, STANDUP, MOVED)
    before = file(tools).read_bytes().replace(b"\r\n", line_end.encode())
    file(tools).write_bytes(before)
    assert march(tools).count("Standup") == 5
    said = tools.call("calendar_delete_event", uid="standup 2031-03-04")
    assert said.text == "Deleted 'Standup' of Tue 2031-03-04; its other occurrences are kept."
    left = f"EXDATE;TZID=Office:20310304T100000{line_end}".encode()
    data = file(tools).read_bytes()
    assert data.replace(left, b"") == before
    assert data.index(left) < data.index(b"BEGIN:VALARM")
    text = march(tools)
    assert text.count("Standup") == 4
    assert "2031-03-04" not in text
    moved = tools.call("calendar_delete_event", title="standup on 2031-03-05")
    assert not moved.is_error, moved.text
    assert march(tools).count("Standup") == 3
    assert b"moved" not in file(tools).read_bytes()
    again = tools.session(settings=NOWHERE)
    again.take_back()
    assert file(tools).read_bytes() == data
    again.take_back()
    assert file(tools).read_bytes() == before


@pytest.mark.parametrize(
    ("start", "exception"),
    [
        ("DTSTART:20310303T100000Z", b"EXDATE:20310304T100000Z\r\n"),
        ("DTSTART:20310303T100000", b"EXDATE:20310304T100000\r\n"),
        ("DTSTART;VALUE=DATE:20310303", b"EXDATE;VALUE=DATE:20310304\r\n"),
        ("DTSTART;TZID=Asia/Tok\r\n yo:2031\r\n 0303T200000", b"EXDATE;TZID=Asia/Tokyo:20310304T200000\r\n"),
    ],
)
def test_the_exception_has_the_form_of_the_beginning(tools: ToolRunner, start: str, exception: bytes) -> None:
    of_events(tools, event("UID:a", start, "RRULE:FREQ=DAILY;COUNT=3", "SUMMARY:Day"))
    before = file(tools).read_bytes()
    assert not tools.call("calendar_delete_event", title="Day 2031-03-04").is_error
    assert file(tools).read_bytes().replace(exception, b"") == before
    assert march(tools).count(": Day") == 2


def test_one_day_that_is_none_changes_nothing(tools: ToolRunner) -> None:
    of_events(tools, BERLIN, STANDUP, event("UID:once", "DTSTART:20310304T100000Z", "SUMMARY:Once 2031-03-04"))
    before = file(tools).read_bytes()
    for uid, says in (
        ("standup 2031-03-20", "does not happen on 2031-03-20"),
        ("standup 2031-13-45", "There is no event"),
        ("once 2031-03-04", "is not a series"),
        ("nothing 2031-03-04", "There is no event 'nothing'"),
    ):
        said = tools.call("calendar_delete_event", uid=uid)
        assert says in said.text
    assert file(tools).read_bytes() == before
    assert "Deleted 'Once 2031-03-04'" in tools.call("calendar_delete_event", title="once 2031-03-04").text


def test_a_day_that_was_edited_since_is_not_taken_back(tools: ToolRunner) -> None:
    of_events(tools, BERLIN, STANDUP)
    tools.call("calendar_delete_event", uid="standup 2031-03-04")
    file(tools).write_bytes(file(tools).read_bytes().replace(b"SUMMARY:Standup", b"SUMMARY:Standdown"))
    with pytest.raises(MarvinError, match="The event was changed since then"):
        tools.take_back()
    assert b"EXDATE" in file(tools).read_bytes()


def test_an_end_in_days_is_counted(tools: ToolRunner) -> None:
    whole = tools.call("calendar_add_event", title="Trip", start="2031-03-04", end="2 days").text
    assert "Tue 2031-03-04 to Wed 2031-03-05 [" in whole
    timed = tools.call("calendar_add_event", title="Hike", start="2031-03-04 10:00", end="2 days").text
    assert "Tue 2031-03-04 10:00 to Thu 2031-03-06 10:00 [" in timed


@pytest.mark.parametrize(
    "start", ["tomorrow at 25:00", "next month", "november 2031", "2031", "04/05/2031", "tomorrow 15"]
)
def test_a_start_that_would_have_to_be_guessed_is_refused(tools: ToolRunner, start: str) -> None:
    """I10: an event on a wrong day is worse than a question."""
    said = tools.call("calendar_add_event", title="x", start=start)
    assert said.is_error
    assert not file(tools).exists()


@pytest.mark.slow
def test_ten_thousand_events_of_which_many_are_bad_are_told_in_time(tools: ToolRunner) -> None:
    day = datetime(2031, 3, 1)  # noqa: DTZ001  # any time
    events = [
        event(f"UID:{number}", f"DTSTART:{day + timedelta(hours=number % 700):%Y%m%dT%H%M%S}Z", f"SUMMARY:E{number}")
        for number in range(10_000)
    ]
    events[::50] = [event(f"UID:bad{number}", "DTSTART:20310304Tnonsense", "SUMMARY:Bad") for number in range(200)]
    of_events(tools, *events)
    began = time.monotonic()
    text = march(tools)
    assert time.monotonic() - began < 55, "it has to end before the tool's time-out"
    assert "200 of 9,8" in text
    assert "Left out: 'Bad'" in text
