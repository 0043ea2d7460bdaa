"""The tool jobs: background jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from marvin_core import Field, Job, ToolContext, ToolError, one_line, output_text, tool

from .adapters import JOB_IGNORED, JOB_NAMES, LONGEST, job_arguments
from .commands import OUTPUT_LIMIT, exit_text, shown_path

_OWN_TIME = 60
"""Seconds for the call itself, in addition to the wait."""
_FOR_TEXT = 60
"""Seconds to wait for a text if the call gives none."""
_SEARCHED = 1_000_000
_SHOWN = 200
"""Characters of a job's command."""


class _Looks:
    """How much of each job's output was shown, in bytes: all of it, and without an incomplete last line."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.lines: dict[str, int] = {}


@asynccontextmanager
async def _looks() -> AsyncIterator[_Looks]:
    yield _Looks()


def _time_out(arguments: Mapping[str, Any]) -> float:
    return _OWN_TIME + _FOR_TEXT + min(float(arguments.get("wait") or 0), LONGEST)


@tool(
    known_as=["bashoutput", "killbash", "killshell", "taskoutput", "write_stdin"],
    access=["exec"],
    group="shell",
    timeout=_time_out,
    aliases=JOB_NAMES,
    ignores=JOB_IGNORED,
    adapt=job_arguments,
)
async def jobs(
    context: ToolContext,
    action: Annotated[Literal["list", "output", "stop"], "What to do"] = "list",
    job_id: Annotated[str, "For output and stop"] = "",
    tail: Annotated[int, Field(ge=1, le=2000), "Newest lines to show"] = 100,
    wait: Annotated[int, "Seconds to wait for its end"] = 0,
    until: Annotated[str, "Wait for this text in new output"] = "",
) -> str:
    """Background jobs: list them with exit codes, show what one printed since the last look, stop one."""
    if not job_id and action == "list":
        return _listing(context)
    if not job_id:
        raise ToolError(f"action={action!r} needs a job_id.\n{_listing(context)}")
    if not 0 <= wait <= LONGEST:
        raise ToolError(f"wait={wait} is out of range. Pass 0 to {LONGEST} seconds.")
    job = _job(context, job_id)
    if action == "stop":
        stopped = await context.processes.stop_job(job_id)
        return f"Job {job_id} has ended: {one_line(stopped.command, _SHOWN)}"
    looks = await context.resource(_looks)
    since = looks.lines.get(job_id, 0)
    seconds = wait or (_FOR_TEXT if until else 0)
    found = await _wait(context, job, since, seconds, until) if seconds else ""
    return "\n".join(filter(None, (_news(context, _now(context, job), tail, looks), found)))


def _listing(context: ToolContext) -> str:
    lines = [
        f"{job.id}  {_state(job)}  pid {job.pid}  {one_line(job.command, _SHOWN)}"
        for job in context.processes.job_list()
    ]
    return "\n".join(lines) or "There are no jobs. run_command with background=true starts one."


def _state(job: Job) -> str:
    if job.running or job.exit_code is None:
        return "running" if job.running else "ended"
    return f"ended, {exit_text(job.exit_code)}" if job.exit_code >= 0 else exit_text(job.exit_code)


def _job(context: ToolContext, job_id: str) -> Job:
    for job in context.processes.job_list():
        if job.id == job_id:
            return job
    raise ToolError(f"There is no job {job_id!r}.\n{_listing(context)}")


def _now(context: ToolContext, job: Job) -> Job:
    """The current state of a job. Jobs that outlive their session are listed as long as they run."""
    return next((one for one in context.processes.job_list() if one.id == job.id), job.replace(running=False))


async def _wait(context: ToolContext, job: Job, since: int, seconds: int, until: str) -> str:
    """Wait for a job's end or for a text; returns what did not come in time."""
    deadline = time.monotonic() + seconds
    searched = since
    while True:
        running = _now(context, job).running
        data, total = context.processes.job_output(job.id, _SEARCHED, searched)
        if until and until in output_text(data):
            return ""
        searched = total - len(data) + data.rfind(b"\n") + 1
        if not running:
            return f"[It ended, and its new output does not contain {until!r}.]" if until else ""
        if time.monotonic() >= deadline:
            return f"[Waited {seconds} s for {repr(until) if until else 'its end'} without success.]"
        await asyncio.sleep(context.timeouts.job_poll)


def _news(context: ToolContext, job: Job, tail: int, looks: _Looks) -> str:
    """The output since the last call. A line that was incomplete then is shown again in full."""
    since = looks.lines.get(job.id, 0)
    data, total = context.processes.job_output(job.id, OUTPUT_LIMIT, since)
    unchanged = job.id in looks.seen and looks.seen[job.id] == total
    begin = total - len(data)
    cut = data.find(b"\n") + 1 if begin > since else 0  # half a line could be half a secret
    looks.seen[job.id], looks.lines[job.id] = total, begin + data.rfind(b"\n") + 1
    lines = [] if unchanged else output_text(data[cut:]).splitlines()
    shown = lines[-tail:]
    log = shown_path(job.log, context.paths.root)
    if unchanged:
        shown = ["(no new output since the last call)"]
    elif cut or len(shown) < len(lines):
        shown.insert(0, f"[older output is left out; {log} has it]")
    return "\n".join([*shown, f"[job {job.id}, {_state(job)}; {total:,} bytes in {log}]"])
