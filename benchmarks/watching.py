"""What it costs that the event loop is watched for code of packs that blocks it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

from benchmarks.lab import interleaved, median
from benchmarks.table import Row
from marvin_core.api.timeouts import Timeouts
from marvin_core.util.watchdog import Watchdog

_IDLE = 3.0
"""Seconds."""
_STEPS = 600_000
"""So many take longer than the second after which the thread has its first look."""
_STARTS = 20
_GOALS = {"begin": 1.0, "idle": 1.0, "busy": 1.03}


def rows(rounds: int) -> Iterator[Row]:
    """The rows of the table on the watchdog: its beginning, a second without work, a loop without a pause."""
    begin, idle = asyncio.run(_idle())
    yield Row("watchdog, its beginning", begin, _GOALS["begin"], "ms", "a thread")
    yield Row("watchdog, a second without work", idle, _GOALS["idle"], "ms", f"processor time in {_IDLE:g} s")
    # By turns, so that what else the machine does hits both alike.
    runs = interleaved(
        {"alone": partial(_used, watched=False), "beside": partial(_used, watched=True), "idle": partial(_used_by_two)},
        rounds,
    )
    alone, beside, idle = (median(runs[name]) for name in ("alone", "beside", "idle"))
    how = f"{beside * 1e3:.0f} ms of processor time for {_STEPS:,} steps of a loop; {alone * 1e3:.0f} ms unwatched, "
    how += f"{idle * 1e3:.0f} ms beside a thread that does nothing"
    yield Row("watchdog, a loop without a pause", beside / alone, _GOALS["busy"], "x", how)


async def _idle() -> tuple[float, float]:
    loop, begins = asyncio.get_running_loop(), []
    for _ in range(_STARTS):
        begun = time.perf_counter()
        with _dog().watching(loop):
            begins.append(time.perf_counter() - begun)
    with _dog().watching(loop):
        used = time.process_time()
        await asyncio.sleep(_IDLE)
        return median(begins) * 1e3, (time.process_time() - used) / _IDLE * 1e3


def _used(*, watched: bool) -> float:
    return asyncio.run(_busy(watched=watched))


def _used_by_two() -> float:
    """The floor: calls of the system cost more as soon as there is a second thread, whatever it does."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    try:
        return _used(watched=False)
    finally:
        over.set()
        thread.join()


async def _busy(*, watched: bool) -> float:
    with _dog().watching(asyncio.get_running_loop()) if watched else nullcontext():
        used = time.process_time()
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        return time.process_time() - used


def _dog() -> Watchdog:
    return Watchdog(Timeouts(), print, print)
