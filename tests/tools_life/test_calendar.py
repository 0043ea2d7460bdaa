"""The calendar: events come and go, and what other programs wrote stays byte for byte."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import Outcome, ToolRunner

CALENDARS = Path(__file__).parent / "calendars"
NOWHERE = {"life": {"scheduler": "launchd" if sys.platform == "linux" else "cron"}}
"""No scheduler: these tests leave that of the machine alone."""


@pytest.fixture
def tools(marvin_tools: ToolRunner) -> ToolRunner:
    return marvin_tools.session(settings=NOWHERE)


def file(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles/main/calendar.ics"


def given(tools: ToolRunner, name: str, line_end: bytes = b"\r\n") -> bytes:
    """A calendar that another program wrote."""
    data = (CALENDARS / name).read_bytes().replace(b"\n", line_end)
    file(tools).parent.mkdir(parents=True, exist_ok=True)
    file(tools).write_bytes(data)
    return data


def uid_in(outcome: Outcome) -> str:
    assert not outcome.is_error, outcome.text
    return outcome.text.partition("[")[2].partition("]")[0]


def shown(zone: str, *moment: int) -> str:
    """A time elsewhere, as the clock of this machine has it."""
    return f"{datetime(*moment, tzinfo=ZoneInfo(zone)).astimezone():%a %Y-%m-%d %H:%M}"  # type: ignore[misc,arg-type]


def test_an_event_is_added_listed_and_deleted(tools: ToolRunner) -> None:
    begin = (datetime.now().astimezone() + timedelta(days=2)).replace(hour=15, minute=0)
    said = tools.call(
        "calendar_add_event", title="Dentist", start=f"{begin:%Y-%m-%d} 15:00", end="90m", location="Main St; 5, left"
    )
    assert f"Added 'Dentist', {begin:%a %Y-%m-%d} 15:00 to 16:30 [" in said.text
    listed = tools.call("calendar_list_upcoming")
    assert listed.text == f"{begin:%a %Y-%m-%d} 15:00 to 16:30: Dentist (Main St; 5, left) [{uid_in(said)}]"
    assert listed.show[0].rows[0][1] == "Dentist"  # type: ignore[union-attr]
    assert tools.call("calendar_delete_event", uid=uid_in(said)).text == "Deleted 'Dentist'."
    assert tools.call("calendar_list_upcoming").text == "No events in the next 7 days."


def test_where_nothing_starts_programs_the_event_is_kept_and_that_is_said(tools: ToolRunner) -> None:
    start = datetime.now().astimezone() + timedelta(days=2)
    said = tools.call("calendar_add_event", title="Dentist", start=start.isoformat()).text
    assert "It is in the calendar, but its reminders could not be set: This machine has no working scheduler" in said


def test_what_begins_at_once_needs_no_reminder(tools: ToolRunner) -> None:
    start = datetime.now().astimezone() + timedelta(minutes=5)
    assert (
        "It starts too soon for reminders"
        in tools.call("calendar_add_event", title="Now", start=start.isoformat()).text
    )
    past = tools.call("calendar_add_event", title="Then", start="2020-01-01 10:00").text
    assert "The event is in the past. It starts too soon for reminders" in past


def test_whole_days_last_until_their_end(tools: ToolRunner) -> None:
    said = tools.call("calendar_add_event", title="Trip", start="2031-02-27", end="2031-03-01").text
    assert "Thu 2031-02-27 to Sat 2031-03-01" in said
    text = file(tools).read_text()
    assert "DTSTART;VALUE=DATE:20310227" in text
    assert "DTEND;VALUE=DATE:20310302" in text
    for month, marked in ((2, "27*"), (3, " 1*")):
        view = tools.call("calendar_view", month=month, year=2031).text
        assert marked in view
        assert "Trip" in view
    assert "2* " not in tools.call("calendar_view", month=3, year=2031).text


def test_a_month_is_a_grid_with_marked_days(tools: ToolRunner) -> None:
    tools.call("calendar_add_event", title="Tea", start="2031-06-11 16:00")
    lines = tools.call("calendar_view", month=6, year=2031).text.splitlines()
    assert lines[:5] == [
        "June 2031",
        " Mo  Tu  We  Th  Fr  Sa  Su",
        "                         1",
        " 2   3   4   5   6   7   8",
        " 9  10  11* 12  13  14  15",
    ]
    assert "Wed 2031-06-11 16:00 to 17:00: Tea" in lines[-1]
    assert f"{datetime.now().astimezone():%B %Y}" in tools.call("calendar_view").text
    assert "Give one from 1970" in tools.call("calendar_view", year=12).text


def test_a_calendar_of_icloud_is_understood(tools: ToolRunner) -> None:
    given(tools, "icloud.ics")
    text = tools.call("calendar_view", month=3, year=2026).text
    assert text.count("Standup, weekly") == 3, "one of five is left out by an exception, one was moved"
    assert shown("Europe/Berlin", 2026, 3, 16, 14) in text
    assert "Standup, moved" in text
    # The clocks of Berlin go forward between the two.
    assert shown("Europe/Berlin", 2026, 3, 23, 10) in text
    assert shown("Europe/Berlin", 2026, 3, 30, 10) in text
    assert "weekly, 8 times" in text
    assert "Tue 2026-03-10 to Wed 2026-03-11: Fair" in text
    assert "Event reminder" not in text


def test_a_calendar_of_google_is_understood(tools: ToolRunner) -> None:
    given(tools, "google.ics")
    text = tools.call("calendar_view", month=3, year=2026).text
    assert f"{shown('UTC', 2026, 3, 5, 15)} to" in text
    assert "Review 🎉 of the very long title that has to be folded by the program because of its length" in text
    assert "Fri 2026-03-20: Birthday of Zoë, yearly" in text
    assert "Lunch (cancelled)" in text
    assert "Fri 2036-03-20".partition(" ")[2] in tools.call("calendar_view", month=3, year=2036).text


def test_a_calendar_of_outlook_is_understood(tools: ToolRunner) -> None:
    given(tools, "outlook.ics")
    text = tools.call("calendar_view", month=3, year=2026).text
    assert f"{shown('Europe/Berlin', 2026, 3, 17, 10)} to" in text
    assert "Monatsgespräch (Teams), monthly on TU until 2026-12-31" in text
    april = tools.call("calendar_view", month=4, year=2026).text
    assert shown("Europe/Berlin", 2026, 4, 21, 10) in april
    assert "No events" in tools.call("calendar_view", month=1, year=2027).text


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("name", ["icloud.ics", "google.ics", "outlook.ics"])
def test_what_other_programs_wrote_stays_byte_for_byte(tools: ToolRunner, name: str, line_end: bytes) -> None:
    before = given(tools, name, line_end)
    uid = uid_in(tools.call("calendar_add_event", title="Ours, with a comma", start="2031-03-04 10:00"))
    added = file(tools).read_bytes()
    start = added.index(b"BEGIN:VEVENT" + line_end + b"SUMMARY:Ours\\, with a comma")
    end = added.index(b"END:VEVENT" + line_end, start) + len(b"END:VEVENT" + line_end)
    assert added[:start] + added[end:] == before
    assert (b"\r" in added) == (line_end == b"\r\n")
    tools.call("calendar_delete_event", uid=uid)
    assert file(tools).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "title"), [("icloud.ics", "standup"), ("google.ics", "review"), ("outlook.ics", "monatsgespräch")]
)
def test_an_event_of_another_program_is_deleted_whole_and_comes_back_as_it_was(
    tools: ToolRunner, name: str, title: str
) -> None:
    before = given(tools, name)
    said = tools.call("calendar_delete_event", title=title)
    assert not said.is_error, said.text
    after = file(tools).read_bytes()
    kept = [part for part in re.split(rb"(?=BEGIN:VEVENT)", before) if title.encode() not in part.lower()]
    assert all(part.removesuffix(b"END:VCALENDAR\r\n") in after for part in kept)
    assert title.encode() not in after.lower()
    assert ("with all its occurrences" in said.text) == (name != "google.ics")
    tools.session(settings=NOWHERE).take_back()
    assert file(tools).read_bytes() == before


def test_an_event_comes_back_where_the_calendar_was_changed_meanwhile_too(tools: ToolRunner) -> None:
    given(tools, "google.ics")
    tools.call("calendar_delete_event", title="Birthday")
    edited = file(tools).read_bytes().replace(b"SUMMARY:Lunch", b"SUMMARY:Brunch")
    file(tools).write_bytes(edited)
    tools.take_back()
    data = file(tools).read_bytes()
    assert b"SUMMARY:Brunch" in data
    assert data.count(b"UID:birthday@google.com\r\n") == 1
    assert "Birthday of Zoë" in tools.call("calendar_view", month=3, year=2026).text


def test_an_added_event_is_taken_back_unless_somebody_changed_it(tools: ToolRunner) -> None:
    before = given(tools, "google.ics")
    tools.call("calendar_add_event", title="Ours", start="2031-03-04 10:00")
    tools.session(settings=NOWHERE).take_back()
    assert file(tools).read_bytes() == before
    tools.call("calendar_add_event", title="Ours", start="2031-03-04 10:00")
    file(tools).write_bytes(file(tools).read_bytes().replace(b"SUMMARY:Ours", b"SUMMARY:Theirs"))
    with pytest.raises(MarvinError, match="The event was changed since then"):
        tools.take_back()
    assert b"SUMMARY:Theirs" in file(tools).read_bytes()


def test_a_title_that_fits_several_events_names_them(tools: ToolRunner) -> None:
    for day in (4, 5):
        tools.call("calendar_add_event", title=f"Café {day}", start=f"2031-03-0{day} 10:00")
    said = tools.call("calendar_delete_event", title="cafe\u0301")
    assert said.is_error
    assert "2 events match: 'Café 4' (2031-03-04) [" in said.text
    assert not tools.call("calendar_delete_event", title="CAFE\u0301  4").is_error
    assert "No event has 'café 4'" in tools.call("calendar_delete_event", title="café 4").text
    assert "There is no event 'x'" in tools.call("calendar_delete_event", uid="x").text
    assert "Choose an event: give its uid, or a part of its title" in tools.call("calendar_delete_event").text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"title": " ", "start": "tomorrow"}, "needs a title"),
        ({"title": "x", "start": "someday"}, "is not a time"),
        ({"title": "x", "start": ""}, "is not a time"),
        ({"title": "x", "start": "2031-03-04 10:00", "end": "2031-03-04 09:00"}, "is not after the start"),
        ({"title": "x", "start": "2031-03-04", "end": "2031-03-01"}, "is before the start"),
        ({"title": "x", "start": "2031-03-04", "end": "15:00"}, "is a day and the end"),
        ({"title": "x", "start": "2031-03-04 10:00", "end": "2031-03-05"}, "is a day and the start"),
        ({"title": "x", "start": "0001-01-01"}, "too far away"),
        ({"title": "x", "start": "2031-03-04", "description": "x" * 20_001}, "Shorten it"),
        ({"title": "x", "start": "2031-03-04", "taken_back": {"pieces": []}}, "for /undo only"),
    ],
)
def test_what_cannot_be_added_says_why(tools: ToolRunner, arguments: dict[str, object], words: str) -> None:
    """I10."""
    said = tools.call("calendar_add_event", **arguments)
    assert said.is_error
    assert words in said.text
    assert not file(tools).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:cut o",
        b"BEGIN:VCALENDAR\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        b"no calendar",
        b"\0\1\2\3",
    ],
)
def test_what_is_no_whole_calendar_is_left_as_it_is(tools: ToolRunner, content: bytes) -> None:
    file(tools).parent.mkdir(parents=True)
    file(tools).write_bytes(content)
    for tool, arguments in (
        ("calendar_view", {}),
        ("calendar_list_upcoming", {}),
        ("calendar_add_event", {"title": "x", "start": "2031-03-04"}),
        ("calendar_delete_event", {"title": "x"}),
    ):
        said = tools.call(tool, **arguments)
        assert said.is_error
        assert "is not a usable calendar" in said.text
    assert file(tools).read_bytes() == content
    assert [path.name for path in file(tools).parent.glob("calendar.ics*") if "lock" not in path.name] == [
        "calendar.ics"
    ]


def event(*lines: str) -> str:
    return "".join(f"{line}\r\n" for line in ("BEGIN:VEVENT", *lines, "END:VEVENT"))


def of_events(tools: ToolRunner, *events: str) -> None:
    file(tools).parent.mkdir(parents=True, exist_ok=True)
    text = "".join(("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", *events, "END:VCALENDAR\r\n"))
    file(tools).write_bytes(text.encode("utf-8", "surrogateescape"))


def test_one_bad_event_hides_none_of_the_others(tools: ToolRunner) -> None:
    of_events(
        tools,
        event("UID:a", "DTSTART:20310304T100000Z", "SUMMARY:Good"),
        event("UID:b", "DTSTART:yesterday", "SUMMARY:Bad"),
        event("UID:c", "DTSTART:20310305T100000Z", "DTEND:20310305T110000Z", "RRULE:FREQ=NEVER", "SUMMARY:Odd"),
        event("UID:d", "SUMMARY:Nothing else"),
        event("UID:e", "DTSTART;TZID=Moon/Crater:20310306T100000", "SUMMARY:Far"),
        event("UID:f", "DTSTART:20310307T100000Z", "SUMMARY:Also \udcff good"),
    )
    text = tools.call("calendar_view", month=3, year=2031).text
    for title in (": Good", ": Far", "good"):
        assert title in text
    assert "Left out" in text


def test_rules_without_end_end_soon(tools: ToolRunner) -> None:
    """What a stranger's calendar holds costs neither minutes nor memory."""
    of_events(
        tools,
        event("UID:a", "DTSTART:20310304T100000Z", "RRULE:FREQ=SECONDLY", "SUMMARY:Ticks"),
        event(
            "UID:b", "DTSTART:20310304T100000Z", "RRULE:FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=1,2,3,4,5,6", "SUMMARY:B"
        ),
        event("UID:c", "DTSTART:20310304T100000Z", "RRULE:FREQ=HOURLY;INTERVAL=12", "SUMMARY:Pills"),
        event("UID:d", "DTSTART:20310304T100000Z", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "SUMMARY:Never"),
    )
    text = tools.call("calendar_view", month=3, year=2031).text
    assert text.count("Pills, every 12 hours") == 56 or text.count("Pills") >= 54
    assert "'Ticks': it happens more than 24 times a day" in text
    assert "'B': it happens more than 24 times a day" in text


