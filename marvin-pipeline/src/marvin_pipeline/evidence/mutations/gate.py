"""The gate `mutations`: a sample of small changes to the new code, which the tests should catch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from marvin_core import Record, in_thread

from ...checks.commands import ProjectCommand
from ...checks.running import commands_of
from ...run.ends import PhaseEnd
from ..new_code import new_lines
from ..records import EvidenceLog, Gate, GateOutcome
from . import javascript, python
from .parts import parts_of
from .tried import ENOUGH, Limit, NotMeasured, Part, Tried, share

if TYPE_CHECKING:
    from ...run.context import Run

_Attempt: TypeAlias = "Callable[[Run, Part, Limit], Awaitable[Tried]]"


class _Tool(Record):
    """A mutation tool for a language."""

    language: str
    suffixes: tuple[str, ...]
    programs: Collection[str]
    """The programs that run its tests."""
    attempt: _Attempt


_TOOLS = (
    _Tool(language="Python", suffixes=python.SUFFIXES, programs=python.PROGRAMS, attempt=python.try_python),
    _Tool(
        language="JavaScript",
        suffixes=javascript.SUFFIXES,
        programs=javascript.PROGRAMS,
        attempt=javascript.try_javascript,
    ),
)
_OTHERS = {
    ".go": "Go",
    ".rs": "Rust",
    ".java": "Java",
    ".kt": "Kotlin",
    ".rb": "Ruby",
    ".php": "PHP",
    ".c": "C",
    ".cc": "C++",
    ".cpp": "C++",
    ".cs": "C#",
    ".swift": "Swift",
    ".ex": "Elixir",
    ".scala": "Scala",
}
"""Languages without a tool here, by file extension."""
_UNKNOWN = "It is unknown which code is new, for example because the run began after phase 3."
_NAMED = 5


async def check_mutations(run: Run, phase: str) -> PhaseEnd:
    """Try mutations of the code written since phase 3 began, and record the result. The gate never fails the phase.

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
        why = "No mutations are asked for (packs.pipeline.mutations is 0)."
        return _gate(phase, commit, "not_measured", why).replace(excused=why)
    new = await new_lines(run)
    if new is None:
        return _gate(phase, commit, "not_measured", _UNKNOWN)
    return _judged(phase, commit, await _tried(run, new))


class _Found(Record):
    """The results of the tools: the mutations, why some were not tried, and why there is nothing to mutate."""

    done: tuple[Tried, ...]
    faults: tuple[str, ...]
    nothing: tuple[str, ...]


async def _tried(run: Run, new: Mapping[str, Sequence[int]]) -> _Found:
    commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
    faults = list(_untold(commands.of("test"), new))
    work = list(_work(commands.of("test"), new))
    done, nothing = list[Tried](), list[str]()
    for tool, part in work:
        try:
            done.append(await tool.attempt(run, part, _limit(run, len(work))))
        except NotMeasured as why:
            (faults if why.is_fault else nothing).append(str(why))
        except OSError as error:  # the disk is full, or files of agents are in the way
            faults.append(f"The copy of the project cannot be worked with: {error}")
    return _Found(done=tuple(done), faults=tuple(dict.fromkeys(faults)), nothing=tuple(nothing))


def _work(tests: Sequence[ProjectCommand], new: Mapping[str, Sequence[int]]) -> Iterator[tuple[_Tool, Part]]:
    for tool in _TOOLS:
        own = {file: lines for file, lines in new.items() if file.endswith(tool.suffixes)}
        yield from ((tool, part) for part in parts_of(tests, own, tool.programs)[0])


def _untold(tests: Sequence[ProjectCommand], new: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The code without a mutation tool."""
    for tool in _TOOLS:
        own = {file: lines for file, lines in new.items() if file.endswith(tool.suffixes)}
        if untested := parts_of(tests, own, tool.programs)[1]:
            more = f" and {len(untested) - _NAMED} more files" if len(untested) > _NAMED else ""
            yield f"No command was found that tests the {tool.language} of {', '.join(untested[:_NAMED])}{more}."
    others = sorted({name for file in new for suffix, name in _OTHERS.items() if file.endswith(suffix)})
    if others:
        yield f"There is no tool here that makes mutations of {', '.join(others)}."


def _judged(phase: str, commit: str, found: _Found) -> Gate:
    mutations = [mutation for tried in found.done for mutation in tried.mutations]
    told = " ".join([*found.faults, *found.nothing])
    if not mutations:
        why = told or "There is no new code that a tool could change."
        gate = _gate(phase, commit, "not_measured", why)
        return gate.replace(faults=found.faults, excused="" if found.faults else why)
    caught = sum(one.caught for one in mutations)
    tools = ", ".join(f"{one.tool}{' (stopped by its time limit)' if one.is_cut_off else ''}" for one in found.done)
    reason = (
        f"{caught} of {len(mutations)} mutations of the new code are caught ({share(mutations):.0%}), a sample of "
        f"{sum(one.found for one in found.done)} by {tools}. {told}"
    ).strip()
    outcome: GateOutcome = "passed" if share(mutations) >= ENOUGH else "failed"
    places = tuple(one.place for one in mutations if not one.caught)
    return _gate(phase, commit, outcome, reason).replace(places=places, faults=found.faults)


def _gate(phase: str, commit: str, outcome: GateOutcome, reason: str) -> Gate:
    return Gate(name="mutations", phase=phase, outcome=outcome, reason=reason, commit=commit)


def _limit(run: Run, parts: int) -> Limit:
    """The limit of mutations and time for each part."""
    settings, left = run.settings, run.limits.time_left
    seconds = settings.mutation_time if left is None else min(settings.mutation_time, left)
    return Limit(mutations=max(1, settings.mutations // parts), seconds=seconds / parts)
