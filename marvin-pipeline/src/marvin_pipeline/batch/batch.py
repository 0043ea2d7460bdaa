"""A batch: workers run its tasks, each state is stored, and the same command resumes the batch after any kill."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from marvin_core import MarvinError, Record, RunControl, Timeouts, UsageError, in_thread, take_lock

from ..run.ends import raise_first
from ..settings import PipelineSettings
from ..state import PHASES
from .engines import Engine, WorkerLost, check_engine
from .money import Money
from .records import BatchFault, Order, TaskFolder, TaskRecord, TaskState
from .tasks import Task

_LOCK, _LED = "batch.lock", "led.lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_RETRIED = ("failed", "findings", "tests", "lost")
_CHANGED = 10
_MOST = 1e9


class BatchBusy(MarvinError):
    """Another batch works in the folder."""


class BatchOptions(Record):
    """The options of a batch."""

    results: Path
    workers: int
    engine: str = "local"
    scheduler: str = ""
    """The address of a running scheduler; empty for one that is started here."""
    retry: bool = False
    """Whether failed tasks are resumed."""
    push: bool = False
    strict: bool = False
    """Whether weak evidence fails a task, also one that passed without this option."""
    until: str = ""
    task_cost: float | None = None
    """USD for a task without a ceiling of its own."""
    task_time: float | None = None
    """Seconds for a task without a limit of its own."""

    @property
    def words(self) -> Sequence[str]:
        """The options as flags."""
        given = {
            "results": self.results,
            "workers": self.workers,
            "engine": self.engine,
            "scheduler": self.scheduler or None,
            "until": self.until or None,
            "task-cost": self.task_cost,
            "task-time": self.task_time,
        }
        named = [f"--{name}={value}" for name, value in given.items() if value is not None]
        switches = {"--retry": self.retry, "--push": self.push, "--strict": self.strict}
        return [*named, *(flag for flag, is_on in switches.items() if is_on)]

    def check(self) -> None:
        """Refuse invalid options. Raises `UsageError`."""
        check_engine(self.engine, self.scheduler)
        if self.until and self.until not in PHASES:
            raise UsageError(f"--until {self.until!r} is not a phase. Use one of {', '.join(PHASES)}.")
        for name, value in (("--task-cost", self.task_cost), ("--task-time", self.task_time)):
            if value is not None and not 0 < value < _MOST:
                raise UsageError(f"{name} {value:g} is not an amount. Give a number above 0.")


class Batch:
    """One run of a batch.

    Args:
        control: the connection to the user, and the models of this run.
        tasks: all tasks of the file.
    """

    def __init__(
        self, control: RunControl, settings: PipelineSettings, options: BatchOptions, tasks: Sequence[Task]
    ) -> None:
        self._control = control
        self._settings = settings
        self._options = options
        self._tasks = [_bounded(task, options) for task in tasks]
        self._money = Money(options.results, control.config.max_cost, control.config.timeouts)
        self._records: dict[str, TaskRecord] = {}
        self._waiting: deque[Task] = deque()
        self._is_ending = False

    @property
    def records(self) -> Sequence[TaskRecord]:
        """The state of each task, in the order of the file."""
        return [self._records[task.id] for task in self._tasks]

    async def prepare(self) -> None:
        """Determine which tasks are to be run. The caller has to hold the batch's lock.

        Raises:
            UsageError: a task differs from the one that was started under its id.
            MarvinError: the stored state is unreadable, or costs cannot be counted.
        """
        await in_thread(self._look)
        await in_thread(lambda: self._money.begin(self._tasks))

    def _look(self) -> None:
        kept = {task.id: self._folder(task).read() for task in self._tasks}
        changed = [task.id for task in self._tasks if (one := kept[task.id]) is not None and one.digest != task.digest]
        if changed:
            more = f", and {len(changed) - _CHANGED} more" if len(changed) > _CHANGED else ""
            raise UsageError(
                "These tasks were started with another repository, prompt or base: "
                f"{', '.join(changed[:_CHANGED])}{more}. Give them new ids, or delete their folders in "
                f"{self._options.results}."
            )
        for task in self._tasks:
            record = kept[task.id] or TaskRecord(id=task.id, digest=task.digest)
            if self._goes_on(task, record):
                record = record.replace(state="waiting", reason="")
                self._folder(task).write(record)
            self._records[task.id] = record
            if not record.is_over:
                self._waiting.append(task)

    def _goes_on(self, task: Task, record: TaskRecord) -> bool:
        """Whether a finished task is to be resumed."""
        if record.state == "budget":
            return self._money.has_more_for(task)
        if record.state == "passed":
            return self._options.strict and not record.is_strict  # only the evidence is still to be judged
        return self._options.retry and record.state in _RETRIED

    async def run(self, engine: Engine) -> None:
        """Run the waiting tasks until none is left or the budget is used up.

        Raises:
            EngineLost: the engine is gone; the next run resumes its tasks.
            MarvinError: the stored state cannot be read or written.
        """
        if not self._waiting:
            return
        count = min(self._options.workers, len(self._waiting))
        self._told(f"{len(self._waiting)} of {len(self._tasks)} tasks remain, {count} at a time")
        with ExitStack() as held:
            led = await in_thread(lambda: held.enter_context(_held(self._options.results / _LED, self._patience)))
            workers = [asyncio.ensure_future(self._worked(engine, str(led))) for _ in range(count)]
            try:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                self._is_ending = True
                held.close()  # from here on, running tasks stop
                ends = await asyncio.gather(*workers, return_exceptions=True)
        raise_first(ends)

    @property
    def _patience(self) -> Timeouts:
        """The timeout for the lock, which a process that checks it holds for a moment."""
        return self._control.config.timeouts

    async def _worked(self, engine: Engine, led: str) -> None:
        while self._waiting and not self._is_ending:
            if await in_thread(lambda: self._money.is_spent):
                self._waiting.clear()
                self._told("The batch has reached its cost ceiling. To continue, run it again with a higher --max-cost")
                return
            await self._through(self._waiting.popleft(), engine, led)

    async def _through(self, task: Task, engine: Engine, led: str) -> None:
        """Run a task until it is finished; if its workers die, others take over, a limited number of times."""
        reason = ""
        for _ in range(self._settings.batch_tries):
            before = self._records[task.id]
            order = await in_thread(partial(self._order, task, led))
            if order is None:
                await self._end(task, "budget", "Its cost ceiling is reached.")
                return
            try:
                record = await engine.work(order)
            except WorkerLost as lost:
                reason = str(lost)
                self._told(f"{task.id}: {reason}")
                continue
            self._take(before, record)
            if record.is_over or self._is_ending:
                self._told(f"{task.id}: {record.state}. {record.reason}".strip())
                return
            reason = record.reason
            self._told(f"{task.id}: {reason} Another worker continues")
        await self._end(task, "lost", f"{self._settings.batch_tries} workers ended. {reason}")

    def _take(self, before: TaskRecord, record: TaskRecord) -> None:
        """Count the costs of this run's attempts that are in the record."""
        self._records[record.id] = record
        for one in record.tries[len(before.tries) :]:
            if one.cost_line:
                self._control.count(one.cost_line)

    async def _end(self, task: Task, state: TaskState, reason: str) -> None:
        """Record that a task ends here, unless a worker finished it meanwhile."""
        folder, before = self._folder(task), self._records[task.id]

        def ended() -> TaskRecord:
            record = folder.read() or before
            if not record.is_over:
                record = record.replace(state=state, reason=reason)
                folder.write(record)
            return record

        self._take(before, record := await in_thread(ended))
        self._told(f"{task.id}: {record.state}. {record.reason}")

    def _order(self, task: Task, led: str) -> Order | None:
        """The order for a worker, with the budget that is left; None if there is none."""
        share, timeouts = self._money.share(task), self._control.config.timeouts
        if share is not None and share.is_nothing:
            return None
        return Order(
            id=task.id,
            digest=task.digest,
            folder=str(self._folder(task).path),
            led=led,
            repository=task.repository,
            base=task.base,
            prompt=task.prompt,
            words=(*self._words(task), *(share.words if share else ())),
            ledger=share.ledger if share else "",
            push=self._options.push,
            clone_timeout=self._settings.clone_timeout,
            grace=2 * (timeouts.close + timeouts.agent_end),  # it stops its agents, then itself
            settle=timeouts.close + timeouts.kill_limit,  # as for an agent whose parent is gone
            poll=timeouts.job_poll,
        )

    def _words(self, task: Task) -> Iterator[str]:
        """The flags of a run: the models and permissions of this command, and those of the task."""
        config = self._control.config
        yield from self._control.model_flags
        yield f"--sandbox={config.sandbox}"
        yield f"--on-ask={config.on_ask_text}"
        if config.permission_mode is not None:
            yield f"--permission-mode={config.permission_mode}"
        if config.network is not None:
            yield f"--network={config.network.as_text()}"
        if config.trust_project:
            yield "--trust-project"
        if self._options.strict:
            yield "--strict"
        yield from (f"--model={tier}={model}" for tier, model in task.models)
        if task.until:
            yield f"--until={task.until}"
        if task.max_time is not None:
            yield f"--max-time={task.max_time:f}"

    def _folder(self, task: Task) -> TaskFolder:
        return TaskFolder(self._options.results / task.id)

    def _told(self, text: str) -> None:
        over = sum(record.is_over for record in self._records.values())
        self._control.warn(f"[{over}/{len(self._tasks)}] {text.rstrip('.')}.")


