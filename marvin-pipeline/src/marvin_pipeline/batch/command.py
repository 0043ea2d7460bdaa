"""`marvin pipeline batch`: from its arguments to the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from marvin_core import CliContext, MarvinError, RunControl, TurnResult, UsageError, in_thread

from ..settings import PipelineSettings
from .batch import Batch, BatchOptions, alone_in
from .engines import open_engine
from .index import Index
from .tasks import Task, read_tasks

_EXIT_INTERRUPTED = 130


class BatchEnd(MarvinError):
    """Not all tasks of a batch passed."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


async def run_batch(control: RunControl, settings: PipelineSettings, options: BatchOptions, tasks: Path) -> TurnResult:
    """Run the tasks of a file, or resume them.

    Raises:
        MarvinError: it could not start. Later errors are in the result.
    """
    config = control.config
    if config.depth or config.read_only or config.writable_files is not None:
        raise UsageError("An agent may not run batches. Run this command from a shell.")
    options.check()
    found = await in_thread(lambda: read_tasks(tasks, list(config.tiers)))
    with ExitStack() as held:
        await in_thread(lambda: held.enter_context(alone_in(options.results, config.timeouts)))
        batch = Batch(control, settings, options, found)
        await batch.prepare()
        return await _done(batch, options, found)


async def _done(batch: Batch, options: BatchOptions, tasks: Sequence[Task]) -> TurnResult:
    """Run the batch, and always write its results."""

    def index(**fields: Any) -> Index:
        return Index(tasks=tuple(tasks), records=tuple(batch.records), results=options.results, **fields)

    try:
        await _worked(batch, options)
    except asyncio.CancelledError:
        found = index(
            ended="interrupted", reason="To continue, run the same command again.", exit_code=_EXIT_INTERRUPTED
        )
        await found.save()
        return TurnResult(text=found.text(), cancelled=True)
    except MarvinError as error:
        found = index(
            ended="failed", reason=f"{error} To continue, run the same command again.", exit_code=error.exit_code
        )
        await found.save()
        return TurnResult(text=found.text(), error=error)
    found = index()
    await found.save()
    bad = BatchEnd(f"Not all tasks passed: {found.counts}.", found.code) if found.code else None
    return TurnResult(text=found.text(), error=bad)


async def _worked(batch: Batch, options: BatchOptions) -> None:
    if all(record.is_over for record in batch.records):
        return
    engine = await open_engine(options.engine, options.scheduler, options.workers)
    try:
        await batch.run(engine)
    finally:
        await engine.close()


def start(context: CliContext, options: BatchOptions, tasks: Path) -> int:
    """Run the batch; returns the exit code."""
    settings = context.settings(PipelineSettings)
    return context.lead(lambda control: run_batch(control, settings, options, tasks))
