"""The stored state of a batch: for each task a folder with its clone, its log, its reports and its record."""

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
"""waiting: to be run or resumed. budget: its budget or its time is used up. findings:
a review stopped it. tests: tests failed. failed: any other failure. lost: all its workers died."""
EXIT_CODES: Mapping[TaskState, int] = {
    "passed": 0,
    "waiting": 3,
    "budget": 3,
    "findings": 4,
    "tests": 5,
    "failed": 1,
    "lost": 1,
}
"""The exit code of a batch with a task in this state; the last state in this order is the worst."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LARGEST = 5_000_000
RECORD, LOCK, PROMPT, LOG, SUMMARY, CLONE, REPORT = (
    *("task.json", "task.lock", "prompt.md", "log.txt", "summary.txt", "repository", "report"),
)
"""The file and folder names in the folder of a task."""


class BatchFault(MarvinError):
    """The stored state of a batch cannot be read or written."""


class Order(Record):
    """A worker's instructions. It is sent between machines as JSON, so it contains plain values only."""

    id: str
    digest: str
    folder: str
    """The folder of the task, which the worker must reach under this path."""
    led: str
    """The lock file of the process that leads the batch: once nobody holds the lock, the work stops."""
    repository: str
    base: str
    prompt: str
    words: tuple[str, ...]
    """The flags of the run."""
    ledger: str = ""
    """The address of its ledger; empty without a ceiling."""
    push: bool = False
    """Whether its branch is pushed to the repository."""
    clone_timeout: float
    """Seconds for a git clone, and for a push."""
    grace: float
    """Seconds that a run has to stop itself."""
    settle: float
    """Seconds that the agents of a killed run have to exit; afterwards nobody waits for them."""
    poll: float
    """Seconds between two checks of a lock."""

    @property
    def branch(self) -> str:
        """The branch of the result."""
        return f"marvin/{self.id}"


class Try(Record):
    """An attempt at a task: a worker and its run."""

    begun: float
    """Seconds since the epoch."""
    host: str
    ended: float | None = None
    """None while its worker runs, or if it was killed."""
    exit_code: int | None = None
    """Negative for a signal; None without a finished run."""
    cost: float | None = None
    """USD; None if unknown."""
    cost_line: str = ""
    """The cost line that the run printed."""

    @property
    def was_killed(self) -> bool:
        """Whether its run was killed before it could stop its agents."""
        return self.ended is None or (self.exit_code is not None and self.exit_code < 0)


class TaskRecord(Record):
    """The state of a task."""

    id: str
    digest: str
    state: TaskState = "waiting"
    reason: str = ""
    base: str = ""
    """The first commit of its branch."""
    commit: str = ""
    """The newest commit of its branch."""
    next_phase: str = ""
    """The next phase; empty if all are done."""
    pushed: bool = False
    is_strict: bool = False
    """Whether the evidence was judged with `--strict`."""
    tries: tuple[Try, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it is finished."""
        return self.state != "waiting"

    @property
    def cost(self) -> float | None:
        """USD of all attempts; None if one is unknown."""
        costs = [one.cost for one in self.tries]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def seconds(self) -> float:
        """The duration of all attempts in seconds, as far as known."""
        return sum(max(0.0, one.ended - one.begun) for one in self.tries if one.ended is not None)

    def as_json(self) -> dict[str, Any]:
        """The record as plain values."""
        return {**self.as_dict(), "tries": [one.as_dict() for one in self.tries]}


def record_of(value: Any) -> TaskRecord:
    """The record from plain values.

    Raises:
        ValueError: they are not a record.
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
    """The stored state of one task. Methods block.

    Args:
        path: the folder of the task.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> TaskRecord | None:
        """The record of the task; None before its start.

        Raises:
            BatchFault: the record is damaged: it must not count as not started.
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
        """Write the record. Raises `BatchFault`."""
        write_whole(self.path / RECORD, json.dumps(record.as_json(), indent=1).encode())

    @contextmanager
    def held(self, is_over: Callable[[], bool], poll: float) -> Iterator[int | None]:
        """Lock the task against other workers, and against a run that a killed worker left.

        Child processes inherit the descriptor, and so hold the lock as well for as long as they live.

        Args:
            is_over: whether to stop waiting; the context then gets None.

        Raises:
            BatchFault: the lock cannot be created.
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
    """Replace a file atomically. Raises `BatchFault`."""
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
