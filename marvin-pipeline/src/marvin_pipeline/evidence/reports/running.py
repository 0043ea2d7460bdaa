"""Runs a project's tests in the sandbox and collects the reports of their runners."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from marvin_core import Processes, counted, in_thread, one_line

from ...checks.commands import ProjectCommand, ProjectCommands
from ...checks.running import CommandRun, run_command
from ..records import TestReport
from .cargo import build_argv, read_cargo
from .go import list_argv, read_go, with_unbuilt
from .plans import OF_PYTHON, Plan, plan_of
from .reading import LARGEST, ReadReport, read_lines

_LEFT = re.compile(r"evidence-[a-z0-9_]{8}")
"""The name of a folder made by `tempfile`."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_SAID = 400
"""Characters of the output that are shown without a complete report."""
_OUTPUT = 4_000_000
"""Bytes of standard output that are kept if it contains the report."""


def commands_with_tests(commands: ProjectCommands) -> Sequence[ProjectCommand]:
    """The commands that run tests; for Python those of `test` run the ones of `e2e` as well."""
    tests = commands.of("test")
    known = {one.argv[:3] for one in tests}
    return (*tests, *(one for one in commands.of("e2e") if one.argv[:3] not in known))


async def run_tests(processes: Processes, root: Path, command: ProjectCommand, timeout: float) -> TestReport:
    """Run a test command and return its report.

    Args:
        timeout: in seconds.
    """
    folder = await in_thread(lambda: _made(root))
    try:
        report = folder / "report.jsonl"
        plan = await in_thread(lambda: plan_of(command, root, report))
        if plan.form == "cargo":
            if broken := await _broken(processes, root, command, timeout):
                return broken
            plan = plan.replace(runner="", form="exit code")
        done = await run_command(processes, root, plan.command, timeout, _OUTPUT if plan.form == "go" else None)
        if plan.form == "go":
            read = await _of_go(processes, root, plan.command, done, timeout)
        else:
            read = await in_thread(lambda: _read(plan, root, report, done))
    finally:
        await in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))
    return _told(command, plan.runner, done, read)


async def _broken(processes: Processes, root: Path, command: ProjectCommand, timeout: float) -> TestReport | None:
    """Cargo's report of tests that do not compile; None if they do."""
    build = command.replace(argv=build_argv(command.argv))
    done = await run_command(processes, root, build, timeout, _OUTPUT)
    if done.exit_code == 0:
        return None
    return _told(command, "cargo", done, await in_thread(lambda: read_cargo(_bytes(done), root, command.folder)))


async def _of_go(
    processes: Processes, root: Path, command: ProjectCommand, done: CommandRun, timeout: float
) -> ReadReport:
    """Go's report of tests, and after a failure of packages that do not build."""
    report = await in_thread(lambda: read_go(_bytes(done)))
    listing = list_argv(command.argv)
    if not done.exit_code or not listing:
        return report.read
    listed = await run_command(processes, root, command.replace(argv=listing), timeout, _OUTPUT)
    return await in_thread(lambda: with_unbuilt(report, _bytes(listed), command.folder))


def _bytes(done: CommandRun) -> bytes:
    return done.output.encode("utf-8", "replace")


def _told(command: ProjectCommand, runner: str, done: CommandRun, read: ReadReport) -> TestReport:
    fault = read.fault
    if done.exit_code is None:
        fault = f"The command did not finish: {done.ending}."
    elif runner and not fault:
        fault = _contradiction(read, runner, done.exit_code)
    if fault and (said := one_line(done.output[-_SAID:])):
        fault = f"{fault} Its output ends with: {said}"
    return TestReport(command=command.shown, runner=runner, exit_code=done.exit_code, results=read.results, fault=fault)


def _contradiction(read: ReadReport, runner: str, code: int) -> str:
    """Why a report and its command's exit code contradict each other; empty if they do not."""
    failures = sum(one.outcome in ("failed", "error") for one in read.results)
    if failures and code == 0:
        return f"The report has {counted(failures, 'failure')}, and yet the command ended with exit code 0."
    if (read.results or runner == "go") and not failures and code != 0:
        return f"The report has no failure, and yet the command ended with exit code {code}."
    return ""


def _read(plan: Plan, root: Path, report: Path, done: CommandRun) -> ReadReport:
    if plan.form == "exit code":
        return ReadReport()
    folder = root / plan.command.folder
    if plan.runner in ("pytest", "unittest") and any(folder.glob(f"{OF_PYTHON}*")):  # Python would take it for ours
        return ReadReport(fault=f"The project has a module {OF_PYTHON}, which is also the name of Marvin's reporters.")
    return read_lines(_content(report), plan.command.folder)


def _content(report: Path) -> bytes:
    """The content of the report; empty if there is no regular file."""
    try:
        descriptor = os.open(report, _FLAGS)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(LARGEST) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""


def _made(root: Path) -> Path:
    """A folder for the report, below `.marvin`, where commands in the sandbox can write."""
    return Path(tempfile.mkdtemp(prefix="evidence-", dir=root / ".marvin"))


def remove_reports(root: Path) -> None:
    """Remove the reports that killed runs left."""
    for left in (root / ".marvin").glob("evidence-*"):
        if _LEFT.fullmatch(left.name):
            shutil.rmtree(left, ignore_errors=True)
