"""Jobs that the system's scheduler starts, whether Marvin runs or not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marvin_core import ToolContext, ToolError

from ..notify.subscriptions import alarm_topic, server
from ..settings import LifeSettings
from .job import Job, PushTarget, job_of

_SECONDS = 55
"""Timeout of the jobs program in seconds, which waits for other Marvins that are changing jobs."""


_WAYS = {"desktop": "a desktop notification", "sound": "a sound"}


async def schedule(context: ToolContext, *jobs: Job) -> Sequence[Job]:
    """Schedule jobs; returns them with ids, labels and the scheduler's name. All or none are scheduled.

    Jobs remove themselves when done. Schedulers with a resolution of a minute start up to a minute late, never early.
    Jobs are sent to the alarm topic, if there is one.

    Raises:
        ToolError: no scheduler works on this machine, or there is already an alarm of that label.
    """
    wanted = context.settings(LifeSettings).scheduler
    topic = await alarm_topic(context)
    if topic:
        place = server(context)
        push = PushTarget(topic=topic, server=place.address, token=place.token)
        jobs = tuple(job.replace(push=push) for job in jobs)
    told = await _told(context, {"what": "add", "scheduler": wanted, "jobs": [job.as_json() for job in jobs]})
    return [job_of(data) for data in told["jobs"]]


async def cancel(context: ToolContext, *, ids: Iterable[str] = (), groups: Iterable[str] = ()) -> Sequence[Job]:
    """Cancel jobs by their ids or groups; returns those that existed.

    Raises:
        ToolError: the jobs cannot be read, or the scheduler refuses.
    """
    told = await _told(context, {"what": "remove", "ids": [*ids], "groups": [*groups]})
    return [job_of(data) for data in told["jobs"]]


async def scheduled(context: ToolContext) -> Sequence[tuple[Job, bool]]:
    """All jobs by time, each with whether the system's scheduler has it.

    Raises:
        ToolError: the jobs cannot be read.
    """
    told = await _told(context, {"what": "list"})
    jobs = sorted((job_of(data) for data in told["jobs"]), key=lambda job: job.due)
    return [(job, job.id in told["scheduled"]) for job in jobs]


async def _told(context: ToolContext, order: Mapping[str, Any]) -> dict[str, Any]:
    """The program's answer to an order. It runs outside of the sandbox, which has neither crontab nor systemd."""
    folder = context.folders.data / "jobs"
    result = await context.processes.run(
        [sys.executable, "-P", "-m", f"{__package__}.program", "order"],
        cwd=context.home,
        stdin=json.dumps({**order, "folder": str(folder)}).encode(),
        timeout=_SECONDS,
        outside=True,
    )
    if result.timed_out:
        raise ToolError("The scheduler of this machine did not answer in time. Try again later.")
    try:
        told = json.loads(result.output)
    except ValueError:
        said = result.stderr.decode("utf-8", "replace").strip()[-300:]
        raise ToolError(f"The program that schedules jobs failed: {said}. Tell the user.") from None
    if "error" in told:
        raise ToolError(told["error"])
    return dict(told)


def told_by(job: Job) -> str:
    """How a new job will be shown, for people; ways that cannot work on this machine are named."""
    missing = job.missing or {}
    ways = [name for way, name in _WAYS.items() if way not in missing]
    ways += [f"a push to {job.push.topic}"] if job.push else []
    lacking = [f"no {_WAYS[way].removeprefix('a ')}, since {why}" for way, why in missing.items()]
    lacking += [] if job.push else ["no push, since no topic of ntfy is set for alarms"]
    if not ways:
        return (
            f"this machine cannot show it: {'; '.join(lacking)}. Tell the user; with ntfy_subscribe it can be "
            "sent to a phone"
        )
    return "; ".join([" and ".join(filter(None, [", ".join(ways[:-1]), ways[-1]])), *lacking])


__all__ = ["Job", "PushTarget", "cancel", "schedule", "scheduled", "told_by"]
