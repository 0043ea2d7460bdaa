"""The tools run_command and jobs."""

from __future__ import annotations

import os
import signal
from typing import Annotated, Any, Literal

from marvin_core import Field, ProcessResult, ToolContext, ToolError, ToolResult, output_text, tool

OUTPUT_LIMIT = 50_000
"""Bytes of a command's output that the model sees, half from its head and half from its tail."""

_FILTER = "Filter it (grep, head, tail), or write it to a file and read parts of that."


@tool(
    access=["write", "exec", "net"],
    confirm=True,
    group="shell",
    timeout=lambda arguments: float(arguments.get("timeout", 60)),
    typed="!",
)
async def run_command(
    context: ToolContext,
    command: str,
    timeout: Annotated[int, Field(ge=1, le=3600), "Seconds"] = 60,
) -> ToolResult:
    """Run a shell command (bash) in the working directory: output, errors included, and exit code.

    There is no terminal and no input. What is left in the background (`server &`) becomes a job.
    """
    if not command.strip():
        raise ToolError("The command is empty. Pass one, for example command='ls -la'.")
    shell = context.processes.which("bash") or "sh"
    result = await context.processes.run(
        [shell, "-c", command],
        timeout=timeout,
        output_limit=OUTPUT_LIMIT,
        merge_stderr=True,
        leave_jobs=True,
    )
    output = output_text(result.output, result.omitted, _FILTER).rstrip()
    ending = _timed_out(timeout) if result.timed_out else _ended(result)
    aside = f"\n[{ending}]"
    details: dict[str, Any] = {"exit_code": result.exit_code, "elapsed": result.elapsed}
    if result.exit_code == 0 and not result.job:
        details["aside"] = aside  # who typed the command sees what a terminal would show
    return ToolResult(content=f"{output or '(no output)'}{aside}", details=details, is_error=result.timed_out)


def _timed_out(seconds: int) -> str:
    return (
        f"Command timed out after {seconds} s. It was ended, with all it had started. Pass a longer timeout "
        "(up to 3600), take smaller steps, or leave it in the background with & as a job."
    )


def _ended(result: ProcessResult) -> str:
    code = result.exit_code or 0
    ending = f"exit code {code}"
    if code < 0:
        ending = f"ended by signal {-code} ({signal.strsignal(-code)})"
    if result.job:
        ending += (
            f"; job {result.job} goes on in the background: "
            f"jobs(action='output', job_id='{result.job}') shows its output, action='stop' ends it"
        )
    return ending


@tool(access=["exec"], group="shell")
async def jobs(
    context: ToolContext,
    action: Literal["list", "output", "stop"] = "list",
    job_id: str = "",
    tail: Annotated[int, Field(ge=1, le=2000), "Last lines of the output"] = 100,
) -> str:
    """Background jobs that run_command left: list them, read one's output, stop one."""
    if action == "list":
        return _listing(context)
    if not job_id:
        raise ToolError(f"action={action!r} needs a job_id.\n{_listing(context)}")
    if action == "stop":
        stopped = await context.processes.stop_job(job_id)
        return f"Job {job_id} has ended: {stopped.command}"
    return _output(context, job_id, tail)


def _listing(context: ToolContext) -> str:
    lines = [
        f"{job.id}  {'running' if job.running else 'ended'}  pid {job.pid}  {job.command}"
        for job in context.processes.job_list()
    ]
    return "\n".join(lines) or "No jobs. A command that leaves something running (`server &`) makes one."


def _output(context: ToolContext, job_id: str, tail: int) -> str:
    job = next((job for job in context.processes.job_list() if job.id == job_id), None)
    if job is None:
        raise ToolError(f"There is no job {job_id!r}.\n{_listing(context)}")
    try:
        with job.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - OUTPUT_LIMIT))
            data = log.read()
    except OSError as error:
        raise ToolError(f"The log {job.log} cannot be read: {error.strerror}. Was it removed?") from error
    lines = output_text(data).splitlines()[-tail:]
    state = "running" if job.running else "ended"
    return "\n".join([*lines, f"[job {job_id}, {state}; {size:,} bytes in {job.log}]"])