def test_titles_steer_no_terminal_and_start_no_line(tools: ToolRunner) -> None:
    of_events(tools, event("UID:a\x07", "DTSTART:20310304T100000Z", "SUMMARY:\x1b[2Jx\\n2. y", "LOCATION:a\\nb"))
    text = tools.call("calendar_view", month=3, year=2031).text
    assert not {"\x1b", "\x07"} & set(text)
    assert "x 2. y" in text


def test_a_calendar_that_is_a_link_stays_one(tools: ToolRunner, tmp_path: Path) -> None:
    real = tmp_path / "cloud.ics"
    real.write_bytes((CALENDARS / "google.ics").read_bytes())
    file(tools).parent.mkdir(parents=True, exist_ok=True)
    file(tools).symlink_to(real)
    tools.call("calendar_add_event", title="Ours", start="2031-03-04")
    assert file(tools).is_symlink()
    assert b"SUMMARY:Ours" in real.read_bytes()


ADDER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2]), settings={"life": {"scheduler": sys.argv[5]}}) as tools:
    for number in range(int(sys.argv[4])):
        outcome = tools.call("calendar_add_event", title=f"{sys.argv[3]}-{number}", start="2020-03-04 10:00")
        assert not outcome.is_error, outcome.text
"""


def adder(tools: ToolRunner, name: str, count: int) -> subprocess.Popen[bytes]:
    words = [str(tools.home), str(tools.working_dir), name, str(count), NOWHERE["life"]["scheduler"]]
    return subprocess.Popen([sys.executable, "-P", "-c", ADDER, *words])


@pytest.mark.slow
def test_eight_processes_lose_no_event(tools: ToolRunner) -> None:
    before = given(tools, "icloud.ics")
    children = [adder(tools, f"w{number}", 6) for number in range(8)]
    assert [child.wait(300) for child in children] == [0] * 8
    titles = re.findall(rb"SUMMARY:(w\d-\d)\r\n", file(tools).read_bytes())
    assert sorted(titles) == sorted(f"w{one}-{other}".encode() for one in range(8) for other in range(6))
    assert file(tools).read_bytes().startswith(before.removesuffix(b"END:VCALENDAR\r\n"))


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_calendar_or_the_new_one(tools: ToolRunner) -> None:
    before = given(tools, "icloud.ics").removesuffix(b"END:VCALENDAR\r\n")
    for count in (1, 3, 6):
        child = adder(tools, f"k{count}", 10_000)
        while file(tools).read_bytes().count(f"SUMMARY:k{count}-".encode()) < count and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert file(tools).read_bytes().startswith(before)
        assert not tools.call("calendar_list_upcoming").is_error
