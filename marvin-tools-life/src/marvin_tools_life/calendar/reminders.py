"""Reminders of events, by the system's scheduler, an hour and half an hour before, whether Marvin runs or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from marvin_core import ToolContext, ToolError

from ..scheduling.jobs import Job, cancel, schedule, told_by
from .times import EventTime, as_time

_BEFORE = (60, 30)
"""Minutes before the start of an event."""
KIND = "reminder"


def reminders_of(uid: str, title: str, when: EventTime, location: str) -> list[Job]:
    """The reminders of an event."""
    shown = f"{as_time(when.start):%a %Y-%m-%d}" if when.is_all_day else f"{when.start:%H:%M}"
    place = f", {location}" if location else ""
    return [
        Job(
            due=when.begins - 60 * minutes,
            title=title,
            text=f"In {minutes} minutes ({shown}){place}",
            kind=KIND,
            label=f"{uid}-{minutes}",
            group=uid,
        )
        for minutes in _BEFORE
    ]


async def remind(context: ToolContext, jobs: Sequence[Job]) -> str:
    """Schedule the reminders that are in the future; returns a message about them."""
    ahead = [job for job in jobs if job.due > context.clock.now()]
    if not ahead:
        return "It starts too soon for reminders."
    try:
        made = await schedule(context, *ahead)
    except ToolError as error:
        return f"It is in the calendar, but its reminders could not be set: {error}"
    times = " and ".join(f"{datetime.fromtimestamp(job.due).astimezone():%H:%M}" for job in made)
    return f"Reminders at {times} by {made[0].scheduler}: {told_by(made[0])}."


async def forget(context: ToolContext, uid: str) -> tuple[Sequence[Job], str]:
    """Cancel the reminders of an event; returns them, and a message about them."""
    if not uid:
        return (), ""
    try:
        gone = await cancel(context, groups=[uid])
    except ToolError as error:
        return (), f" Its reminders could not be cancelled: {error}"
    return gone, " Its reminders were cancelled." if gone else ""
