"""What the process of a review job does: rounds of reviews and fixes in its worktree, then a report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marvin_core import BudgetExceeded, MarvinError, RunControl, TurnResult, in_thread

from ..checks.debug import Suite
from ..checks.mending import Mending, mend
from ..checks.running import commands_of
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
from .places import Place
from .records import JobState, ReviewJob, ReviewJobs, ReviewOrder
from .texts import job_text

if TYPE_CHECKING:
    from ..review.subjects import Subject

PHASE = "review"
_MENDING = 5
"""Rounds in which tests are mended that passed before the review and do not any more."""
_NAME = "codebase"


class ReviewStopped(MarvinError):
    """A review did not come to a good end; the text says why."""


class JobJournal(Journal):
    """The journal of a job, which also tells how far it is.

    Args:
        files: the pipeline's own files of the worktree.
        progressed: called, from any thread, when a round or an agent has ended.
    """

    def __init__(self, files: ProjectFiles, progressed: Callable[[], None]) -> None:
        super().__init__(files)
        self.round = 0
        self._progressed = progressed

    def note(self, event: str, **fields: Any) -> None:
        """Add a line. Raises as of `Journal.note`."""
        super().note(event, **fields)
        if event in ("review", "agent"):
            self.round = fields.get("round", self.round)
            self._progressed()


class ReviewWork:
    """The work of one job.

    Args:
        control: the session of its process.
        settings: what bounds it.
        jobs: where it is kept.
        job: the job.
    """

    def __init__(self, control: RunControl, settings: PipelineSettings, jobs: ReviewJobs, job: ReviewJob) -> None:
        self._control = control
        self._settings = settings
        self._jobs = jobs
        self._job = job
        self._order: ReviewOrder = job.order
        self._journal = JobJournal(ProjectFiles(Path(job.order.tree)), self._progressed)
        self._loop = asyncio.get_running_loop()
        self._writing: set[asyncio.Task[ReviewJob]] = set()

    async def run(self) -> TurnResult:
        """Do it, and keep how it ended, whatever happens; the text of the result is the same as the report's."""
        error: MarvinError | None = None
        try:
            end = await self._reviewed()
        except asyncio.CancelledError:
            await self._keep("stopped", PhaseEnd(outcome="failed", reason="It was stopped."))
            raise
        except BudgetExceeded as stopped:
            error, end = stopped, PhaseEnd(outcome="failed", reason=str(stopped))
        except MarvinError as stopped:
            error, end = ReviewStopped(str(stopped)), PhaseEnd(outcome="failed", reason=str(stopped))
        state: JobState = "budget" if isinstance(error, BudgetExceeded) else _STATES[end.outcome]
        if error is None and state == "failed":
            error = ReviewStopped(end.reason)
        text = await self._finish(state, end)
        return TurnResult(text=text, error=error)

    async def _reviewed(self) -> PhaseEnd:
        from ..review.rounds import ReviewLoop

        run = await self._begin()
        commands = await commands_of(run.folder, self._control.session.processes)
        suite = Suite(run)
        before = await suite.check() if commands.of("test") else None
        subject = await self._subject(run, commands.told)
        end = PhaseEnd(outcome="passed", reason="").then(await ReviewLoop(run, subject).run())
        if before is not None and not before.failure:
            mending = Mending(phase=PHASE, role="debug", rounds=_MENDING, commands=commands.told)
            end = end.then(await mend(run, mending, suite.check))
        elif before is not None:
            end = end.then(PhaseEnd(outcome="passed", reason="", carried=("The tests failed before the review, too.",)))
        return end

    async def _begin(self) -> Run:
        control, settings, order = self._control, self._settings, self._order
        files = ProjectFiles(Path(order.tree))
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
            prompts=Prompts(),
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
        focus = await in_thread(lambda: focus_text(run.folder, order.focus))
        names = (("correctness", _CORRECT), ("soundness", _SOUND))
        return Subject(
            name=_NAME,
            phase=PHASE,
            reviewers=tuple(Reviewer(name=name, role="codebase_reviewer", focus=text) for name, text in names),
            rules=Rules(rounds=order.rounds, adversarial=0, floor=run.settings.review_floor),
            fixer="codebase_fixer",
            keyword=CODE_KEYWORD,
            values={"document": "the code base", "tdd": "", "since": focus, "commands": commands},
        )

    def _progressed(self) -> None:
        """Keep how far it is. Called from any thread."""

        def write() -> None:
            task = self._loop.create_task(self._update(round=self._journal.round))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

        self._loop.call_soon_threadsafe(write)

    async def _finish(self, state: JobState, end: PhaseEnd) -> str:
        order = self._order
        processes = self._control.session.processes
        place = Place(Path(order.folder), processes, self._settings.git_timeout)
        commits = 0
        try:
            git = Checkpoints(Path(order.tree), processes, self._settings.git_timeout)
            await git.checkpoint("The end of the review")
            commits = await place.tidy(order)
        except MarvinError as error:
            self._control.warn(str(error))
            end = PhaseEnd(outcome=end.outcome, reason=f"{end.reason} {error}", blocking=end.blocking)
        job = await self._keep(state, end, commits)
        report = self._jobs.report(order.id)
        text = job_text(job, report=str(report))
        history = await in_thread(lambda: ProjectFiles(Path(order.tree)).text(f"review-history-{_NAME}.md"))
        await in_thread(lambda: _write(report, f"# {order.id}\n\n{text}\n\n{history}"))
        await place.remove(order, with_branch=not commits)
        self._control.notify(f"{order.id}: {state}. {end.reason}", title="Marvin's review")
        return text

    async def _keep(self, state: JobState, end: PhaseEnd, commits: int = 0) -> ReviewJob:
        await asyncio.gather(*self._writing)
        return await self._update(
            round=self._journal.round,
            state=state,
            reason=end.reason,
            blocking=end.blocking,
            carried=end.carried,
            commits=commits,
        )

    async def _update(self, **fields: object) -> ReviewJob:
        costs = [agent.cost for agent in self._journal.agents]
        cost = None if None in costs else sum(cost for cost in costs if cost is not None)
        seconds = time.time() - self._job.begun
        self._job = self._job.replace(**fields, cost=cost, seconds=seconds)
        await self._jobs.change(self._order.id, lambda _: self._job)
        return self._job


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")


_STATES: dict[str, JobState] = {"passed": "passed", "ended": "ended", "failed": "failed", "skipped": "ended"}
_REQUEST = "Review this code base, and mend what is wrong with it without changing what it is for."
_CORRECT = "what gives wrong results, loses data, or lets somebody in: follow the input to the damage"
_SOUND = (
    "what will break under use and change: errors that are swallowed, limits that are missing, tests that test "
    "nothing, code that says something else than it does"
)
