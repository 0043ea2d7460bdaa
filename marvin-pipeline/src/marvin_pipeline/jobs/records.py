"""The records of review jobs: their requests, their states, and their findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from marvin_core import JsonFile, Record, Timeouts, ToolError, in_thread

from ..run.ends import Cause

JobState: TypeAlias = Literal["running", "passed", "ended", "failed", "budget", "stopped", "died"]
"""passed: no finding above the floor is left. ended: it ended before that. failed: findings above the floor are
left, or it could not continue. budget: its budget or its time was used up. stopped: the user stopped it. died: its
process exited without recording an end.
"""
RESUMABLE: tuple[JobState, ...] = ("failed", "budget", "stopped", "died")
"""The states from which a job can be resumed while its worktree exists."""
KIND = "review"
PHASE, NAME = "review", "codebase"
"""The phase and the name under which the work of a job is recorded."""
HISTORY = f"review-history-{NAME}.md"
"""The file below `.marvin` with all reviews and fixes."""
_FOLDER = "reviews"
_ID = re.compile(rf"{KIND}-[0-9][0-9-]{{0,60}}")


class ReviewOrder(Record):
    """The request for a job."""

    id: str
    folder: str
    """The folder to review, links resolved."""
    tree: str
    """The git worktree of the job."""
    branch: str
    base: str
    """The commit from which the branch starts."""
    focus: str = "all"
    documents: str = ""
    """The folder of the documents that explain the code's purpose; empty for none."""
    rounds: int = 4
    left_out: int = 0
    """The number of files that are reviewed without their uncommitted changes."""


class ReviewJob(Record):
    """A job and its state."""

    order: ReviewOrder
    begun: float
    """Seconds since the epoch."""
    state: JobState = "running"
    reason: str = ""
    round: int = 0
    blocking: tuple[str, ...] = ()
    """Findings above the floor, one a line; for a running job those that are open."""
    carried: tuple[str, ...] = ()
    """Findings below the floor."""
    cause: Cause = ""
    """The cause of a failure that has an exit code of its own."""
    cost: float | None = 0.0
    """USD so far; None if unknown."""
    seconds: float = 0.0
    """The duration of all of its processes together."""
    commits: int = 0
    """The number of commits on its branch."""

    @property
    def can_go_on(self) -> bool:
        """Whether it ended early, and its worktree still exists. Blocks briefly."""
        return self.state in RESUMABLE and Path(self.order.tree).is_dir()


class ReviewJobs:
    """The jobs of all folders of this user.

    Args:
        folder: the state folder of the pack.
        lives: whether the process of a job runs, by its id. It may block briefly.
    """

    def __init__(self, folder: Path, lives: Callable[[str], bool], timeouts: Timeouts) -> None:
        self._folder = folder / _FOLDER
        self._lives = lives
        self._timeouts = timeouts

    def lives(self, job_id: str) -> bool:
        """Whether the process of a job runs. Blocks briefly."""
        return self._lives(job_id)

    async def add(self, job: ReviewJob) -> None:
        """Store a new job. Raises `ToolError` if it cannot be written."""
        await self.change(job.order.id, lambda _: job)

    async def get(self, job_id: str) -> ReviewJob | None:
        """A job; None if the id is unknown. Raises `ToolError` if it cannot be read."""
        if not _ID.fullmatch(job_id):
            return None
        job = _job(await self._file(job_id).read())
        if job is None or job.state != "running" or await in_thread(lambda: self._lives(job_id)):
            return job
        # It may have recorded its end and exited since it was read.
        job = _job(await self._file(job_id).read())
        if job is None or job.state != "running":
            return job
        return job.replace(state="died", reason="Its process ended without a result, perhaps because it was killed.")

    async def of_folder(self, folder: Path) -> Sequence[ReviewJob]:
        """The jobs of a folder and of those below it, the oldest first."""
        found = []
        for job_id in await in_thread(self._ids):
            try:
                job = await self.get(job_id)
            except ToolError:  # damaged, and moved aside
                continue
            if job is not None and Path(job.order.folder).is_relative_to(folder):
                found.append(job)
        return sorted(found, key=lambda job: job.begun)

    async def change(self, job_id: str, work: Callable[[ReviewJob | None], ReviewJob]) -> None:
        """Change a job. Raises `ToolError` if it cannot be written."""

        def changed(data: dict[str, Any]) -> None:
            after = work(_job(data)).as_dict()
            data.clear()
            data.update({**after, "order": after["order"].as_dict()})

        await self._file(job_id).change(changed)

    def report(self, job_id: str) -> Path:
        """The path of a job's report, once it has ended."""
        return self._folder / job_id / "report.md"

    def _file(self, job_id: str) -> JsonFile[dict[str, Any]]:
        return JsonFile(self._folder / job_id / "job.json", dict, timeouts=self._timeouts)

    def _ids(self) -> Sequence[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir() if _ID.fullmatch(path.name))
        except OSError:
            return ()


_TEXTS = ("id", "folder", "tree", "branch", "base", "focus", "documents")
_COUNTS = ("rounds", "left_out", "round", "commits")


def _job(data: Mapping[str, Any]) -> ReviewJob | None:
    """The job in a file; None for any other content."""
    try:
        order = ReviewOrder(**data["order"])
        lists = {name: tuple(data[name]) for name in ("blocking", "carried")}
        job = ReviewJob(**{**data, "order": order, **lists})
    except (KeyError, TypeError):
        return None
    fields = {**order.as_dict(), **job.as_dict()}
    texts = (*(fields[name] for name in _TEXTS), job.reason, *job.blocking, *job.carried)
    numbers = (job.begun, job.seconds, 0.0 if job.cost is None else job.cost)
    is_sound = (
        job.state in get_args(JobState)
        and job.cause in get_args(Cause)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(fields[name], int) for name in _COUNTS)
        and all(isinstance(number, (int, float)) for number in numbers)
    )
    return job if is_sound else None
