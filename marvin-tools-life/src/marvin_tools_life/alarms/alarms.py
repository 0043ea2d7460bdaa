"""Alarms, which the system's scheduler starts, whether Marvin runs or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from marvin_core import (
    Table,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    did_you_mean,
    in_thread,
    near_names,
    one_line,
    tool,
)

from ..names import folded
from ..scheduling.job import MISSED
from ..scheduling.jobs import Job, cancel, schedule, scheduled, told_by
from .times import moment

_LABEL = 60
_MESSAGE = 2_000
_MINUTES = {"cron", "at", "launchd"}
"""The schedulers with a resolution of a minute."""


@tool(access=["write", "exec"], unlisted=["job"])
async def set_alarm(
    time: Annotated[str, "A time such as 14:30, 2027-03-01 09:00, tomorrow 9am, 30m, 1h30m"],
    message: Annotated[str, "The text of the notification"],
    label: Annotated[str, "A name to cancel it by; default: a generated name"] = "",
    job: Annotated[str, "For /undo only: the alarm to restore"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Set an alarm: a desktop notice, a sound and a push to the phone, also when Marvin is not running."""
    message, label = message.strip(), " ".join(label.split())
    if not message or len(message) > _MESSAGE:
        raise ToolError(f"The message has {len(message)} characters. Give one of 1 to {_MESSAGE:,}.")
    if len(label) > _LABEL:
        raise ToolError(f"The label has {len(label)} characters. Use {_LABEL} at most.")
    now = context.clock.now()
    due = await in_thread(lambda: moment(time, now))
    wanted = Job(due=due, title=label or "Alarm", text=message, label=label, id=job if context.origin == "undo" else "")
    (made,) = await schedule(context, wanted)
    late = ", or up to a minute later" if made.scheduler in _MINUTES and due % 60 else ""
    text = f"Alarm {made.label!r} is set for {_when(made.due)}{late} by {made.scheduler}: {told_by(made)}."
    return ToolResult(content=text, undo=call_of(cancel_alarm, label=made.label, job=made.id))


@tool(access=["read"])
async def list_alarms(*, context: ToolContext) -> ToolResult:
    """List the alarms that are set, the next one first, and whether the system's scheduler really has them."""
    alarms = [(job, is_there) for job, is_there in await scheduled(context) if job.kind == "alarm"]
    if not alarms:
        return ToolResult(content="No alarm is set. Use set_alarm to set one.")
    now = context.clock.now()
    rows = [(job.label, _when(job.due), _state(job, is_there, now), one_line(job.text)) for job, is_there in alarms]
    return ToolResult(
        content="\n".join(f"{label}: {when}, {state}. {text}" for label, when, state, text in rows),
        show=[Table(columns=("alarm", "time", "state", "message"), rows=rows)],
    )


@tool(access=["write", "exec"], unlisted=["job"])
async def cancel_alarm(
    label: Annotated[str, "The alarm"],
    job: Annotated[str, "For /undo only: the alarm to remove"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Cancel an alarm."""
    wanted = folded(label)
    alarms = [each for each, _ in await scheduled(context) if each.kind == "alarm"]
    found = next((each for each in alarms if (each.id == job if job else folded(each.label) == wanted)), None)
    if found is None and job:
        raise ToolError(f"The alarm {one_line(label, 80)!r} has already gone off or was cancelled.")
    if found is None:
        raise ToolError(_unknown(label, alarms))
    await cancel(context, ids=[found.id])
    undo = None
    if found.due > context.clock.now():
        exact = datetime.fromtimestamp(found.due).astimezone().isoformat()
        undo = call_of(set_alarm, time=exact, message=found.text, label=found.label, job=found.id)
    return ToolResult(content=f"Alarm {found.label!r} of {_when(found.due)} was cancelled.", undo=undo)


def _unknown(label: str, alarms: Sequence[Job]) -> str:
    if not alarms:
        return f"There is no alarm {one_line(label, 80)!r}; no alarm is set. Use set_alarm to set one."
    names = [job.label for job in alarms]
    near = did_you_mean(near_names(label, names)) or f"Alarms: {', '.join(names)}."
    return f"There is no alarm {one_line(label, 80)!r}. {near} list_alarms lists them all."


def _state(job: Job, is_there: bool, now: float) -> str:
    if job.began:
        return "going off"
    if job.due + MISSED < now:
        return "missed: the machine was off or the scheduler did not run"
    return f"scheduled by {job.scheduler}" if is_there else f"lost: {job.scheduler} no longer has it"


def _when(due: float) -> str:
    """A time in this machine's time zone."""
    return f"{datetime.fromtimestamp(due).astimezone():%a %Y-%m-%d %H:%M:%S}".removesuffix(":00")
