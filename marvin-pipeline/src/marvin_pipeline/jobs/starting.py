"""Starts and resumes review jobs, for the tool and the command line."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from marvin_core import Agents, ApartTask, Processes, Record, ToolError, in_thread, near_names

from ..progress import forget
from ..run.files import ProjectFiles
from ..run.tickets import EPIC
from ..run.upstream import documents_in
from ..settings import PipelineSettings
from .focus import FOCUSES, fitting
from .places import Place
from .records import HISTORY, PHASE, ReviewJob, ReviewJobs, ReviewOrder

MOST = 3
"""Jobs that run at a time at most, in all folders."""
DOCUMENTS = ".ref"
"""The default folder with documents, if it exists."""
_GLOB = re.compile(r"[^\0\n]{1,200}")
_SHOWN = 80


class Wanted(Record):
    """A request for a review."""

    folder: Path
    """The repository, links resolved."""
    documents: Path | None = None
    """The folder with documents."""
    focus: str
    rounds: int
    max_cost: float | None = None
    """USD; None for the configured ceiling."""


class Starter:
    """Starts and resumes jobs.

    Args:
        agents: starts background Marvins.
        processes: runs git.
        jobs: the stored jobs.
        settings: the limits of a job.
    """

    def __init__(self, agents: Agents, processes: Processes, jobs: ReviewJobs, settings: PipelineSettings) -> None:
        self._agents = agents
        self._processes = processes
        self._jobs = jobs
        self._settings = settings

    async def start(self, wanted: Wanted) -> ReviewJob:
        """Create the branch, and start the job.

        Raises:
            ToolError: the focus matches no file, the documents are missing, three jobs are running already,
                there is no repository, or the job cannot be started.
        """
        documents = await in_thread(lambda: _documents(wanted))
        place = Place(wanted.folder, self._processes, self._settings.git_timeout)
        base = await place.base()
        focus = _focus(wanted, await place.files())
        order = await place.open(base, focus, documents, wanted.rounds)
        job = ReviewJob(order=order, begun=time.time())
        try:
            await in_thread(lambda: _forget_others(ProjectFiles(Path(order.tree))))
            await self._jobs.add(job)
            await self._begin(order, wanted.max_cost)
        except BaseException as error:
            await place.remove(order, with_branch=True)
            await self._keep(job.replace(state="failed", reason=f"It was not started: {error}"))
            raise
        return job

    async def resume(self, job: ReviewJob, max_cost: float | None) -> ReviewJob:
        """Resume a job that ended early, in its worktree.

        Args:
            max_cost: USD from now on; None for the configured ceiling.

        Raises:
            ToolError: it is running or finished, its worktree is gone, or it cannot be started.
        """
        order = job.order
        if not await in_thread(lambda: job.can_go_on):
            why = f"it {job.state}" if job.state in ("passed", "ended") else f"there is no worktree {order.tree}"
            why = "it runs" if job.state == "running" else why
            raise ToolError(
                f"{order.id} cannot continue: {why}. Start a new one with: marvin pipeline review "
                f"{shlex.quote(order.folder)}"
            )
        again = job.replace(state="running", reason="")
        try:
            await self._keep(again)
            await self._begin(order, max_cost)
        except BaseException:
            if not await in_thread(lambda: self._jobs.lives(order.id)):  # somebody else may have been faster
                await self._keep(job)
            raise
        return again

    async def _begin(self, order: ReviewOrder, max_cost: float | None) -> None:
        folder = Path(order.folder)
        await self._agents.start_apart(
            ApartTask(
                name=order.id,
                title=f"review of {folder.name} on {order.branch}",
                words=("pipeline", "review", "--job", order.id),
                folder=Path(order.tree),
                root=folder,
                most=MOST,
                max_cost=self._settings.review_cost if max_cost is None else max_cost,
            )
        )

    async def _keep(self, job: ReviewJob) -> None:
        await self._jobs.change(job.order.id, lambda _: job)


def _focus(wanted: Wanted, files: Sequence[str]) -> str:
    """The focus in its stored form. Raises `ToolError` if it matches nothing."""
    given = wanted.focus
    word = given.strip().casefold() or FOCUSES[0]
    if word in FOCUSES:
        return word
    if _GLOB.fullmatch(given) and fitting(files, given):
        return given
    near = near_names(word, FOCUSES)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ToolError(
        f"focus is {given[:_SHOWN]!r}, which matches no file of git in {wanted.folder}. Use {', '.join(FOCUSES)}, a "
        f"folder, or a glob such as `src/**/*.py`.{meant}"
    )


def _documents(wanted: Wanted) -> str:
    """The folder of the documents; empty for none. Raises `ToolError` if a given one has none."""
    folder = wanted.documents
    if folder is None or documents_in(folder):
        return str(folder or "")
    if folder == wanted.folder / DOCUMENTS:
        return ""
    raise ToolError(f"{folder} contains no documents. Give a folder that directly contains .md, .txt or .rst files.")


def _forget_others(files: ProjectFiles) -> None:
    """Remove repository files that imitate those of an earlier review: they could claim a pass. Blocks.

    Raises:
        FileFault: it cannot be removed.
    """
    forget(files, [PHASE])
    for name in (HISTORY, EPIC):
        files.remove(name)
