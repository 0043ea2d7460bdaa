"""Phase 4a: the project is built and its tests are run, and mended until they pass."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from .mending import Finding, Mending, mend, time_for_command
from .running import CommandRun, commands_of, run_until_failure

if TYPE_CHECKING:
    from ..run.context import Run
    from ..run.ends import PhaseEnd
    from .commands import ProjectCommand

_NO_TESTS = (
    "No command was found that tests this project. Make its tests run by the usual command of its language: a script "
    "`test` in package.json, pytest or unittest for Python, or a target `test` in a Makefile."
)
_NAMES = 20


class Suite:
    """The tests of a project, run again and again. It remembers how many there were: none is to get lost.

    Args:
        run: the run of the pipeline.
        most: how many there were before.
    """

    def __init__(self, run: Run, most: int = 0) -> None:
        self._run = run
        self._most = most

    async def check(self) -> Finding:
        """Install, build and test."""
        commands = await commands_of(self._run.folder, self._run.control.session.processes)
        return await self.run(commands.of("install", "build", "test"))

    async def run(self, commands: Sequence[ProjectCommand]) -> Finding:
        """Run commands up to the first that fails, and say what that means."""
        if not any(command.kind in ("test", "e2e") for command in commands):
            return Finding(failure="no tests", text=_NO_TESTS, lines=(_NO_TESTS,))
        run = self._run
        done = await run_until_failure(run.control.session.processes, run.folder, commands, time_for_command(run))
        passed = sum(one.counts.passed or 0 for one in done)
        failed = sum(one.counts.failed or len(one.counts.names) for one in done)
        if not done[-1].passed:
            self._most = max(self._most, passed + failed)
            return _failed(done[-1], passed, failed)
        if passed + failed < self._most:
            return self._fewer(done[-1], passed + failed)
        self._most = max(self._most, passed + failed)
        summary = f"Run: {', '.join(one.command.shown for one in done)}; {passed} tests passed."
        return Finding(passed=passed, summary=summary)

    def _fewer(self, last: CommandRun, count: int) -> Finding:
        line = f"The tests pass, but there are only {count} of the {self._most} that there were: some are gone."
        text = (
            f"{line} Tests are what the project is held to: bring back those that were removed or skipped, and mend "
            f"the program instead.\n\n{last.told}"
        )
        return Finding(failure=f"fewer tests {count}", text=text, lines=(line,), passed=count, failed=0)


async def run_debug(run: Run) -> PhaseEnd:
    """Run the tests and mend until they pass, for `debug_rounds` rounds at most.

    Raises:
        BudgetExceeded: the money or the time is used up.
    """
    commands = await commands_of(run.folder, run.control.session.processes)
    mending = Mending(phase="4a", role="debug", rounds=run.settings.debug_rounds, commands=commands.told)
    return await mend(run, mending, Suite(run).check)


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
