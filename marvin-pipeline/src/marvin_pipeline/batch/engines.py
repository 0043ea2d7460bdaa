"""Where the tasks of a batch are worked on: in processes of this machine, or by an engine that has other machines."""

from __future__ import annotations

import importlib.util
from typing import Protocol

from marvin_core import MarvinError, UsageError, in_thread

from .records import Order, TaskRecord, record_of
from .work import work_on

ENGINES = ("local", "dask")


class WorkerLost(MarvinError):
    """The worker that had a task is gone, and nobody goes on with it by himself."""


class EngineLost(MarvinError):
    """The engine is gone, with all of its workers."""


class Engine(Protocol):
    """Works on tasks. It ends its work by itself once nobody leads the batch any more."""

    async def work(self, order: Order) -> TaskRecord:
        """Work on a task; returns how it stands then. Several at a time.

        Raises:
            WorkerLost: its worker is gone.
            EngineLost: the engine is.
            BatchFault: what is kept of the task cannot be read or written.
        """
        ...

    async def close(self) -> None:
        """Let go of what the engine has. Nothing is under way any more."""
        ...


class LocalEngine:
    """A process of this machine for each task, which this process waits for."""

    async def work(self, order: Order) -> TaskRecord:
        """Work on a task, as `Engine.work` says."""
        values = order.as_dict()
        return record_of(await in_thread(lambda: work_on(values), to_the_end=True))

    async def close(self) -> None:
        """There is nothing to let go of."""


def check_engine(name: str, scheduler: str) -> None:
    """Refuse an engine that there is not.

    Raises:
        UsageError: there is none of this name, it takes no scheduler, or what it needs is not installed.
    """
    if name not in ENGINES:
        raise UsageError(f"Unknown engine {name!r}. Available: {', '.join(ENGINES)}.")
    if name == "local" and scheduler:
        raise UsageError("--scheduler needs the engine dask. Add --engine dask, or leave --scheduler out.")
    if name == "dask" and importlib.util.find_spec("distributed") is None:
        raise UsageError('The engine dask is not installed. Install it: pip install "marvin-pipeline[dask]"')


async def open_engine(name: str, scheduler: str, workers: int) -> Engine:
    """The engine of this name, which is one that there is.

    Args:
        scheduler: the address of one that runs; empty for one that is started here.
        workers: how many workers one has that is started here.

    Raises:
        EngineLost: it cannot be reached, or started.
    """
    if name == "local":
        return LocalEngine()
    from .dask_engine import DaskEngine

    return await DaskEngine.open(scheduler, workers)
