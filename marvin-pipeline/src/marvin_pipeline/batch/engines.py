"""The engines that run the tasks of a batch: processes of this machine, or an engine for several machines."""

from __future__ import annotations

import importlib.util
from typing import Protocol

from marvin_core import MarvinError, UsageError, in_thread

from .records import Order, TaskRecord, record_of
from .work import work_on

ENGINES = ("local", "dask")


class WorkerLost(MarvinError):
    """The worker of a task is gone, and the engine does not reassign the task."""


class EngineLost(MarvinError):
    """The engine is gone, with all of its workers."""


class Engine(Protocol):
    """Runs tasks. Its work stops by itself when the batch is no longer led."""

    async def work(self, order: Order) -> TaskRecord:
        """Run a task; returns its record. May be called several times in parallel.

        Raises:
            WorkerLost: its worker is gone.
            EngineLost: the engine is gone.
            BatchFault: the task's stored state cannot be read or written.
        """
        ...

    async def close(self) -> None:
        """Release the engine's resources. No task is running any more."""
        ...


class LocalEngine:
    """A process of this machine for each task."""

    async def work(self, order: Order) -> TaskRecord:
        """Run a task, as `Engine.work`."""
        values = order.as_dict()
        return record_of(await in_thread(lambda: work_on(values), to_the_end=True))

    async def close(self) -> None:
        """There is nothing to release."""


def check_engine(name: str, scheduler: str) -> None:
    """Check the name and the options of an engine.

    Raises:
        UsageError: there is no such engine, it takes no scheduler, or a dependency is not installed.
    """
    if name not in ENGINES:
        raise UsageError(f"Unknown engine {name!r}. Available: {', '.join(ENGINES)}.")
    if name == "local" and scheduler:
        raise UsageError("--scheduler needs the engine dask. Add --engine dask, or leave --scheduler out.")
    if name == "dask" and importlib.util.find_spec("distributed") is None:
        raise UsageError('The engine dask is not installed. Install it: pip install "marvin-pipeline[dask]"')


async def open_engine(name: str, scheduler: str, workers: int) -> Engine:
    """The engine of a valid name.

    Args:
        scheduler: the address of a running one; empty to start one here.
        workers: the number of workers to start.

    Raises:
        EngineLost: it cannot be reached, or started.
    """
    if name == "local":
        return LocalEngine()
    from .dask_engine import DaskEngine

    return await DaskEngine.open(scheduler, workers)
