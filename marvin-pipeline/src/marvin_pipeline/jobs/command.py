"""`marvin pipeline review`: starts reviews, waits for them and stops them; also the process of each review."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from marvin_core import (
    ApartJobs,
    CliContext,
    MarvinError,
    Record,
    RunControl,
    ToolError,
    TurnResult,
    UsageError,
    in_thread,
)

from ..run.failures import FAILURES
from ..settings import PipelineSettings
from .records import ReviewJob, ReviewJobs
from .starting import DOCUMENTS, Starter, Wanted
from .texts import job_text, jobs_text, last_line

_NEWS = 4_000
_EXIT_BUDGET = 3


class ReviewEnd(MarvinError):
    """A review ended without passing."""


class OutOfBudget(ReviewEnd):
    """A review used up its budget or its time."""

    exit_code = _EXIT_BUDGET


class Typed(Record):
    """The arguments of `marvin pipeline review`."""

    folder: Path | None = None
    focus: str = "all"
    ref_dir: str = DOCUMENTS
    rounds: int = 4
    background: bool = False
    stop: str = ""
    """The id of a job to stop."""
    resume: str = ""
    """The id of a job to resume."""
    job: str = ""
    """The id of the job that this process runs."""

    @property
    def flags(self) -> Sequence[str]:
        """The flags that request a new review."""
        asked = [f"--focus={self.focus}", f"--ref-dir={self.ref_dir}", f"--rounds={self.rounds}"]
        return [*asked, *(["--background"] if self.background else [])]


class ReviewCommand:
    """One call of the subcommand."""

    def __init__(self, context: CliContext) -> None:
        self._context = context
        self._apart = ApartJobs.of(context.config)
        self._jobs = ReviewJobs(context.folders.state, self._lives, context.timeouts)

    def run(self, typed: Typed) -> int:
        """Run the command; returns the exit code."""
        if typed.job:
            return self._context.lead(lambda control: self._work(control, typed.job))
        if typed.stop:
            asyncio.run(self._stop(typed.stop))
            return 0
        if typed.resume:
            return self._context.lead(lambda control: self._resume(control, typed))
        if typed.folder is None:
            self._context.write(f"{asyncio.run(self._listed())}\n")
            return 0
        root = (self._context.config.working_dir / typed.folder).resolve()
        if not root.is_dir():
            raise UsageError(f"{typed.folder} is not a folder. Give the git repository to review.")
        if root != self._context.config.working_dir:  # git runs in the sandbox, which is made around one folder
            return self._context.marvin([f"--working-dir={root}", "pipeline", "review", str(root), *typed.flags])
        wanted = self._wanted(typed, root)
        return self._context.lead(lambda control: self._start(control, wanted, typed))

    def _wanted(self, typed: Typed, root: Path) -> Wanted:
        documents = root / typed.ref_dir if typed.ref_dir else None
        if documents is not None and not documents.is_dir():
            if typed.ref_dir != DOCUMENTS:
                raise UsageError(f"--ref-dir {typed.ref_dir} is not a folder in {root}.")
            documents = None
        return Wanted(
            folder=root,
            documents=documents,
            focus=typed.focus,
            rounds=typed.rounds,
            max_cost=self._context.config.max_cost,
        )

    def _starter(self, control: RunControl) -> Starter:
        session = control.session
        return Starter(session.agents, session.processes, self._jobs, self._context.settings(PipelineSettings))

    async def _start(self, control: RunControl, wanted: Wanted, typed: Typed) -> TurnResult:
        return await self._waited(control, await self._starter(control).start(wanted), typed)

    async def _resume(self, control: RunControl, typed: Typed) -> TurnResult:
        job = await self._known(typed.resume)
        return await self._waited(control, await self._starter(control).resume(job, control.config.max_cost), typed)

    async def _waited(self, control: RunControl, job: ReviewJob, typed: Typed) -> TurnResult:
        """Wait for the end of a job that was started; return at once for a background job."""
        if typed.background:
            return TurnResult(text=job_text(job))
        control.warn(f"{job.order.id} is working on {job.order.branch}. Ctrl+C stops it.")
        try:
            ended = await self._ended(control, job.order.id)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(job.order.id))
            raise
        error = _error_of(ended)
        return TurnResult(text=job_text(ended, report=str(self._jobs.report(job.order.id))), error=error)

    async def _ended(self, control: RunControl, job_id: str) -> ReviewJob:
        """Wait for the end of a job, and print its messages."""
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
            raise UsageError(f"{job_id} is not a review job of this folder. Start one with: marvin pipeline review DIR")
        return await ReviewWork(control, self._context.settings(PipelineSettings), self._jobs, job).run()

    async def _stop(self, job_id: str) -> None:
        if await in_thread(lambda: self._lives(job_id)):
            await self._end(job_id)
            if await self._jobs.get(job_id) is None:  # its record is damaged
                self._context.write(f"{job_id} was stopped. Nothing else is known about it.\n")
                return
        self._context.write(f"{job_text(await self._known(job_id))}\n")

    async def _end(self, job_id: str) -> None:
        """Stop a running job. A job that has hardly started cannot record that itself, but is stopped all the same."""
        await self._apart.stop(job_id)
        try:
            job = await self._jobs.get(job_id)
        except ToolError:  # its record is damaged, which the next read reports
            return
        if job is not None and job.state == "died":
            await self._jobs.change(job_id, lambda _: job.replace(state="stopped", reason="It was stopped."))

    async def _known(self, job_id: str) -> ReviewJob:
        job = await self._jobs.get(job_id)
        if job is None:
            raise UsageError(f"There is no review {job_id!r}.\n{await self._listed()}")
        return job

    async def _listed(self) -> str:
        here = await in_thread(lambda: Path(os.path.realpath(self._context.config.working_dir)))
        return jobs_text(await self._jobs.of_folder(here), "marvin pipeline review DIR")

    def _lives(self, job_id: str) -> bool:
        found = self._apart.find(job_id)
        return found is not None and found.running

    def _news(self, job_id: str) -> str:
        try:
            return last_line(self._apart.output(job_id, _NEWS)[0])
        except ToolError:
            return ""


def _error_of(job: ReviewJob) -> MarvinError | None:
    """The exception for the exit code of a review that was waited for."""
    if job.state in ("passed", "ended"):
        return None
    kind = OutOfBudget if job.state == "budget" else ReviewEnd
    error = kind(f"The review {job.order.id} {job.state}: {job.reason}")
    if job.state == "failed":
        error.exit_code = FAILURES[job.cause].exit_code
    return error
