"""Reminders of events: two entries of the system's scheduler, which go and come back with the event."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from marvin_core.testing import ToolRunner

from .desktop import Desktop, until
from .test_alarms import crontab, daemons, jobs_folder, own_lines, screen

__all__ = ["daemons", "own_lines", "screen"]  # the fixtures of the tests below

MARK = b"# marvin job "


def on_cron(tools: ToolRunner, **options: Any) -> ToolRunner:
    return tools.session(settings={"life": {"scheduler": "cron"}}, **options)


def jobs(tools: ToolRunner) -> list[dict[str, Any]]:
    found = json.loads((jobs_folder(tools) / "jobs.json").read_text())
    return sorted(found.values(), key=lambda job: float(job["due"]))


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
def test_reminders_are_scheduled_and_go_with_their_event(
    marvin_tools: ToolRunner,
    daemons: Callable[[str], None],
    own_lines: bytes,
) -> None:
    daemons("cron")
    tools = on_cron(marvin_tools)
    start = (datetime.now().astimezone() + timedelta(days=2)).replace(second=0, microsecond=0)
    said = tools.call("calendar_add_event", title="Dentist", start=start.isoformat(), location="Main Street").text
    times = " and ".join(f"{start - timedelta(minutes=minutes):%H:%M}" for minutes in (60, 30))
    assert f"Reminders at {times} by cron: " in said
    first, second = jobs(tools)
    assert [first["due"], second["due"]] == [start.timestamp() - 3_600, start.timestamp() - 1_800]
    assert (first["title"], first["text"]) == ("Dentist", f"In 60 minutes ({start:%H:%M}), Main Street")
    assert crontab().count(MARK) == 2
    assert "No alarm is set" in tools.call("list_alarms").text
    assert (
        tools.call("calendar_delete_event", title="dentist").text == "Deleted 'Dentist'. Its reminders were cancelled."
    )
    assert crontab() == own_lines + b"\n"
    later = on_cron(marvin_tools)
    later.take_back()
    assert crontab().count(MARK) == 2
    assert [job["due"] for job in jobs(tools)] == [first["due"], second["due"]]
    later.take_back()
    assert crontab() == own_lines + b"\n"


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
@pytest.mark.timeout(240)
def test_a_reminder_is_shown_when_marvin_does_not_run(
    marvin_tools: ToolRunner,
    screen: Desktop,
    daemons: Callable[[str], None],
    own_lines: bytes,
) -> None:
    daemons("cron")
    tools = on_cron(marvin_tools, env={**screen.environment, "HOME": str(marvin_tools.home)})
    start = datetime.now().astimezone() + timedelta(minutes=30, seconds=20)
    said = tools.call("calendar_add_event", title="Dentist", start=start.isoformat(), location="Main Street").text
    assert f"Reminders at {start - timedelta(minutes=30):%H:%M} by cron" in said
    marvin_tools.close()
    until((jobs_folder(tools) / "fired.log").exists, limit=150)
    until(lambda: MARK not in crontab())
    assert screen.shown() == [("Dentist", f"In 30 minutes ({start:%H:%M}), Main Street")]
    assert jobs(tools) == []
