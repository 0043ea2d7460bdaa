"""The gate `mutations`: a sample of small changes to the new code, which the tests should catch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from marvin_core import Record, in_thread

from ...progress import Progress
from ...run.ends import PhaseEnd
from ..criteria import is_test_file
from ..records import EvidenceLog, Gate, GateOutcome
from . import javascript, python
from .tried import ENOUGH, NotMeasured, Tried, share

if TYPE_CHECKING:
    from ...run.context import Run

_TOOLS = ((python.SUFFIXES, python.try_python), (javascript.SUFFIXES, javascript.try_javascript))
_CODE = (".go", ".rs", ".java", ".kt", ".rb", ".php", ".c", ".cc", ".cpp", ".cs", ".swift", ".ex", ".scala")
_BEGUN = ("3", "2a")
"""The phases from whose beginning on code is new, the first one that is noted."""


async def check_mutations(run: Run, phase: str) -> PhaseEnd:
    """Try mutations of what was written since phase 3 began, and note what came of it. The phase goes on in any case.

    Raises:
        BudgetExceeded: the money or the time is used up.
        FileFault: the log cannot be written.
        GitFault: git fails.
    """
    log, commit = EvidenceLog(run.files), await run.git.checkpoint(f"{phase}: before mutations are tried")
    if await in_thread(lambda: log.passed("mutations", phase, commit)):
        return PhaseEnd(outcome="passed", reason="")
    run.limits.check()
    run.tell(f"{phase}: mutations of the new code are tried.")
    found = await _measured(run, phase, commit)
    await in_thread(lambda: log.add(found))
    run.tell(f"{phase}: mutations: {found.outcome.replace('_', ' ')}. {found.reason}")
    carried = (f"medium: {found.reason}",) if found.outcome == "failed" else ()
    return PhaseEnd(outcome="passed", reason="", carried=carried)


async def _measured(run: Run, phase: str, commit: str) -> Gate:
    if not run.settings.mutations:
        return _gate(phase, commit, "not_measured", "No mutations are asked for (packs.pipeline.mutations is 0).")
    new = await _new_lines(run)
    done: list[Tried] = []
    faults: list[str] = []
    others: list[str] = []
    for suffixes, attempt in _TOOLS:
        own = {file: lines for file, lines in new.items() if file.endswith(suffixes)}
        if not own:
            continue
        try:
            done.append(await attempt(run, own, _seconds(run)))
        except NotMeasured as why:
            (faults if why.is_fault else others).append(str(why))
        except OSError as error:  # the disk is full, or what agents wrote is in the way
            faults.append(f"The copy of the project cannot be worked with: {error}")
    if any(file.endswith(_CODE) for file in new):
        others.append("There is no tool here for some of the languages.")
    return _judged(phase, commit, _Found(done=tuple(done), faults=tuple(faults), others=tuple(others)))


class _Found(Record):
    """What the tools said: what they tried, where they failed, and where there is none."""

    done: tuple[Tried, ...]
    faults: tuple[str, ...]
    others: tuple[str, ...]


def _judged(phase: str, commit: str, found: _Found) -> Gate:
    mutations = [mutation for tried in found.done for mutation in tried.mutations]
    told = " ".join([*found.faults, *found.others])
    if not mutations:
        why = told or "There is no new code that a tool could change."
        return _gate(phase, commit, "not_measured", why).replace(faults=found.faults)
    caught = sum(one.caught for one in mutations)
    tools = ", ".join(f"{one.tool}{' (cut off by its time)' if one.is_cut_off else ''}" for one in found.done)
    reason = (
        f"{caught} of {len(mutations)} mutations of the new code are caught ({share(mutations):.0%}), a sample of "
        f"{sum(one.found for one in found.done)} by {tools}. {told}"
    ).strip()
    outcome: GateOutcome = "passed" if share(mutations) >= ENOUGH else "failed"
    places = tuple(one.place for one in mutations if not one.caught)
    return _gate(phase, commit, outcome, reason).replace(places=places, faults=found.faults)


def _gate(phase: str, commit: str, outcome: GateOutcome, reason: str) -> Gate:
    return Gate(name="mutations", phase=phase, outcome=outcome, reason=reason, commit=commit)


def _seconds(run: Run) -> float:
    left = run.limits.time_left
    return run.settings.mutation_time if left is None else min(run.settings.mutation_time, left)


async def _new_lines(run: Run) -> Mapping[str, Sequence[int]]:
    """The lines of code that came since the implementation began, by file; tests are none."""
    since = await in_thread(lambda: _begun(run))
    if not await run.git.knows(since):
        return {}
    names = [name for name in await run.git.changed_since(since) if not name.startswith(".") and not is_test_file(name)]
    lines = {name: await run.git.new_lines(since, name) for name in names if "." in name}
    return {name: numbers for name, numbers in lines.items() if numbers}


def _begun(run: Run) -> str:
    for phase in _BEGUN:
        notes = reversed(Progress(run.files, phase, "writers").read())
        if begun := next((str(note["begun"]) for note in notes if "begun" in note), ""):
            return begun
    return ""
