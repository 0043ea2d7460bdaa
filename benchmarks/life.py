"""A month of a large calendar, adding to it, and searching many notes, against bare libraries and programs."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.calendars import calendar_of, write_notes
from benchmarks.table import Row
from marvin_core.testing import ToolRunner
from marvin_core.testing.environment import own_home, own_working_dir

_EVENTS = 10_000
_NOTES = 10_000
_GOALS = {"month": 0.5, "add": 0.5, "search": 3.0}
"""Times the bare library or program."""


def rows(count: int) -> Iterator[Row]:
    """Each measured `count` times, by turns with what it is compared to."""
    with tempfile.TemporaryDirectory() as folder, own_home(Path(folder) / "home") as home:
        with own_working_dir(Path(folder) / "work") as work, ToolRunner(home, work) as tools:
            path = home / ".config/marvin/profiles/main/calendar.ics"
            path.parent.mkdir(parents=True)
            path.write_text(calendar_of(_EVENTS), newline="")
            yield _row(
                f"a month of {_EVENTS:,} events / bare icalendar",
                "month",
                _by_turns(
                    lambda: _called(tools, "calendar_view", month=3, year=2022), lambda: _bare_month(path), count
                ),
            )
            yield _row(
                f"an event added to {_EVENTS:,}, and listed / bare icalendar",
                "add",
                _by_turns(lambda: _add_and_list(tools), lambda: _bare_add(path), count),
            )
            write_notes(home / "Notes", _NOTES)
            search = ["rg", "--ignore-case", "--fixed-strings", "needle is", str(home / "Notes")]
            yield _row(
                f"a search in {_NOTES:,} notes / rg",
                "search",
                _by_turns(lambda: _called(tools, "search_notes", query="needle is"), lambda: _run(search), 3 * count),
            )


def _row(name: str, goal: str, taken: tuple[float, float]) -> Row:
    ours, bare = taken
    return Row(name, ours / bare, _GOALS[goal], "x", f"{ours:.0f} ms against {bare:.0f}, medians by turns")


def _called(tools: ToolRunner, tool: str, **arguments: Any) -> None:
    outcome = tools.call(tool, **arguments)
    assert not outcome.is_error, outcome.text


def _add_and_list(tools: ToolRunner) -> None:
    # In the past, so that no scheduler is asked.
    _called(tools, "calendar_add_event", title="Tea", start="2020-03-04 10:00")
    _called(tools, "calendar_list_upcoming")


def _bare_month(path: Path) -> None:
    import recurring_ical_events  # type: ignore[import-untyped]
    from icalendar import Calendar

    calendar = Calendar.from_ical(path.read_bytes())
    recurring_ical_events.of(calendar).between(datetime(2022, 3, 1, tzinfo=UTC), datetime(2022, 4, 1, tzinfo=UTC))


def _bare_add(path: Path) -> None:
    import recurring_ical_events
    from icalendar import Calendar, Event

    calendar = Calendar.from_ical(path.read_bytes())
    event = Event()
    event.add("uid", "bare")
    event.add("summary", "Tea")
    event.add("dtstart", datetime(2020, 3, 4, 10, tzinfo=UTC))
    calendar.add_component(event)
    path.with_suffix(".bare").write_bytes(calendar.to_ical())
    now = datetime.now(UTC)
    recurring_ical_events.of(calendar).between(now, now + timedelta(days=7))


def _by_turns(one: Callable[[], None], other: Callable[[], None], count: int) -> tuple[float, float]:
    """The medians of two functions in milliseconds, called alternately, after one call of each for caches."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(count + 1):
        for work, times in zip((one, other), taken, strict=True):
            begun = time.perf_counter()
            work()
            if turn:
                times.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(taken[0]), statistics.median(taken[1])


def _run(argv: list[str]) -> None:
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
