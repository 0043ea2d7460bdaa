"""The tool run_command."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Annotated, Any

from marvin_core import Field, Job, ProcessResult, ToolContext, ToolError, ToolResult, is_patch, output_text, tool

from .adapters import RUN_IGNORED, RUN_NAMES, run_arguments

OUTPUT_LIMIT = 50_000
"""Bytes of a command's output that the model sees, half from the start and half from the end."""
_ONE_ARGUMENT = 100_000
"""Bytes of a command that is passed as an argument. Linux allows 131,071 in one."""
_FROM_INPUT = 'command=$(cat) && exec </dev/null && eval "unset command; $command"'

_PATCHING = re.compile(r"\s*(?:cd\s+\S+\s*&&\s*)?(apply_?patch)\s")
"""The beginning of a command that runs a program of Codex."""
_NO_PATCHING = re.compile(r"\bapply_?patch: (?:command )?not found")
_PATCHING_TOOL = (
    "Call the tool apply_patch with the patch, with paths below the working directory: "
    'apply_patch({"patch": "*** Begin Patch\\n..."}).'
)

_FILTER = "Filter it (grep, head, tail), or write it to a file and read parts of that."


@tool(
    known_as=[
        "bash",
        "shell",
        "exec",
        "exec_command",
        "execute_command",
        "ipython",
        "local_shell",
        "run_shell_command",
        "run_terminal_cmd",
        "terminal",
    ],
    access=["write", "exec", "net"],
    confirm=True,
    group="shell",
    timeout=lambda arguments: float(arguments.get("timeout", 60)),
    typed="!",
    aliases=RUN_NAMES,
    ignores=RUN_IGNORED,
    adapt=run_arguments,
)
async def run_command(
    context: ToolContext,
    command: Annotated[str, "The command line"],
    timeout: Annotated[int, Field(ge=1, le=3600), "Seconds"] = 60,
    cwd: Annotated[str, "Folder to run in; cd affects only this command"] = "",
    background: Annotated[bool, "Return at once; jobs shows it"] = False,
) -> ToolResult:
    """Run a bash command: its output with errors, and its exit code. No terminal, no input. Servers need background.

    Of output over 50 KB the middle is in a file, which is named. Files have tools of their own.
    """
    if not command.strip():
        raise ToolError("The command is empty. Pass one, for example command='ls -la'.")
    _check_patching(context, command)
    folder = _folder(context, cwd)
    shell = context.processes.which("bash") or "sh"
    given = command.encode("utf-8", "surrogatepass")
    long = len(given) > _ONE_ARGUMENT
    argv, stdin = [shell, "-c", _FROM_INPUT if long else command], given if long else None
    if background:
        return _started(await context.processes.start_job(argv, cwd=folder, stdin=stdin, title=command))
    result = await context.processes.run(
        argv,
        cwd=folder,
        stdin=stdin,
        timeout=timeout,
        output_limit=OUTPUT_LIMIT,
        merge_stderr=True,
        leave_jobs=True,
        keep_output=True,
        on_output=context.progress,
        title=command,
    )
    output = output_text(result.output, result.omitted, _rest(result, context.paths.root)).rstrip()
    ending = _timed_out(timeout) if result.timed_out else _ended(result)
    if result.exit_code and _NO_PATCHING.search(output):
        ending += f". {_PATCHING_TOOL}"
    aside = f"\n[{ending}]"
    details: dict[str, Any] = {"exit_code": result.exit_code, "elapsed": result.elapsed}
    if result.exit_code == 0 and not result.job:
        details["aside"] = aside  # a person who typed the command sees what a terminal would show
    return ToolResult(content=f"{output or '(no output)'}{aside}", details=details, is_error=result.timed_out)


def _check_patching(context: ToolContext, command: str) -> None:
    """Refuse a command that applies a patch with a program that is not there: a tool does it here."""
    found = _PATCHING.match(command)
    if found and is_patch(command) and context.processes.which(found[1]) is None:
        raise ToolError(f"Nothing was run: there is no such program. {_PATCHING_TOOL}")


def _folder(context: ToolContext, cwd: str) -> Path | None:
    if not cwd:
        return None
    if context.paths.stat(cwd).kind != "folder":
        raise ToolError(f"cwd={cwd!r} is not a folder. Pass a folder inside the working directory, or leave cwd out.")
    return context.paths.root / context.paths.locate(cwd)


def shown_path(path: Path, root: Path) -> str:
    """A path as tools take it: relative to the working directory if it lies in it."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _rest(result: ProcessResult, root: Path) -> str:
    if result.file is None:
        return _FILTER
    total = len(result.output) + result.omitted
    what = "All of it is" if result.file_size >= total else f"Its first {result.file_size:,} bytes are"
    return f"{what} in {shown_path(result.file, root)}: read_file with a range, or run_command with grep"


def _started(job: Job) -> ToolResult:
    if job.running:
        text = f"[job {job.id} runs in the background; {how_to_look(job.id)}]"
    else:
        text = f"[job {job.id} has ended already with exit code {job.exit_code}; {how_to_look(job.id)}]"
    return ToolResult(content=text, details={"job": job.id})


def how_to_look(job_id: str) -> str:
    """The calls with which the model can inspect a job."""
    return f"jobs(action='output', job_id='{job_id}') shows its output, action='stop' stops it"


def _timed_out(seconds: int) -> str:
    return (
        f"Command timed out after {seconds} s. It was stopped, with all processes that it had started. Pass a longer "
        "timeout (up to 3600), use smaller steps, or start it as a job with background=true."
    )


def _ended(result: ProcessResult) -> str:
    ending = exit_text(result.exit_code or 0)
    if result.job:
        ending += f"; job {result.job} continues in the background: {how_to_look(result.job)}"
    return ending


def exit_text(code: int) -> str:
    """How a program exited."""
    return f"ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
