"""The process of a review job: rounds of reviews and fixes in its worktree, then a report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from marvin_core import BudgetExceeded, MarvinError, Record, RunControl, TurnResult, in_thread

from ..checks.debug import Suite
from ..checks.repair import RepairPlan, repair
from ..checks.running import commands_of
from ..progress import Progress
from ..prompts.loading import Prompts
from ..run.checkpoints import Checkpoints
from ..run.context import Run
from ..run.ends import PhaseEnd
from ..run.files import ProjectFiles
from ..run.journal import Journal
from ..run.limits import RunLimits
from ..run.request import PipelineRequest
from ..run.tickets import Tickets
from ..run.upstream import copy_upstream
from ..settings import PipelineSettings
from ..state import PipelineState
from .focus import focus_text
from .places import Place, check_left_out
from .records import HISTORY, NAME, PHASE, JobState, ReviewJob, ReviewJobs, ReviewOrder
from .texts import job_text

if TYPE_CHECKING:
    from ..review.subjects import Subject

_REPAIR_ROUNDS = 5
"""Rounds of fixes for tests that passed before the review and fail now."""
_TRACEBACK = 2_000
_LINES = 100
"""Findings of each kind that are stored for a running job."""


class ReviewStopped(MarvinError):
    """A review ended without passing; the text says why."""


class JobJournal(Journal):
    """The journal of a job, which also reports its progress.

    Args:
        job: the current state of the job.
        progressed: called, from any thread, after each round or agent.
    """

    def __init__(self, job: ReviewJob, progressed: Callable[[], None]) -> None:
        super().__init__(ProjectFiles(Path(job.order.tree)))
        self.round = job.round
        self.blocking = job.blocking
        self.carried = job.carried
        self._progressed = progressed

    def note(self, event: str, **fields: Any) -> None:
        """Add a line. Raises as `Journal.note`."""
        super().note(event, **fields)
        if event in ("review", "agent"):
            self.round = fields.get("round", self.round)
            self.blocking = tuple(fields.get("blocking", self.blocking))[:_LINES]
            self.carried = tuple(fields.get("carried", self.carried))[:_LINES]
            self._progressed()


class TestsBefore(Record):
    """The test results of a code base before its review."""

    passed: bool
    count: int


class ReviewWork:
    """Runs one job.

    Args:
        control: the session of its process.
        settings: its limits.
        jobs: the stored jobs.
        job: the job.
    """

    def __init__(self, control: RunControl, settings: PipelineSettings, jobs: ReviewJobs, job: ReviewJob) -> None:
        self._control = control
        self._settings = settings
        self._jobs = jobs
        self._job = job
        self._before = job
        """The job at the start of this process: it may have run before."""
        self._order: ReviewOrder = job.order
        self._begun = control.clock.monotonic()
        self._journal = JobJournal(job, self._progressed)
        self._loop = asyncio.get_running_loop()
        self._writing: set[asyncio.Task[ReviewJob]] = set()

    async def run(self) -> TurnResult:
        """Run it, and always store its end; the text of the result is that of the report."""
        error: MarvinError | None = None
        end = self._cut_short("")
        try:
            end = await self._reviewed()
        except asyncio.CancelledError:
            await self._keep("stopped", self._cut_short("It was stopped."))
            raise
        except BudgetExceeded as stopped:
            error = stopped
        except MarvinError as stopped:
            error = ReviewStopped(str(stopped))
        except Exception as mistake:  # the job gets an end and a report all the same
            self._journal.note("mistake", traceback="".join(format_exception(mistake))[-_TRACEBACK:])
            error = ReviewStopped(f"A bug in the review stopped it: {mistake!r}.")
        if error is not None:
            end = self._cut_short(str(error))
        state: JobState = "budget" if isinstance(error, BudgetExceeded) else _STATES[end.outcome]
        can_go_on = error is not None and self._has_worked
        if error is None and state == "failed":
            error = ReviewStopped(end.reason)
        return TurnResult(text=await self._finish(state, end, can_go_on=can_go_on), error=error)

    def _cut_short(self, reason: str) -> PhaseEnd:
        """The result of an interrupted job: open findings stay open."""
        journal = self._journal
        return PhaseEnd(outcome="failed", reason=reason, blocking=journal.blocking, carried=journal.carried)

    @property
    def _has_worked(self) -> bool:
        """Whether there is work to resume."""
        answered = any(agent.ended == "answered" for agent in self._journal.agents)
        return answered or self._before.round > 0

    async def _reviewed(self) -> PhaseEnd:
        from ..review.rounds import ReviewLoop

        run = await self._begin()
        commands = await commands_of(run.folder, self._control.session.processes, run.settings.test_command)
        before = await self._tests_before(run) if commands.of("test") else None
        subject = await self._subject(run, commands.told)
        end = PhaseEnd(outcome="passed", reason="").then(await ReviewLoop(run, subject).run())
        if before is not None and before.passed:
            plan = RepairPlan(phase=PHASE, role="debug", rounds=_REPAIR_ROUNDS, commands=commands.told)
            end = end.then(await repair(run, plan, Suite(run, most=before.count).check))
        elif before is not None:
            end = end.then(
                PhaseEnd(outcome="passed", reason="", carried=("The tests already failed before the review.",))
            )
        return end

    async def _tests_before(self, run: Run) -> TestsBefore:
        """The test results before the review; a resumed job uses the recorded ones."""
        progress = Progress(run.files, PHASE, "writers")
        for note in await in_thread(progress.read):
            if isinstance(note.get("tests"), int) and isinstance(note.get("passed"), bool):
                return TestsBefore(passed=note["passed"], count=note["tests"])
        found = await Suite(run).check()
        before = TestsBefore(passed=not found.failure, count=found.passed + found.failed)
        await in_thread(lambda: progress.note(tests=before.count, passed=before.passed))
        return before

    async def _begin(self) -> Run:
        control, settings, order = self._control, self._settings, self._order
        files = ProjectFiles(Path(order.tree))
        await Place(Path(order.folder), control.session.processes, settings.git_timeout).unlock(order)
        trusted = (await in_thread(control.session.permissions.project)).trusted
        prompts = await in_thread(lambda: Prompts(files if trusted else None))
        documents = Path(order.documents) if order.documents else None
        upstream = await in_thread(lambda: copy_upstream(files, documents, control.config.home))
        tickets = Tickets(files, control.config.timeouts, settings.tickets_dir)
        await tickets.open_epic(f"Review of the code base, {order.focus}")
        ceiling = control.config.max_cost
        limits = RunLimits(
            control.clock, lambda: self._journal.known_cost, ceiling, settings.reserve, settings.review_time
        )
        return Run(
            control=control,
            request=PipelineRequest(prompt=_REQUEST, folder=files.root),
            settings=settings,
            files=files,
            state=PipelineState(files.root),
            prompts=prompts,
            git=Checkpoints(files.root, control.session.processes, settings.git_timeout),
            tickets=tickets,
            journal=self._journal,
            limits=limits,
            carried=[],
            upstream=upstream,
        )

    async def _subject(self, run: Run, commands: str) -> Subject:
        from ..review.convergence import Rules
        from ..review.subjects import CODE_KEYWORD, Reviewer, Subject

        order = self._order
        place = Place(run.folder, run.control.session.processes, run.settings.git_timeout)
        focus = focus_text(await place.files(), order.focus)
        names = (("correctness", _CORRECT), ("soundness", _SOUND))
        return Subject(
            name=NAME,
            phase=PHASE,
            reviewers=tuple(Reviewer(name=name, role="codebase_reviewer", focus=text) for name, text in names),
            rules=Rules(rounds=order.rounds, adversarial=0, floor=run.settings.review_floor),
            fixer="codebase_fixer",
            keyword=CODE_KEYWORD,
            values={"document": "the code base", "tdd": "", "since": focus, "commands": commands},
        )

    def _progressed(self) -> None:
        """Store the progress. Called from any thread."""

        def write() -> None:
            journal = self._journal
            task = self._loop.create_task(
                self._update(round=journal.round, blocking=journal.blocking, carried=journal.carried)
            )
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

        self._loop.call_soon_threadsafe(write)

    async def _finish(self, state: JobState, end: PhaseEnd, *, can_go_on: bool) -> str:
        order = self._order
        processes = self._control.session.processes
        place = Place(Path(order.folder), processes, self._settings.git_timeout)
        commits = 0
        try:
            git = Checkpoints(Path(order.tree), processes, self._settings.git_timeout)
            await git.checkpoint("The end of the review")
            commits = await place.tidy(order)
            await place.check_repositories(order)
            check_left_out(git.left_out)
        except MarvinError as error:
            self._control.warn(str(error))
            end = end.replace(reason=f"{end.reason} {error} What is not committed is in {order.tree}.")
            can_go_on = True
        job = await self._keep(state, end, commits)
        report = self._jobs.report(order.id)
        text = job_text(job, report=str(report))
        history = await in_thread(lambda: ProjectFiles(Path(order.tree)).text(HISTORY))
        await in_thread(lambda: _write(report, f"# {order.id}\n\n{text}\n\n{history}"))
        if not can_go_on:
            await place.remove(order, with_branch=not commits)
        self._control.notify(f"{order.id}: {state}. {end.reason}", title="Marvin's review")
        return text

    async def _keep(self, state: JobState, end: PhaseEnd, commits: int = 0) -> ReviewJob:
        await asyncio.gather(*self._writing, return_exceptions=True)  # retry what could not be stored, or report it
        return await self._update(
            round=self._journal.round,
            state=state,
            reason=end.reason,
            blocking=end.blocking,
            carried=end.carried,
            cause=end.cause,
            commits=commits,
        )

    async def _update(self, **fields: object) -> ReviewJob:
        costs = [self._before.cost, *(agent.cost for agent in self._journal.agents)]
        cost = None if None in costs else sum(cost for cost in costs if cost is not None)
        seconds = self._before.seconds + self._control.clock.monotonic() - self._begun
        self._job = self._job.replace(**fields, cost=cost, seconds=seconds)
        await self._jobs.change(self._order.id, lambda _: self._job)
        return self._job


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")


_STATES: dict[str, JobState] = {"passed": "passed", "ended": "ended", "failed": "failed", "skipped": "ended"}
_REQUEST = "Review this code base, and fix what is wrong without changing its purpose."
_CORRECT = "code that gives wrong results, loses data, or allows attacks: follow the input to the damage"
_SOUND = (
    "code that will break in use or when it is changed: swallowed errors, missing limits, tests that test nothing, "
    "misleading names and comments"
)
