"""Review jobs as they are kept: what was asked for, how far each one is, and what it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from marvin_core import JsonFile, Record, Timeouts, ToolError, in_thread

from ..run.ends import Cause

JobState: TypeAlias = Literal["running", "passed", "ended", "failed", "budget", "stopped", "died"]
"""passed: nothing above the floor is left. ended: it came to an end before that. failed: findings above the floor are
left, or it could not continue. budget: its money or its time was used up. stopped: somebody ended it. died: its process
is gone without a word.
"""
RESUMABLE: tuple[JobState, ...] = ("failed", "budget", "stopped", "died")
"""The ends after which a job can go on, where its worktree is still there."""
KIND = "review"
PHASE, NAME = "review", "codebase"
"""What the work of a job is noted under."""
HISTORY = f"review-history-{NAME}.md"
"""The file below `.marvin` with what everybody said."""
_FOLDER = "reviews"
_ID = re.compile(rf"{KIND}-[0-9][0-9-]{{0,60}}")


class ReviewOrder(Record):
    """What a job is to do."""

    id: str
    folder: str
    """The folder that is reviewed, links resolved."""
    tree: str
    """The git worktree in which the job works."""
    branch: str
    base: str
    """The commit that the branch begins with."""
    focus: str = "all"
    documents: str = ""
    """The folder of the documents that explain what the code is for; empty for none."""
    rounds: int = 4
    left_out: int = 0
    """How many files of the folder are not reviewed as they are, since their changes are not committed."""


class ReviewJob(Record):
    """A job, and how it stands."""

    order: ReviewOrder
    begun: float
    """Seconds since the epoch."""
    state: JobState = "running"
    reason: str = ""
    round: int = 0
    blocking: tuple[str, ...] = ()
    """What is left above the floor, a line each; of one that runs, what is open so far."""
    carried: tuple[str, ...] = ()
    """What is left below it."""
    cause: Cause = ""
    """Why it failed, where that has an exit code of its own."""
    cost: float | None = 0.0
    """USD so far; None where that is not known."""
    seconds: float = 0.0
    """How long it has worked, all of its processes together."""
    commits: int = 0
    """The commits of its branch."""

    @property
    def can_go_on(self) -> bool:
        """Whether it ended before its time, and what it did is still there. Blocks for a moment."""
        return self.state in RESUMABLE and Path(self.order.tree).is_dir()


class ReviewJobs:
    """The jobs of all folders of this user.

    Args:
        folder: the state folder of the pack.
        lives: whether the process of a job lives, by its id. It may block for a moment.
    """

    def __init__(self, folder: Path, lives: Callable[[str], bool], timeouts: Timeouts) -> None:
        self._folder = folder / _FOLDER
        self._lives = lives
        self._timeouts = timeouts

    def lives(self, job_id: str) -> bool:
        """Whether the process of a job lives. Blocks for a moment."""
        return self._lives(job_id)

    async def add(self, job: ReviewJob) -> None:
        """Keep a new job. Raises `ToolError` where it cannot be written."""
        await self.change(job.order.id, lambda _: job)

    async def get(self, job_id: str) -> ReviewJob | None:
        """A job; None where there is none of this id. Raises `ToolError` where it cannot be read."""
        if not _ID.fullmatch(job_id):
            return None
        job = _job(await self._file(job_id).read())
        if job is None or job.state != "running" or await in_thread(lambda: self._lives(job_id)):
            return job
        # It may have written down how it ended, and left, since that was read.
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
            except ToolError:  # damaged, and moved aside by now
                continue
            if job is not None and Path(job.order.folder).is_relative_to(folder):
                found.append(job)
        return sorted(found, key=lambda job: job.begun)

    async def change(self, job_id: str, work: Callable[[ReviewJob | None], ReviewJob]) -> None:
        """Change a job. Raises `ToolError` where it cannot be written."""

        def changed(data: dict[str, Any]) -> None:
            after = work(_job(data)).as_dict()
            data.clear()
            data.update({**after, "order": after["order"].as_dict()})

        await self._file(job_id).change(changed)

    def report(self, job_id: str) -> Path:
        """Where the report of a job is, once it has ended."""
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
    """The job in a file; None where it holds none, whatever it holds."""
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
