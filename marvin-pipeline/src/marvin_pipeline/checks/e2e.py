"""Phase 4b: an end-to-end test of the program.

An agent writes `.marvin/smoke.sh`, which uses the program through its real entry point. To show that the script tests
anything, it also has to fail in an empty folder.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from marvin_core import in_thread

from .commands import ProjectCommand
from .debug import Suite
from .files import is_file, text_of
from .repair import Finding, RepairPlan, repair, time_for_command
from .running import commands_of, run_command

if TYPE_CHECKING:
    from ..run.context import Run
    from ..run.ends import PhaseEnd

SCRIPT = ".marvin/smoke.sh"
_LARGEST = 100_000
_LEFT = re.compile(r"empty-[a-z0-9_]{8}")
"""The name of a folder made by `tempfile`."""
_MISSING = (
    f"The script {SCRIPT} does not exist yet. Write it: a Bash script that is run in the project's folder and uses "
    "the program through its real entry point, like a user who has only read the documentation."
)
_WORTHLESS = (
    f"{SCRIPT} also succeeds in an empty folder without the program, so it tests nothing. It must use the program "
    "through its real entry point, compare its output and files with the expected ones, and exit with a code other "
    "than 0 if they differ."
)


async def run_e2e(run: Run) -> PhaseEnd:
    """Run the end-to-end test and fix failures until it passes, for `e2e_rounds` rounds at most.

    Raises:
        BudgetExceeded: the budget or the time is used up.
    """
    from ..evidence.held import held_tests

    suite, held = Suite(run, "4b"), await held_tests(run, "4b")
    commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
    plan = RepairPlan(phase="4b", role="e2e", rounds=run.settings.e2e_rounds, commands=commands.told)

    async def check() -> Finding:
        smoke = await _smoke(run)
        if smoke.failure:
            return smoke
        found = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
        tested = await suite.run(found.of("install", "build", "test", "e2e"))
        return tested.replace(summary=f"{smoke.summary} {tested.summary}")

    return (await repair(run, plan, held.watched(check))).then(held.left_over())


async def _smoke(run: Run) -> Finding:
    script = run.folder / SCRIPT
    if not await in_thread(lambda: is_file(script) and bool(text_of(script).strip())):
        return Finding(failure="no script", text=_MISSING, lines=(f"{SCRIPT} is missing.",))
    processes, timeout = run.control.session.processes, time_for_command(run)
    command = ProjectCommand(kind="e2e", argv=("bash", SCRIPT), why="the end-to-end test")
    done = await run_command(processes, run.folder, command, timeout)
    if done.exit_code != 0:
        return Finding(
            failure=done.fingerprint, text=done.told, lines=(f"{done.command.shown}: {done.ending}",), failed=1
        )
    empty = await in_thread(lambda: _copied(script, run.folder))
    try:
        elsewhere = await run_command(processes, empty, command, timeout)
    finally:
        await in_thread(lambda: shutil.rmtree(empty, ignore_errors=True))
    if elsewhere.exit_code == 0:
        return Finding(failure="worthless script", text=_WORTHLESS, lines=(f"{SCRIPT} tests nothing.",))
    return Finding(passed=1, summary=f"{SCRIPT} works.")


def remove_empty_folders(root: Path) -> None:
    """Remove the empty folders that killed runs left."""
    for left in (root / ".marvin").glob("empty-*"):
        if _LEFT.fullmatch(left.name):
            shutil.rmtree(left, ignore_errors=True)


def _copied(script: Path, root: Path) -> Path:
    """A folder with only the script in it, below `.marvin`, where the sandbox allows it to run."""
    folder = Path(tempfile.mkdtemp(prefix="empty-", dir=root / ".marvin"))
    (folder / ".marvin").mkdir()
    (folder / SCRIPT).write_text(text_of(script, _LARGEST), encoding="utf-8")
    return folder
