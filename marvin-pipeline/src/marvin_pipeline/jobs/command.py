"""`marvin pipeline review`: starting reviews, waiting for them, stopping them; and the process of each of them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from marvin_core import ApartJobs, CliContext, MarvinError, RunControl, ToolError, TurnResult, UsageError, in_thread

from ..settings import PipelineSettings
from .records import ReviewJob, ReviewJobs
from .starting import Starter, Wanted
from .texts import job_text, jobs_text, last_line

_NEWS = 4_000
_EXIT_BUDGET = 3


class ReviewEnd(MarvinError):
    """A review that was waited for did not come to a good end."""


class OutOfBudget(ReviewEnd):
    """It used up its money or its time."""

    exit_code = _EXIT_BUDGET


class ReviewCommand:
    """One call of the sub-command."""

    def __init__(self, context: CliContext) -> None:
        self._context = context
        self._apart = ApartJobs.of(context.config)
        self._jobs = ReviewJobs(context.folders.state, self._lives, context.timeouts)

    def run(
        self,
        folder: Path | None,
        *,
        focus: str,
        ref_dir: str,
        rounds: int,
        background: bool,
        stop: str,
        job: str,
    ) -> int:
        """Do what was asked for; returns the exit code."""
        if job:
            return self._context.lead(lambda control: self._work(control, job))
        if stop:
            asyncio.run(self._stop(stop))
            return 0
        if folder is None:
            self._context.write(f"{asyncio.run(self._listed())}\n")
            return 0
        root = folder.resolve()
        if not root.is_dir():
            raise UsageError(f"{folder} is no folder. Name the git repository that is to be reviewed.")
        documents = root / ref_dir if ref_dir else None
        if documents is not None and not documents.is_dir():
            raise UsageError(f"--ref-dir {ref_dir} is no folder in {folder}.")
        wanted = Wanted(
            folder=root, root=root, documents=str(documents or ""), focus=focus, rounds=rounds, max_cost=self._ceiling
        )
        return self._context.lead(lambda control: self._start(control, wanted, waits=not background))

    @property
    def _ceiling(self) -> float | None:
        return self._context.config.max_cost

    async def _start(self, control: RunControl, wanted: Wanted, *, waits: bool) -> TurnResult:
        session = control.session
        starter = Starter(session.agents, session.processes, self._jobs, self._context.settings(PipelineSettings))
        job = await starter.start(wanted)
        if not waits:
            return TurnResult(text=job_text(job))
        control.warn(f"{job.order.id} works on {job.order.branch}. Ctrl+C ends it.")
        try:
            ended = await self._ended(control, job.order.id)
        except asyncio.CancelledError:
            await asyncio.shield(self._apart.stop(job.order.id))
            raise
        error = _error_of(ended)
        return TurnResult(text=job_text(ended, report=str(self._jobs.report(job.order.id))), error=error)

    async def _ended(self, control: RunControl, job_id: str) -> ReviewJob:
        """Wait for the end of a job, and tell what it tells."""
        told = ""
        while True:
            lives = await in_thread(lambda: self._lives(job_id))
            news = await in_thread(lambda: self._news(job_id))
            if news != told:
                told = news
                control.warn(news)
            job = await self._jobs.get(job_id)
            if job is not None and not lives:
                return job
            await asyncio.sleep(control.config.timeouts.progress)

    async def _work(self, control: RunControl, job_id: str) -> TurnResult:
        from .working import ReviewWork

        job = await self._jobs.get(job_id)
        if job is None or not self._lives(job_id) or Path(job.order.tree) != control.session.working_dir:
            raise UsageError(f"{job_id} is no review job that begins here. Start one with: marvin pipeline review DIR")
        return await ReviewWork(control, self._context.settings(PipelineSettings), self._jobs, job).run()

    async def _stop(self, job_id: str) -> None:
        job = await self._jobs.get(job_id)
        if job is None:
            raise UsageError(f"There is no review {job_id!r}.\n{await self._listed()}")
        if job.state == "running":
            await self._apart.stop(job_id)
            job = await self._jobs.get(job_id) or job
        self._context.write(f"{job_text(job)}\n")

    async def _listed(self) -> str:
        here = await in_thread(lambda: Path(os.path.realpath(self._context.config.working_dir)))
        return jobs_text(await self._jobs.of_folder(here))

    def _lives(self, job_id: str) -> bool:
        found = self._apart.find(job_id)
        return found is not None and found.running

    def _news(self, job_id: str) -> str:
        try:
            return last_line(self._apart.output(job_id, _NEWS)[0])
        except ToolError:
            return ""


def _error_of(job: ReviewJob) -> MarvinError | None:
    """What makes the exit code of a review that was waited for."""
    if job.state in ("passed", "ended"):
        return None
    kind = OutOfBudget if job.state == "budget" else ReviewEnd
    return kind(f"The review {job.order.id} {job.state}: {job.reason}")
