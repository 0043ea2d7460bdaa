"""Runs a project's commands: in the sandbox, with a timeout, and with as much output as an agent can read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from marvin_core import Processes, Record, ToolError, head_and_tail, in_thread, output_text

from .commands import ProjectCommand, ProjectCommands, find_commands
from .outcome import TestCounts, counts_of, fingerprint

_OUTPUT = 400_000
"""Bytes of a command's output that are kept."""
_SHOWN = 12_000
"""Characters of it that an agent gets."""


class CommandRun(Record):
    """The result of a command. `exit_code` is None if it timed out or could not be started."""

    command: ProjectCommand
    exit_code: int | None
    output: str
    counts: TestCounts = TestCounts()
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether it succeeded; a test run without tests did not."""
        return self.exit_code == 0 and not (self.command.kind in ("test", "e2e") and self.counts.is_empty)

    @property
    def fingerprint(self) -> str:
        """A fingerprint that is equal for the same failure."""
        return fingerprint(self.command.shown, self.exit_code, self.output)

    @property
    def ending(self) -> str:
        """How it ended, as text."""
        if self.timed_out:
            return f"it did not end within {self.seconds:.0f} s and was ended"
        if self.exit_code is None:
            return "it could not be started"
        if self.exit_code == 0 and not self.passed:
            return "it ran no tests"
        return f"exit code {self.exit_code}" if self.exit_code >= 0 else f"killed by signal {-self.exit_code}"

    @property
    def told(self) -> str:
        """The command, its end and its output, for an agent."""
        shown = head_and_tail(self.output.strip(), _SHOWN, "Run the command yourself to see the whole output.")
        return f"$ {self.command.shown}\n{shown}\n[{self.ending}]"


async def commands_of(root: Path, processes: Processes, test_command: str = "") -> ProjectCommands:
    """The current commands of a project: agents add and change them.

    Args:
        test_command: the configured one, which replaces the test commands that are found.
    """
    return await in_thread(lambda: find_commands(root, processes.which, test_command))


async def run_command(
    processes: Processes, root: Path, command: ProjectCommand, timeout: float, most: int | None = None
) -> CommandRun:
    """Run a command to its end.

    Args:
        timeout: in seconds; then it is killed with all its child processes.
        most: bytes of output to keep, if not the default.
    """
    folder = root / command.folder
    argv = list(command.argv)
    if "/" in argv[0] and not argv[0].startswith("/"):  # an environment in the project's folder is part of the project
        argv[0] = str(folder / argv[0])
    try:
        done = await processes.run(
            argv,
            cwd=folder,
            timeout=timeout,
            output_limit=most or _OUTPUT,
            merge_stderr=True,
            env=dict(command.environment),
            title=command.shown,
        )
    except ToolError as error:
        return CommandRun(command=command, exit_code=None, output=str(error))
    output = "\n".join(filter(None, (output_text(done.output, done.omitted), done.held_back)))
    code = None if done.timed_out else done.exit_code
    return CommandRun(
        command=command,
        exit_code=code,
        output=output,
        counts=counts_of(output),
        timed_out=done.timed_out,
        seconds=done.elapsed,
    )


async def run_until_failure(
    processes: Processes, root: Path, commands: Iterable[ProjectCommand], timeout: float
) -> list[CommandRun]:
    """Run commands one after the other up to the first failure, which is then the last result."""
    done: list[CommandRun] = []
    for command in commands:
        done.append(await run_command(processes, root, command, timeout))
        if not done[-1].passed:
            break
    return done
