"""Calendars and notes of any size, for benchmarks of the tools that work on them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

_FIRST = datetime(2020, 1, 1, 8)  # noqa: DTZ001  # the clock on the wall
_EVERY = 20
"""One event of so many is a weekly series."""


def calendar_of(count: int, line_end: str = "\r\n") -> str:
    """A calendar with this many events, five a day from 2020 on."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Benchmark//EN"]
    for number in range(count):
        start = _FIRST + timedelta(days=number // 5, hours=number % 5)
        lines += ["BEGIN:VEVENT", f"UID:event-{number}@example.org", "DTSTAMP:20200101T000000Z"]
        lines += [f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{start + timedelta(hours=1):%Y%m%dT%H%M%SZ}"]
        lines += [f"SUMMARY:Meeting {number}\\, with the team", "DESCRIPTION:Some words\\nmore words"]
        if number % _EVERY == 0:
            lines.append("RRULE:FREQ=WEEKLY;COUNT=10")
        lines.append("END:VEVENT")
    return line_end.join([*lines, "END:VCALENDAR", ""])


def write_notes(folder: Path, count: int) -> None:
    """This many notes, in folders of a hundred; one of them contains the needle."""
    for number in range(count):
        path = folder / f"folder{number // 100}" / f"note{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"Line {line} of the note {number} about this and that.\n" for line in range(20)))
    (folder / "needle.md").write_text("The needle is here.\n")
