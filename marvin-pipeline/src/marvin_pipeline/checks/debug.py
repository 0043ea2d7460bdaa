"""Phase 4a: the project is built, its tests are run, and failures are fixed until they pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from marvin_core import in_thread

from ..progress import most_tests, note_tests
from ..state import PHASES
from .repair import Finding, RepairPlan, repair, time_for_command
from .running import CommandRun, commands_of, run_until_failure

if TYPE_CHECKING:
    from ..evidence.held import HeldTests
    from ..run.context import Run
    from ..run.ends import PhaseEnd
    from .commands import ProjectCommand

_NO_TESTS = (
    "No command was found that tests this project. Make its tests run with the usual command of its language: a "
    "script `test` in package.json, pytest or unittest for Python, or a target `test` in a Makefile."
)
_NAMES = 20
_TESTING = ("test", "e2e")
"""The kinds of commands that run tests."""


class Suite:
    """Runs the tests of a project repeatedly. It remembers their number, so that none is lost.

    Args:
        run: the run of the pipeline.
        phase: the phase: counts of it and earlier ones are remembered, also if the run was
            killed since. Without a phase only counts of this suite are.
        most: the number of tests before, in addition.
    """

    def __init__(self, run: Run, phase: str = "", most: int = 0) -> None:
        self._run = run
        self._phase = phase
        self._before = {"test": most}
        self._most: dict[str, int] | None = None

    async def check(self) -> Finding:
        """Install, build and test."""
        run = self._run
        commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
        return await self.run(commands.of("install", "build", "test"))

    async def run(self, commands: Sequence[ProjectCommand]) -> Finding:
        """Run commands up to the first failure; returns the finding."""
        if not any(command.kind in _TESTING for command in commands):
            return Finding(failure="no tests", text=_NO_TESTS, lines=(_NO_TESTS,))
        run = self._run
        done = await run_until_failure(run.control.session.processes, run.folder, commands, time_for_command(run))
        passed = sum(one.counts.passed or 0 for one in done)
        failed = sum(_failures(one) for one in done)
        before = await in_thread(lambda: self._counted(done))
        if not done[-1].passed:
            return _failed(done[-1], passed, failed)
        counts = _counts(done)
        for kind, most in before.items():
            if counts.get(kind, most) < most:
                return _fewer(done[-1], kind, counts[kind], most)
        summary = f"Run: {', '.join(one.command.shown for one in done)}; {passed} tests passed."
        return Finding(passed=passed, summary=summary)

    def _counted(self, done: Sequence[CommandRun]) -> Mapping[str, int]:
        """The highest number of tests before, by kind of command; the counts of this run are added."""
        if self._most is None:
            phases = PHASES[: PHASES.index(self._phase) + 1] if self._phase else ()
            self._most = {**self._before, **most_tests(self._run.files, phases)}
        before = dict(self._most)
        counts = _counts(done)
        self._most |= {kind: max(count, before.get(kind, 0)) for kind, count in counts.items()}
        if self._phase and self._most != before:
            note_tests(self._run.files, self._phase, self._most)
        return before


def _counts(done: Sequence[CommandRun]) -> dict[str, int]:
    """The number of tests that each kind of command ran."""
    counts: dict[str, int] = {}
    for one in done:
        if one.command.kind in _TESTING:
            counts[one.command.kind] = counts.get(one.command.kind, 0) + (one.counts.passed or 0) + _failures(one)
    return counts


def _failures(one: CommandRun) -> int:
    return one.counts.failed or len(one.counts.names)


def _fewer(last: CommandRun, kind: str, count: int, most: int) -> Finding:
    line = f"The tests pass, but only {count} of the earlier {most} exist: some were removed."
    text = (
        f"{line} The project must pass its original tests: restore those that were removed or skipped, and fix the "
        f"program instead.\n\n{last.told}"
    )
    return Finding(failure=f"fewer tests {kind} {count}", text=text, lines=(line,), passed=count, failed=0)


async def run_debug(run: Run, held: HeldTests) -> PhaseEnd:
    """Run the tests and fix failures until they pass unchanged, for `debug_rounds` rounds at most.

    Raises:
        BudgetExceeded: the budget or the time is used up.
    """
    commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
    plan = RepairPlan(phase="4a", role="debug", rounds=run.settings.debug_rounds, commands=commands.told)
    return await repair(run, plan, held.watched(Suite(run, "4a").check))


def _failed(last: CommandRun, passed: int, failed: int) -> Finding:
    names = last.counts.names[:_NAMES]
    line = f"{last.command.shown}: {last.ending}"
    return Finding(
        failure=sha256(f"{last.fingerprint} {last.ending if last.timed_out else ''}".encode()).hexdigest()[:16],
        text=last.told,
        lines=(line, *(f"failed: {name}" for name in names)),
        passed=passed,
        failed=max(failed, 1),
    )
