"""What is kept of a batch: of each task a folder with its clone, its log, its reports and how it stands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from marvin_core import MarvinError, Record, take_lock

TaskState: TypeAlias = Literal["waiting", "passed", "failed", "budget", "findings", "tests", "lost"]
"""waiting: it is still to be done, or to be gone on with. budget: its money or its time is used up. findings: those of
a review stopped it. tests: tests are red. failed: whatever else stopped it. lost: its workers died, each time."""
EXIT_CODES: Mapping[TaskState, int] = {
    "passed": 0,
    "waiting": 3,
    "budget": 3,
    "findings": 4,
    "tests": 5,
    "failed": 1,
    "lost": 1,
}
"""By state, the exit code of a batch with such a task; the last of them in this order is the worst."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LARGEST = 5_000_000
RECORD, LOCK, PROMPT, LOG, SUMMARY, CLONE, REPORT = (
    *("task.json", "task.lock", "prompt.md", "log.txt", "summary.txt", "repository", "report"),
)
"""The names in the folder of a task."""


class BatchFault(MarvinError):
    """What is kept of a batch cannot be read or written."""


class Order(Record):
    """What a worker is to do. It crosses machines as JSON, so it holds nothing but texts, numbers and the like."""

    id: str
    digest: str
    folder: str
    """The folder of the task, which the worker has to reach under this name."""
    led: str
    """The lock of whoever leads the batch: once nobody holds it, the work ends."""
    repository: str
    base: str
    prompt: str
    words: tuple[str, ...]
    """The flags of its run."""
    ledger: str = ""
    """The address of its part of the money; empty where nothing bounds it."""
    push: bool = False
    """Whether its branch is pushed to the repository."""
    clone_timeout: float
    """Seconds for git to clone, and to push."""
    grace: float
    """Seconds that a run has to end itself."""
    settle: float
    """Seconds that the agents of a run have to be gone which was killed; nobody waits for them any more."""
    poll: float
    """Seconds between two looks at a lock."""

    @property
    def branch(self) -> str:
        """The branch that the result is on."""
        return f"marvin/{self.id}"


class Try(Record):
    """One try at a task: a worker, and the run that it started."""

    begun: float
    """Seconds since the epoch."""
    host: str
    ended: float | None = None
    """None where its worker was killed, or works."""
    exit_code: int | None = None
    """Negative for a signal; None where no run ended."""
    cost: float | None = None
    """USD; None where the run did not come to tell."""
    cost_line: str = ""
    """What it told of that."""

    @property
    def was_killed(self) -> bool:
        """Whether its run could not end its agents itself."""
        return self.ended is None or (self.exit_code is not None and self.exit_code < 0)


class TaskRecord(Record):
    """How a task stands."""

    id: str
    digest: str
    state: TaskState = "waiting"
    reason: str = ""
    base: str = ""
    """The commit that its branch begins with."""
    commit: str = ""
    """The newest commit of its branch."""
    next_phase: str = ""
    """What would come next; empty where it is done."""
    pushed: bool = False
    is_strict: bool = False
    """Whether the evidence was judged as `--strict` asks for."""
    tries: tuple[Try, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be done for it."""
        return self.state != "waiting"

    @property
    def cost(self) -> float | None:
        """USD of all tries; None where one did not come to tell."""
        costs = [one.cost for one in self.tries]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def seconds(self) -> float:
        """How long it was worked on, as far as that is known."""
        return sum(max(0.0, one.ended - one.begun) for one in self.tries if one.ended is not None)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**self.as_dict(), "tries": [one.as_dict() for one in self.tries]}


def record_of(value: Any) -> TaskRecord:
    """The record that plain values tell of.

    Raises:
        ValueError: they tell of none.
    """
    try:
        record = TaskRecord(**{**value, "tries": tuple(Try(**one) for one in value["tries"])})
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    texts = (record.id, record.digest, record.reason, record.base, record.commit, record.next_phase)
    if record.state not in get_args(TaskState) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the state {record.state!r}")
    return record


class TaskFolder:
    """What is kept of one task. Blocks.

    Args:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> TaskRecord | None:
        """How the task stands; None where nothing was begun.

        Raises:
            BatchFault: the record is damaged: nobody may take what was done for not done.
        """
        try:
            with open(self.path / RECORD, "rb") as file:
                return record_of(json.loads(file.read(_LARGEST)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise BatchFault(
                f"{self.path / RECORD} is damaged: {error}. Remove {self.path} to run the task again."
            ) from error

    def write(self, record: TaskRecord) -> None:
        """Keep how it stands. Raises `BatchFault`."""
        write_whole(self.path / RECORD, json.dumps(record.as_json(), indent=1).encode())

    @contextmanager
    def held(self, is_over: Callable[[], bool], poll: float) -> Iterator[int | None]:
        """Be alone with the task: no other worker, and no run that one left which was killed.

        What is started meanwhile inherits the descriptor, and so holds the lock as well for as long as it lives.

        Args:
            is_over: told whether to wait no longer; the context gets None then.

        Raises:
            BatchFault: there can be no lock.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK, _OPEN, 0o600)
        except OSError as error:
            raise BatchFault(f"{self.path} cannot be written: {error.strerror}.") from error
        try:
            while not take_lock(lock):
                if is_over():
                    yield None
                    return
                time.sleep(poll)
            yield lock
        finally:
            os.close(lock)


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in its place as a whole. Raises `BatchFault`."""
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise BatchFault(f"{path} cannot be written: {error.strerror}.") from error
