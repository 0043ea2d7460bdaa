"""The gates `red` and `green`: run the tests, record what they prove, and send problems back to an agent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from marvin_core import MarvinError, in_thread

from ..checks.repair import time_for_command
from ..checks.running import commands_of, run_command
from ..progress import Progress
from ..review.fixing import changed_files
from ..review.texts import fenced
from ..run.ends import PhaseEnd
from ..state import PHASES
from .judging import Before, Judgement, is_let_go, judge_green, judge_red
from .own_modules import own_modules
from .probing import without_code
from .records import EvidenceLog, Gate, GateName, TestReport
from .reports.running import commands_with_tests, run_tests
from .syntax.files import counts

if TYPE_CHECKING:
    from ..run.context import Run
    from .held import HeldTests

_NO_TESTS = (
    "No command was found that runs tests. Make them run with the usual command of the project's language: a script "
    "`test` in package.json, pytest or unittest for Python, or a target `test` in a Makefile."
)
_HOLLOW = "The tests also pass without the code, so they do not test it."
_RED_PHASES = ("2a", "2b")
_BLOCKING = 20


class NotProven(MarvinError):
    """The tests do not prove what they have to, and the agents could not fix that."""

    exit_code = 5


async def note_tests_before(run: Run, phase: str) -> None:
    """Record the tests that exist before a phase adds some, unless they are recorded.

    Raises:
        BudgetExceeded: the money or the time is used up.
    """
    proof = _Proof(run, phase)
    if await in_thread(proof.known) is not None:
        return
    found = await proof.names_now()
    if found is None:
        found = _names(await proof.reports())
    await in_thread(partial(proof.note_known, found))


async def prove_red(run: Run, phase: str, role: str, begun: str, held: HeldTests) -> None:
    """Make sure that the new tests of a phase fail, each because code is missing.

    Problems go back to the writer, `proof_rounds` times at most.

    Args:
        role: the writer of the tests.
        begun: the commit at the start of the phase.
        held: checks the writer's fixes before the tests run: a mock makes a test fail as well.

    Raises:
        NotProven: a problem remains.
        BudgetExceeded, MarvinError: as of `Run.ask_for` and `HeldTests.hold`.
    """
    proof = _Proof(run, phase)
    if await proof.holds("red"):
        return
    while True:
        commit = await run.git.checkpoint(f"{phase}: before the new tests are run")
        reports = await proof.reports()
        judged = await proof.judge_red(reports, begun, commit)
        await proof.record("red", judged, commit)
        if judged.outcome != "failed":
            await in_thread(partial(proof.note_names, _names(reports), commit))
            return
        await proof.send_back("red", judged, role)
        await held.hold(role)


async def prove_green(run: Run, phase: str, role: str, held: HeldTests, *, fixed_later: bool = False) -> PhaseEnd:
    """Make sure that the tests which failed now pass, that none is missing, and that they fail without the code.

    Problems go back to an agent, `proof_rounds` times at most.

    Args:
        role: the agent that gets the problems.
        held: checks the agent's fixes before the tests run: weakened tests pass as well.
        fixed_later: a later phase fixes failing tests; only missing tests, and tests that prove nothing, go back.

    Raises:
        NotProven: a problem remains.
        BudgetExceeded, MarvinError: as of `Run.ask_for` and `HeldTests.hold`.
    """
    proof = _Proof(run, phase)
    red = await in_thread(proof.red)
    if red is None:
        reason = "No failing tests were recorded, because the run started after 2b."
        judged = Judgement(outcome="not_measured", reason=reason)
        await proof.record("green", judged, await run.git.newest())
        return PhaseEnd(outcome="passed", reason="")
    if await proof.holds("green"):
        return PhaseEnd(outcome="passed", reason="")
    while True:
        commit = await run.git.checkpoint(f"{phase}: before the red tests are run again")
        judged = await proof.judge_green(red, commit)
        await proof.record("green", judged, commit)
        if judged.outcome != "failed":
            return PhaseEnd(outcome="passed", reason=judged.reason)
        if fixed_later and not judged.is_missing and not judged.is_hollow:
            return PhaseEnd(outcome="ended", reason=f"{judged.reason} Phase 4a fixes that.")
        await proof.send_back("green", judged, role)
        await held.hold(role)


class _Proof:
    """The gates of one phase.

    Args:
        run: gives access to agents, files and git.
        phase: the phase.
    """

    def __init__(self, run: Run, phase: str) -> None:
        self._run = run
        self._phase = phase
        self._log = EvidenceLog(run.files)
        self._progress = Progress(run.files, phase, "proof")
        self._folders: Collection[str] = ()

    def known(self) -> Collection[str] | None:
        """The tests that existed before the phase; None if they are not recorded. Blocks."""
        found = [note["known"] for note in self._progress.read() if isinstance(note.get("known"), list)]
        return frozenset(map(str, found[-1])) if found else None

    def note_known(self, names: Collection[str]) -> None:
        """Record them. Blocks."""
        self._progress.note(known=sorted(names))

    def note_names(self, names: Collection[str], commit: str) -> None:
        """Record all tests that exist at a commit. Blocks."""
        self._progress.note(names=sorted(names), commit=commit)

    async def names_now(self) -> Collection[str] | None:
        """The current tests, if an earlier phase recorded them and nothing was changed since."""
        noted = await in_thread(self._noted_before)
        if noted and await self._is_unchanged(str(noted.get("commit", ""))):
            names = noted["names"]
            return frozenset(map(str, names)) if isinstance(names, list) else None
        return None

    def _noted_before(self) -> dict[str, object]:
        for phase in reversed(PHASES[: PHASES.index(self._phase)]):
            for note in reversed(Progress(self._run.files, phase, "proof").read()):
                if "names" in note:
                    return dict(note)
        return {}

    async def holds(self, name: GateName) -> bool:
        """Whether the gate was passed, and no file of the project was changed since."""
        found = await in_thread(
            lambda: [one for one in self._log.read() if (one.name, one.phase) == (name, self._phase)]
        )
        return bool(found) and found[-1].outcome != "failed" and await self._is_unchanged(found[-1].commit)

    async def _is_unchanged(self, commit: str) -> bool:
        return await self._run.git.knows(commit) and not await changed_files(self._run, commit)

    def red(self) -> Collection[str] | None:
        """The tests that failed after 2a and 2b, as far as known; None without a gate. Blocks."""
        gates = self._red_gates()
        return tuple(dict.fromkeys(name for gate in gates for name in gate.tests)) if gates else None

    def _red_gates(self) -> Sequence[Gate]:
        """The newest passed gate of each phase that writes tests."""
        gates = (gate for gate in self._log.read() if gate.name == "red" and gate.outcome != "failed")
        return list({gate.phase: gate for gate in gates if gate.phase in _RED_PHASES}.values())

    def _let_go(self) -> Collection[str]:
        """The tests whose weakening a review accepted since they failed, as `FILE::TEST`. Blocks."""
        found: set[str] = set()
        for gate in self._log.read():
            if gate.name == "red" and gate.phase in _RED_PHASES:
                found = {one for one in found if not any(is_let_go(name, one) for name in gate.tests)}
            elif gate.name == "unweakened" and gate.outcome == "accepted":
                found.update(gate.tests)
        return found

    async def reports(self) -> Sequence[TestReport]:
        """Run the tests of the project."""
        run = self._run
        processes = run.control.session.processes
        commands = await commands_of(run.folder, processes, run.settings.test_command)
        for command in commands.of("install"):
            await run_command(processes, run.folder, command, time_for_command(run))
        found = commands_with_tests(commands)
        self._folders = {command.folder for command in found}
        reports = [await run_tests(processes, run.folder, command, time_for_command(run)) for command in found]
        run.limits.check_time()  # tests that the run's time limit cut off prove nothing
        return reports

    async def judge_red(self, reports: Sequence[TestReport], begun: str, commit: str) -> Judgement:
        """What the reports prove about the new tests.

        Args:
            begun: the commit at the start of the phase.
            commit: the commit whose tests were run.
        """
        run = self._run
        if not reports:
            return Judgement(outcome="failed", reason="No test can be run.", places=(_NO_TESTS,))
        earlier = [gate for gate in await in_thread(self._red_gates) if gate.phase == self._phase]
        as_earlier = bool(earlier) and earlier[0].outcome == "passed" and await self._has_same_tests(earlier[0].commit)
        known = await in_thread(self.known)
        before = Before(
            known=frozenset(known or ()),
            changed=frozenset(await changed_files(run, begun)),
            earlier=frozenset(name for gate in earlier for name in gate.tests),
            is_as_earlier=as_earlier,
            renamed=await self._renames([begun], commit),
        )
        own = await in_thread(lambda: own_modules(run.folder, run.files.text("design.md"), self._folders))
        return await in_thread(partial(judge_red, reports, before, own))

    async def _has_same_tests(self, commit: str) -> bool:
        """Whether no test file or test setting was changed since a commit."""
        return await self._run.git.knows(commit) and not any(map(counts, await changed_files(self._run, commit)))

    async def judge_green(self, red: Collection[str], commit: str) -> Judgement:
        """Whether the tests that failed now pass at a commit, and fail without the code."""
        gates = await in_thread(self._red_gates)
        renamed = await self._renames([gate.commit for gate in gates], commit)
        let_go = await in_thread(self._let_go)
        judged = await in_thread(partial(judge_green, await self.reports(), red, let_go, renamed))
        if judged.outcome != "passed":
            return judged
        probe = await without_code(self._run)
        if probe.reports:
            hollow = await in_thread(partial(judge_green, probe.reports, red, let_go, renamed))
            if hollow.outcome == "passed" and probe.is_loaded:
                return Judgement(outcome="failed", reason=_HOLLOW, places=(probe.told,), is_hollow=True)
            fault = probe.told if hollow.outcome == "passed" else ""
        else:
            fault = probe.fault
        return judged.replace(reason=f"{judged.reason} {fault}", faults=(fault,)) if fault else judged

    async def _renames(self, commits: Sequence[str], commit: str) -> Mapping[str, str]:
        git = self._run.git
        found = [await git.commits.renames(one, commit) for one in commits if await git.knows(one)]
        return {old: new for renames in found for old, new in renames.items()}

    async def record(self, name: GateName, judged: Judgement, commit: str) -> None:
        """Record the result with its commit, and report it."""
        run = self._run
        gate = Gate(
            name=name,
            phase=self._phase,
            outcome=judged.outcome,
            reason=judged.reason,
            commit=commit,
            tests=judged.tests,
            places=judged.places,
            faults=judged.faults,
        )
        await in_thread(partial(self._log.add, gate))
        shown = {"outcome": gate.outcome, "reason": gate.reason, "commit": commit, "places": list(gate.places)}
        run.journal.note("gate", phase=self._phase, gate=name, tests=len(gate.tests), **shown)
        run.tell(f"{self._phase}: the gate {name}: {gate.outcome}. {gate.reason}")

    async def send_back(self, name: GateName, judged: Judgement, role: str) -> None:
        """Have an agent fix the problems.

        Raises:
            NotProven: there are no attempts left.
        """
        run = self._run
        number = await in_thread(partial(self._rounds, name)) + 1
        if number > run.settings.proof_rounds:
            await in_thread(partial(self._progress.note, gate=name, ended=True))  # the next run gets another attempt
            listed = "\n".join(f"- {place}" for place in judged.places[:_BLOCKING])
            raise NotProven(
                f"Phase {self._phase} stopped the run: {judged.reason} It was repeated {number - 1} times.\n{listed}"
            )
        commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
        values = {"findings": fenced("\n".join(judged.places)), "commands": commands.told}
        await run.ask_for(role, values, phase=self._phase, prompt=f"{name}_tests")
        await in_thread(partial(self._progress.note, gate=name, round=number))

    def _rounds(self, name: GateName) -> int:
        """The number of attempts so far."""
        count = 0
        for note in self._progress.read():
            if note.get("gate") == name:
                count = 0 if note.get("ended") else count + 1
        return count


def _names(reports: Sequence[TestReport]) -> Collection[str]:
    return frozenset(result.name for report in reports for result in report.results)
