"""The program that schedules jobs and runs them, in a process of its own. A scheduler or a tool starts it.

    program order     an order as JSON on standard input, its outcome as JSON on standard output
    program fire FOLDER ID
    program push FOLDER ID

Marvin need not run for it. While it carries out an order of a tool, no other process changes the jobs.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marvin_core import MarvinError

from ..names import folded
from .job import MISSED, Job, JobFile, job_of
from .schedulers import Scheduler, SchedulerError, schedulers
from .showing import missing_ways, pushed, shown

_DESKTOP = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_FILE",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
)
"""Variables of the session that a notice needs; schedulers start programs with hardly any environment."""
_LONGEST_WAIT = 2 * 60 * 60
"""A scheduler may start early: by an hour where the clocks are set back. Then the program waits."""
_IN_HAND = 10 * 60
"""Seconds for which a started job is left to the process that started it."""


_KEPT = 30 * 86_400
"""Seconds for which a missed alarm is listed."""
_OVER = 86_400
"""Seconds for which a missed reminder may still be shown."""
_STALE = 300 * 86_400
"""A job later than this many seconds was not started late: its entry has no year."""
_PROGRAM = f"{__package__}.program"


class OrderError(Exception):
    """An order cannot be carried out; the text says why and what to do."""


def main(argv: list[str], environment: Mapping[str, str]) -> int:
    """Carry out an order, or run a job."""
    if argv[0] == "fire":
        return _fire(Path(argv[1]), argv[2], environment)
    if argv[0] == "push":
        return _push(Path(argv[1]), argv[2])
    order = json.load(sys.stdin)
    try:
        outcome = _carried_out(order, environment)
    except (OrderError, SchedulerError, MarvinError, ValueError, OSError) as error:
        outcome = {"error": str(error)}
    json.dump(outcome, sys.stdout)
    return 0


def _carried_out(order: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    folder = Path(order["folder"])
    known = {one.name: one for one in _schedulers(environment)}
    file = JobFile(folder)
    with file.held():
        _tidy(file, known)
        if order["what"] == "add":
            return _add(file, folder, known, order, environment)
        if order["what"] == "remove":
            return _remove(file, known, order)
        return _list(file, known)


def _schedulers(environment: Mapping[str, str]) -> tuple[Scheduler, ...]:
    home = Path(environment.get("HOME") or "/")
    return schedulers(home, Path(environment.get("XDG_CONFIG_HOME") or home / ".config"))


def _add(
    file: JobFile,
    folder: Path,
    known: Mapping[str, Scheduler],
    order: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Add all of the jobs, or none."""
    scheduler = _usable(known, order.get("scheduler") or "auto")
    _replace_missed(file, known, order["jobs"])
    before = file.jobs()
    kept = {name: environment[name] for name in _DESKTOP if environment.get(name)}
    added: list[Job] = []
    try:
        for data in order["jobs"]:
            job = job_of(data)
            job = job.replace(
                id=_id(job, before),
                scheduler=scheduler.name,
                environment=kept,
                label=_label(job, [*before.values(), *added]),
            )
            added.append(job)
            # To the file first: an entry of an unknown job could not be removed.
            file.put(job)
            command = [sys.executable, "-P", "-m", _PROGRAM, "fire", str(folder), job.id]
            added[-1] = job.replace(handle=scheduler.add(job.id, job.due, command))
            file.put(added[-1])
    except BaseException:
        try:
            for job in added:
                scheduler.remove(job.id, job.handle)
        finally:
            file.drop(*(job.id for job in added))
        raise
    missing = missing_ways(kept, environment)
    return {"scheduler": scheduler.name, "jobs": [job.replace(missing=missing).as_json() for job in added]}


def _id(job: Job, before: Mapping[str, Job]) -> str:
    """A new id, or that of a cancelled job that is restored."""
    is_known = re.fullmatch(r"[0-9a-f]{12}", job.id) and job.id not in before
    return job.id if is_known else secrets.token_hex(6)


def _replace_missed(file: JobFile, known: Mapping[str, Scheduler], new: Sequence[Mapping[str, Any]]) -> None:
    """Remove missed alarms with the label of a new one."""
    labels = {folded(str(data.get("label", ""))) for data in new if data.get("kind", "alarm") == "alarm"} - {""}
    missed = [
        job
        for job in file.jobs().values()
        if job.kind == "alarm" and folded(job.label) in labels and job.due + MISSED < time.time() and not job.began
    ]
    _remove_all(file, known, missed)


