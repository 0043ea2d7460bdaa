"""Maps calls of the shell tools, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from marvin_core import ToolError

from ..adapters import IGNORED, for_real, number, opposite, refuse, taken, truth

LONGEST = 3600
"""Seconds that a command, or waiting for one, may take."""
_SHELLS = ("bash", "sh", "zsh", "dash")
_RUN_OPTIONS = ("-c", "-lc", "-ic", "-lic")
_WAIT = 60

RUN_NAMES = {
    "command": ("cmd", "script", "commandLine", "command_line", "CommandLine", "shell_command", "bash_command"),
    "timeout": ("timeout_seconds", "timeoutSeconds", "timeout_secs", "timeout_sec", "timeout_s", "max_time"),
    "cwd": (
        *("workdir", "working_dir", "workingDir", "working_directory", "workingDirectory", "directory", "dir_path"),
        *("cd", "Cwd", "dir", "folder"),
    ),
    "background": ("run_in_background", "runInBackground", "is_background", "isBackground", "detach"),
}
RUN_IGNORED = (
    *(*IGNORED, "justification", "login", "shell", "tty", "pty", "max_output_tokens", "sandbox_permissions"),
    *("with_escalated_permissions", "prefix_rule", "requires_approval", "require_user_approval", "security_risk"),
    *("dangerouslyDisableSandbox", "yield_time_ms", "goal", "SafeToAutoRun", "task_progress", "max_chars", "name"),
)
JOB_NAMES = {
    "job_id": (
        *("bash_id", "shell_id", "task_id", "id", "session_id", "jobId", "process_id", "terminal_id", "job"),
        "shellId",
    ),
    "tail": ("lines", "limit", "n", "max_lines", "tail_lines"),
    "until": ("wait_for", "wait_for_text", "until_text"),
}
JOB_IGNORED = (*IGNORED, "filter", "signal", "max_output_tokens", "task_progress")
_ACTIONS = {
    **dict.fromkeys(("kill", "terminate", "end", "cancel"), "stop"),
    **dict.fromkeys(("read", "poll", "get", "status", "log", "logs", "tail", "show", "wait"), "output"),
}


def run_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of run_command."""
    for_real(given)
    refuse(given, ("stdin", "input", "is_input"), "Write the input into the command: printf '%s' 'text' | program.")
    refuse(given, ("env", "environment"), "Write variables before the command: NAME=value program.")
    refuse(given, ("restart",), "Each call has its own shell; jobs(action='stop') stops background jobs.")
    several = taken(given, "commands")
    if given.get("command") is None and isinstance(several, list):
        given["command"] = "\n".join(map(str, several))
    command = _line(given.get("command"))
    operands = taken(given, "args", "arguments", "parameters")
    if isinstance(command, str) and isinstance(operands, list):
        command = " ".join([command, *(shlex.quote(str(word)) for word in operands)])
    elif isinstance(command, str) and isinstance(operands, str):
        command = f"{command} {operands}"
    elif operands:
        given["args"] = operands  # refused by name
    if command is not None:
        given["command"] = command
    opposite(given, "background", "Blocking", "blocking", "block", "wait")
    milliseconds = taken(given, "timeout_ms", "timeoutMs", "timeout_millis")
    if given.get("timeout") is not None:
        given["timeout"] = _seconds(given["timeout"])
    elif milliseconds is not None:
        given["timeout"] = _of_milliseconds(number("timeout_ms", milliseconds))
    return given


def _line(command: Any) -> Any:
    """A command as one line, also from a list of words or a JSON list."""
    if isinstance(command, str) and command.startswith('["'):
        try:
            command = json.loads(command)
        except (ValueError, RecursionError):
            return command
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        return command
    if len(command) == 1:
        return command[0]
    shell = command[0].rpartition("/")[2]
    if len(command) == 3 and shell in _SHELLS and command[1] in _RUN_OPTIONS:
        return command[2]
    return shlex.join(command)


def _seconds(value: Any) -> Any:
    """A timeout in seconds; a value in the thousands that exceeds the maximum is read as milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        seconds = number("timeout", value)
    except ToolError:
        return value
    return _of_milliseconds(seconds) if seconds > LONGEST and seconds % 1000 == 0 else seconds


def _of_milliseconds(value: int) -> int:
    return min(LONGEST, max(1, -(-value // 1000)))


def job_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of jobs."""
    refuse(
        given,
        ("chars", "input", "stdin", "text"),
        "Programs run without standard input; pipe the input in the command.",
    )
    action = given.get("action")
    if isinstance(action, str):
        given["action"] = _ACTIONS.get(action.lower(), action)
    wait = truth(taken(given, "wait", "block", "blocking"))
    waited = taken(given, "timeout", "wait_seconds", "seconds", "wait_up_to", "WaitDurationSeconds")
    milliseconds = taken(given, "timeout_ms", "yield_time_ms")
    if isinstance(wait, bool):
        wait = _WAIT if wait else 0
        waited = waited if wait else None
    if waited is not None:
        wait = _seconds(waited)
    elif milliseconds is not None:
        wait = _of_milliseconds(number("timeout_ms", milliseconds))
    if wait is not None:
        given["wait"] = wait
    return given