def _bounded(task: Task, options: BatchOptions) -> Task:
    """A task with the limits of the batch if it has none."""
    return task.replace(
        until=task.until or options.until,
        max_cost=options.task_cost if task.max_cost is None else task.max_cost,
        max_time=options.task_time if task.max_time is None else task.max_time,
    )


@contextmanager
def alone_in(results: Path, timeouts: Timeouts) -> Iterator[None]:
    """Lock the folder of the results against other batches; it is created if missing.

    Raises:
        BatchBusy: another batch works in it.
        BatchFault: it is not writable.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BatchFault(f"{results} cannot be written: {error.strerror}.") from error
    with _held(results / _LOCK, timeouts):
        yield


@contextmanager
def _held(path: Path, timeouts: Timeouts) -> Iterator[Path]:
    """Lock a file, which is never removed; the system releases the lock when this process exits. Blocks."""
    try:
        lock = os.open(path, _OPEN, 0o600)
    except OSError as error:
        raise BatchFault(f"{path} cannot be written: {error.strerror}.") from error
    try:
        deadline = time.monotonic() + timeouts.lock
        while not take_lock(lock):
            if time.monotonic() >= deadline:
                raise BatchBusy(f"Another batch is running in {path.parent}. Wait until it ends, or stop it.")
            time.sleep(timeouts.lock_poll)
        yield path
    finally:
        os.close(lock)
