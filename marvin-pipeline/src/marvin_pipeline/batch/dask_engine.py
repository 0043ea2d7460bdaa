"""The engine for several machines: dask.distributed, an extra, imported on demand."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from marvin_core import in_thread

from .engines import EngineLost, WorkerLost
from .records import Order, TaskRecord, record_of
from .work import work_on


class DaskEngine:
    """Dask workers, which need the results folder under the same path as this process.

    Each worker uses the keys and settings of its own machine; none are sent.

    Args:
        distributed: the module.
        client: the client of the scheduler.
        cluster: the cluster that was started here; None for an external scheduler.
    """

    def __init__(self, distributed: Any, client: Any, cluster: Any) -> None:
        self._distributed = distributed
        self._client = client
        self._cluster = cluster

    @classmethod
    async def open(cls, scheduler: str, workers: int) -> DaskEngine:
        """Connect to a scheduler, or start one with workers on this machine. Raises `EngineLost`."""
        return await in_thread(lambda: cls._opened(scheduler, workers))

    @classmethod
    def _opened(cls, scheduler: str, workers: int) -> DaskEngine:
        # No dashboard: anybody on this machine could open it.
        settings = {"distributed.worker.memory.terminate": False, "distributed.worker.memory.pause": False}
        import_module("dask").config.set(settings)
        distributed = import_module("distributed")
        try:
            cluster = None
            if not scheduler:
                # One task at a time: a run has processes of its own, and the thread only waits for them.
                cluster = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,
                    dashboard_address=None,
                    silence_logs="CRITICAL",
                )
            client = distributed.Client(cluster if cluster is not None else scheduler, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineLost(f"dask cannot be reached{f' at {scheduler}' if scheduler else ''}: {error}") from error
        return cls(distributed, client, cluster)

    async def work(self, order: Order) -> TaskRecord:
        """Run a task, as `Engine.work`. If a worker dies, dask reassigns the task itself."""
        values = {**order.as_dict(), "words": list(order.words)}
        key = f"{order.id}-{os.urandom(6).hex()}"  # never reuse the result of an earlier run of this task
        return record_of(await in_thread(lambda: self._done(work_on, values, key), to_the_end=True))

    def _done(self, function: Callable[[dict[str, Any]], dict[str, Any]], values: dict[str, Any], key: str) -> Any:
        try:
            return self._client.submit(function, values, key=key, pure=False).result()
        except self._distributed.KilledWorker as error:
            raise WorkerLost(f"Several workers that ran it died: {error.last_worker}.") from error
        except (OSError, self._distributed.client.FutureCancelledError) as error:
            raise EngineLost(f"The connection to the dask scheduler was lost: {error}") from error

    async def close(self) -> None:
        """Disconnect from the scheduler, and stop what was started here."""
        await in_thread(self._close)

    def _close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
