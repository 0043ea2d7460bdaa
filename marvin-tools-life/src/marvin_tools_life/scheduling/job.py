"""Scheduled notices, and the file that they are stored in."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marvin_core import Record, update_file

_LARGEST = 16 * 1024 * 1024
_LOG_LINES = 100
MISSED = 120
"""Seconds after its time when a job that has not started counts as missed."""


class PushTarget(Record):
    """The ntfy topic that a notice is also sent to, with its server and a token if one is needed."""

    topic: str
    server: str
    token: str = ""


class Job(Record):
    """A notice at a time.

    `due` is in seconds since the epoch. `label` is its name for people, unique among the jobs of its `kind`; an alarm
    without one gets one. Jobs of one `group`, such as an event of a calendar, can be cancelled together. The scheduler
    sets the fields below.
    """

    due: float
    title: str
    text: str
    kind: str = "alarm"
    label: str = ""
    group: str = ""
    push: PushTarget | None = None

    id: str = ""
    scheduler: str = ""
    handle: str = ""
    """The scheduler's id of the job."""
    began: float = 0.0
    """When its notice started to be shown, in seconds since the epoch."""
    environment: Mapping[str, str] | None = None
    """Environment variables that the notice needs to find the desktop."""
    missing: Mapping[str, str] | None = None
    """Why a way of showing it, `desktop` or `sound`, did not work on this machine when it was set."""

    def as_json(self) -> dict[str, Any]:
        """The job as plain data."""
        return {**self.as_dict(), "push": self.push.as_dict() if self.push else None}


def job_of(data: Any) -> Job:
    """The job from plain data. Raises `ValueError` if it is not valid."""
    try:
        push = PushTarget(**data["push"]) if data.get("push") else None
        job = Job(**{**data, "push": push, "due": float(data["due"]), "began": float(data.get("began", 0))})
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"it is not a job: {error}") from error
    texts = [job.title, job.text, job.kind, job.label, job.group, job.id, job.scheduler, job.handle]
    if push is not None:
        texts += [push.topic, push.server, push.token]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("it is not a job: a field is not text")
    return job


class JobFile:
    """The jobs of this user, in one private file. Methods block until they are done.

    Args:
        folder: of the file; created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "jobs.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock jobs and schedulers against other processes. The caller sets the timeout."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "schedulers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def jobs(self) -> dict[str, Job]:
        """All jobs by their ids. Raises `ValueError` if the file is damaged."""
        return self._parsed(self.path.read_bytes() if self.path.exists() else None)

    def put(self, *jobs: Job) -> None:
        """Add jobs, or replace them."""
        self._change({job.id: job for job in jobs}, ())

    def drop(self, *ids: str) -> None:
        """Remove jobs."""
        self._change({}, ids)

    def log(self, line: Mapping[str, Any]) -> None:
        """Log the outcome of a job; the newest 100 lines are kept."""

        def add(content: bytes | None) -> bytes:
            lines = (content or b"").splitlines()[1 - _LOG_LINES :]
            return b"\n".join([*lines, json.dumps(dict(line)).encode(), b""])

        update_file(self._folder / "fired.log", add)

    def _change(self, new: Mapping[str, Job], gone: tuple[str, ...]) -> None:
        def change(content: bytes | None) -> bytes:
            jobs = {**self._parsed(content), **new}
            kept = {name: job.as_json() for name, job in jobs.items() if name not in gone}
            return json.dumps(kept, indent=1).encode()

        update_file(self.path, change)

    def _parsed(self, content: bytes | None) -> dict[str, Job]:
        if content is None:
            return {}
        try:
            if len(content) > _LARGEST:
                raise ValueError("it is too large")
            return {name: job_of({**data, "id": name}) for name, data in json.loads(content).items()}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{self.path} is damaged: {error}. Move it away; the alarms in it are lost.") from error
