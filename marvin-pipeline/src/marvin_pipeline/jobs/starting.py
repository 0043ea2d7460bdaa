"""Starting a review job: the same for the tool and for the command line."""

from __future__ import annotations

import re
import time
from pathlib import Path

from marvin_core import Agents, ApartTask, Processes, Record, ToolError

from ..settings import PipelineSettings
from .places import Place
from .records import ReviewJob, ReviewJobs, ReviewOrder

MOST = 3
"""Jobs that run at a time, of all folders."""
FOCUSES = ("all", "backend", "frontend", "tests")
_GLOB = re.compile(r"[^\0\n]{1,200}")


class Wanted(Record):
    """What is to be reviewed."""

    folder: Path
    """The repository, links resolved."""
    root: Path
    """The folder whose sessions list the job."""
    documents: str
    """The folder with documents, an absolute path; empty for none."""
    focus: str
    rounds: int
    max_cost: float | None = None
    """USD; None for what the settings say."""


class Starter:
    """Starts jobs.

    Args:
        agents: the way to a Marvin that goes on by itself.
        processes: the way to git.
        jobs: where jobs are kept.
        settings: what bounds a job.
    """

    def __init__(self, agents: Agents, processes: Processes, jobs: ReviewJobs, settings: PipelineSettings) -> None:
        self._agents = agents
        self._processes = processes
        self._jobs = jobs
        self._settings = settings

    async def start(self, wanted: Wanted) -> ReviewJob:
        """Make the branch, and start the job.

        Raises:
            ToolError: three jobs run already, there is no repository, or nothing can be started.
        """
        if not _GLOB.fullmatch(wanted.focus):
            raise ToolError(
                f"focus is {wanted.focus[:80]!r}; it takes {', '.join(FOCUSES)} or a glob, as `src/**/*.py`."
            )
        place = Place(wanted.folder, self._processes, self._settings.git_timeout)
        order = await place.open(wanted.focus, wanted.documents, wanted.rounds)
        job = ReviewJob(order=order, begun=time.time())
        try:
            await self._jobs.add(job)
            await self._agents.start_apart(
                ApartTask(
                    name=order.id,
                    title=f"review of {wanted.folder.name} on {order.branch}",
                    words=("pipeline", "review", "--job", order.id),
                    folder=Path(order.tree),
                    root=wanted.root,
                    most=MOST,
                    max_cost=wanted.max_cost or self._settings.review_cost,
                )
            )
        except BaseException as error:
            await self._taken_back(place, order, str(error))
            raise
        return job

    async def _taken_back(self, place: Place, order: ReviewOrder, why: str) -> None:
        await place.remove(order, with_branch=True)
        failed = ReviewJob(order=order, begun=time.time(), state="failed", reason=f"It was not started: {why}")
        await self._jobs.change(order.id, lambda _: failed)
