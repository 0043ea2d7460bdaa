"""Runs all phases, and writes a summary at the end, however the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from traceback import format_exception

from marvin_core import BudgetExceeded, MarvinError, RunControl, TurnResult, in_thread

from ..evidence.ci.github import harmless
from ..evidence.ci.reports import Reports
from ..evidence.ci.results import Ending
from ..progress import carry
from ..settings import PipelineSettings
from ..state import MEANINGS
from .beginning import alone_in, begin, request_of
from .context import Run
from .ends import PhaseEnd
from .failures import FAILURES, PipelineFailed
from .files import ProjectFiles
from .forecast import forecast
from .phases import TABLE, check_ready, phases_of
from .summary import PhaseRecord, Summary

_TITLE = "Marvin's pipeline"
_TRACEBACK = 2_000
_EXIT_INTERRUPTED = 130
_MISTAKE = "`.marvin/logs/pipeline.jsonl` shows where. Run it again to continue."


async def run_pipeline(control: RunControl, settings: PipelineSettings) -> TurnResult:
    """Run the pipeline as the configuration asks for it.

    Raises:
        MarvinError: it could not start. Later errors are in the result.
    """
    try:
        request = await request_of(control, settings)
        with alone_in(ProjectFiles(request.folder)):
            run = await begin(control, request, settings)
            return await Runner(run).run()
    except MarvinError as error:
        if control.config.github:
            error.args = (harmless(str(error)),)
        raise


class Runner:
    """One run, phase by phase."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._phases: list[PhaseRecord] = []
        self._begun = run.control.clock.monotonic()
        self._reports = Reports(run)

    async def run(self) -> TurnResult:
        """Run the phases; the result has the summary, and the error of a run that did not finish."""
        error: MarvinError | None = None
        left: str | None = None
        try:
            await self._reports.begun()
            await self._through()
            left = await in_thread(self._run.state.next_phase)
            await self._reports.check()
        except asyncio.CancelledError:  # a run that is interrupted also gets a summary
            summary = await self._end("interrupted", "It was interrupted.", _EXIT_INTERRUPTED)
            return TurnResult(text=self._reports.text(summary), cancelled=True)
        except MarvinError as stopped:
            error = stopped
        except Exception as mistake:  # the run gets an end and a report all the same
            self._note("mistake", traceback="".join(format_exception(mistake))[-_TRACEBACK:])
            error = PipelineFailed(f"A bug in the pipeline stopped the run: {mistake!r}. {_MISTAKE}")
        if error is None:
            summary = await self._end("paused" if left else "done", "", 0)
            if summary.unsaved:  # else readers would take an older report for this one
                error = PipelineFailed(summary.unsaved)
        else:
            ended = "budget" if isinstance(error, BudgetExceeded) else "failed"
            summary = await self._end(ended, str(error), error.exit_code)
        return TurnResult(text=self._reports.text(summary), error=self._reports.told(error))

    async def _through(self) -> None:
        run = self._run
        first = await in_thread(run.state.next_phase)
        for phase in phases_of(first, run.request.until_phase) if first else ():
            if await in_thread(partial(run.state.is_done, phase)):  # another run may have been faster
                continue
            end = await self._phase(phase)
            if not end.goes_on:
                raise FAILURES[end.cause](f"Phase {phase} ({MEANINGS[phase]}) stopped the run. {end.reason}")
            await in_thread(partial(carry, run.files, phase, end.carried))
            await in_thread(partial(run.state.save, phase))
            await run.git.checkpoint(f"{phase}: {MEANINGS[phase]} ({end.outcome})")
            run.tell_of_checkpoints()
            await self._reports.begun()

    async def _phase(self, phase: str) -> PhaseEnd:
        """Run a phase, and record how it ended, whatever happens."""
        run, begun = self._run, self._run.control.clock.monotonic()
        await in_thread(partial(check_ready, run, phase))
        run.limits.check()
        expected = await self._forecast(phase)
        end = PhaseEnd(outcome="failed", reason="It was interrupted.")
        try:
            end = await TABLE[phase].work(run)
        except Exception as error:
            end = PhaseEnd(outcome="failed", reason=str(error) if isinstance(error, MarvinError) else repr(error))
            raise
        finally:
            seconds = run.control.clock.monotonic() - begun
            self._phases.append(PhaseRecord(phase=phase, end=end, seconds=seconds, forecast=expected))
            self._note("phase_end", phase=phase, **end.as_dict(), seconds=round(seconds, 3))
            run.carried.extend(end.carried)
            self._tell(f"{phase}: {end.outcome}. {end.reason}".strip())
        return end

    async def _forecast(self, phase: str) -> float | None:
        run = self._run
        expected = await forecast(run, TABLE[phase].agents)
        told = "at an unknown price" if expected is None else f"for about {expected:.2f} USD"
        run.journal.note("phase_begin", phase=phase, forecast=expected)
        self._tell(f"{phase}: {MEANINGS[phase]}, {told}.")
        left = run.limits.money_left
        if expected is not None and left is not None and expected > left:
            run.tell(f"{phase}: this may cost more than the {left:.2f} USD that are left.")
        return expected

    def _tell(self, text: str) -> None:
        self._run.tell(text)
        self._run.control.notify(text, title=_TITLE)

    def _note(self, event: str, **fields: object) -> None:
        """Add a line to the journal if possible: a full disk must not prevent the summary."""
        with suppress(MarvinError):
            self._run.journal.note(event, **fields)

    async def _end(self, ended: str, reason: str, code: int) -> Summary:
        run, next_phase = self._run, ""
        with suppress(MarvinError):  # the state may be what stopped the run
            next_phase = run.state.next_phase() or ""
        summary = Summary(
            ended=ended,
            reason=reason,
            exit_code=code,
            phases=tuple(self._phases),
            agents=tuple(run.journal.agents),
            seconds=run.control.clock.monotonic() - self._begun,
            next_phase=next_phase,
            carried=tuple(run.carried),
            blocking=_blocking(self._phases),
            epic=run.tickets.epic,
        )
        self._note("end", ended=ended, reason=reason, exit_code=code)
        ending = Ending(ended=ended, reason=reason, exit_code=code, next_phase=next_phase)
        try:
            summary.save(run.files)
            await self._reports.ended(ending)
        except MarvinError as error:
            return summary.replace(unsaved=str(error))
        return summary


def _blocking(phases: Sequence[PhaseRecord]) -> tuple[str, ...]:
    return phases[-1].end.blocking if phases else ()