def _remove_all(file: JobFile, known: Mapping[str, Scheduler], jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.scheduler in known and not known[job.scheduler].why_not():
            known[job.scheduler].remove(job.id, job.handle)
    if jobs:
        file.drop(*(job.id for job in jobs))


def _tidy(file: JobFile, known: Mapping[str, Scheduler]) -> None:
    """Remove old jobs: those that were interrupted while they were shown, and missed ones.

    An entry of cron or launchd has no year: if it stayed, it would start again in a year.
    """
    now = time.time()
    over = [
        job
        for job in file.jobs().values()
        if (job.began and now - job.began > _IN_HAND) or now - job.due > (_KEPT if job.kind == "alarm" else _OVER)
    ]
    _remove_all(file, known, over)


def _usable(known: Mapping[str, Scheduler], wanted: str) -> Scheduler:
    reasons = []
    for scheduler in known.values() if wanted == "auto" else [known[wanted]] if wanted in known else []:
        why_not = scheduler.why_not()
        if not why_not:
            return scheduler
        if scheduler.name != "launchd" or sys.platform == "darwin" or wanted == "launchd":
            reasons.append(why_not)
    raise OrderError(
        "This machine has no working scheduler, so nothing was set: "
        f"{'; '.join(reasons) or f'there is no scheduler {wanted}'}. Tell the user."
    )


def _label(job: Job, others: list[Job]) -> str:
    taken = {folded(one.label): one for one in others if one.kind == job.kind}
    if job.label:
        if job.kind == "alarm" and folded(job.label) in taken:
            raise OrderError(
                f"An alarm {taken[folded(job.label)].label!r} already exists. Cancel it with cancel_alarm first, or "
                "choose another label."
            )
        return job.label
    number = 1
    while f"{job.kind}-{number}" in taken:
        number += 1
    return f"{job.kind}-{number}"


def _remove(file: JobFile, known: Mapping[str, Scheduler], order: Mapping[str, Any]) -> dict[str, Any]:
    ids, groups = set(order.get("ids", ())), set(order.get("groups", ())) - {""}
    gone = [job for job in file.jobs().values() if job.id in ids or job.group in groups]
    for job in gone:
        if job.scheduler in known:
            known[job.scheduler].remove(job.id, job.handle)
    file.drop(*(job.id for job in gone))
    return {"jobs": [job.as_json() for job in gone]}


def _list(file: JobFile, known: Mapping[str, Scheduler]) -> dict[str, Any]:
    jobs = file.jobs()
    scheduled: set[str] = set()
    for name, scheduler in known.items():
        own = {job.id: job.handle for job in jobs.values() if job.scheduler == name}
        if own:
            scheduled |= scheduler.known(own)
    return {"jobs": [job.as_json() for job in jobs.values()], "scheduled": sorted(scheduled)}


def _fire(folder: Path, name: str, environment: Mapping[str, str]) -> int:
    file = JobFile(folder)
    job = _begun(file, name, environment)
    if job is None:
        return 0
    push = [sys.executable, "-P", "-m", _PROGRAM, "push", str(folder), job.id]
    failures = shown(job, environment, push)
    file.log({"time": time.time(), "label": job.label, "due": job.due, "failures": failures})
    with file.held():
        file.drop(job.id)
        # Last, as it may kill this process.
        _take_entry(job, job.environment or environment)
    return 0


def _begun(file: JobFile, name: str, environment: Mapping[str, str]) -> Job | None:
    """The job once it is due; None if there is nothing to do (yet), or another process runs it."""
    job = file.jobs().get(name)
    if job is None:
        with file.held():
            _take_entry(Job(due=0, title="", text="", id=name), environment)
        return None
    early = job.due - time.time()
    if early > _LONGEST_WAIT:
        return None  # the same day of another year
    if -early > (_STALE if job.kind == "alarm" else _OVER):
        with file.held():
            file.drop(name)
            _take_entry(job, job.environment or environment)
        return None
    time.sleep(max(0, early))
    with file.held():
        job = file.jobs().get(name)
        if job is None or time.time() - job.began < _IN_HAND:
            return None
        file.put(job.replace(began=time.time()))
    return job


def _take_entry(job: Job, environment: Mapping[str, str]) -> None:
    for scheduler in _schedulers(environment):
        if job.scheduler in (scheduler.name, "") and not scheduler.why_not():
            scheduler.remove(job.id, job.handle)


def _push(folder: Path, name: str) -> int:
    """Publish the notice of a job; proxies and certificates come from the environment."""
    job = JobFile(folder).jobs().get(name)
    why_not = pushed(job) if job is not None else "there is no such job"
    sys.stderr.write(why_not)
    return 1 if why_not else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
