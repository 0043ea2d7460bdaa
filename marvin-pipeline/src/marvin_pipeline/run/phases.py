"""The phases in their order, and what is done in each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from marvin_core import MarvinError, Record

from ..progress import Progress
from ..state import PHASES
from .ends import PhaseEnd, raise_first
from .roles import ROLES

if TYPE_CHECKING:
    from .context import Run

PhaseFunction: TypeAlias = "Callable[[Run], Awaitable[PhaseEnd]]"


class Phase(Record):
    """A phase of the pipeline."""

    work: PhaseFunction
    needs: tuple[str, ...] = ()
    """The documents below `.marvin` that have to be there before it begins."""
    agents: Mapping[str, int]
    """The agents that it takes when all goes well, by their roles; the forecast is made of them."""


class NotReady(MarvinError):
    """What a phase needs is missing."""


async def _documents(run: Run) -> PhaseEnd:
    """The two writers work side by side. Where one fails, the other one comes to its end, so that nothing is lost."""
    import asyncio

    both = (_document(run, "spec", "1a"), _document(run, "ux", "1a"))
    raise_first(await asyncio.gather(*both, return_exceptions=True))
    return PhaseEnd(outcome="passed", reason="The specification and the user experience are written.")


async def _document(run: Run, name: str, phase: str) -> None:
    from ..documents.writing import write_document

    await write_document(run, f"{name}.md", name, {}, phase=phase)


async def _documents_review(run: Run) -> PhaseEnd:
    from ..review.rounds import review_document

    end = PhaseEnd(outcome="passed", reason="")
    for document in ("spec.md", "ux.md"):
        end = end.then(await review_document(run, document, "1a_review"))
        if not end.goes_on:
            break
    return end


async def _design(run: Run) -> PhaseEnd:
    await _document(run, "design", "1b")
    return PhaseEnd(outcome="passed", reason="The design is written.")


async def _design_review(run: Run) -> PhaseEnd:
    from ..review.rounds import review_document

    return PhaseEnd(outcome="passed", reason="").then(await review_document(run, "design.md", "1b_review"))


async def _functional_tests(run: Run) -> PhaseEnd:
    return await _written(run, "2a", "structure", "tests")


async def _integration_tests(run: Run) -> PhaseEnd:
    return await _written(run, "2b", "integration_tests")


async def _implementation(run: Run) -> PhaseEnd:
    return await _written(run, "3", "implementation")


async def _written(run: Run, phase: str, *roles: str) -> PhaseEnd:
    """One writer after the other, a checkpoint behind each of them, then a review of what they wrote.

    Before the review and after it the tests are looked at: whether they ask for less, and whether they stand on mocks.
    """
    from ..evidence.held import HeldTests
    from ..review.rounds import review_code
    from ..review.subjects import TEST_PHASES

    begun, progress = await _begun(run, phase), Progress(run.files, phase, "writers")
    held = HeldTests(run, phase, begun if phase in TEST_PHASES else "")
    await held.begin()
    done = {note.get("role") for note in progress.read()}
    for role in roles:
        if role not in done:
            await run.ask_for(role, {}, phase=phase)
            progress.note(role=role)
        await run.git.checkpoint(f"{phase}: after the agent that was to {ROLES[role].words}")
    await held.hold(roles[-1])  # what is left of it is told behind the review, which may have it mended
    end = PhaseEnd(outcome="passed", reason="").then(await review_code(run, phase, begun))
    if end.goes_on:
        end = end.then(await held.hold("code_fixer"))
    if end.goes_on and phase == TEST_PHASES[-1]:
        await held.keep("The tests of 2a and 2b are what the run is held to.", "passed")
    return end


async def _debug(run: Run) -> PhaseEnd:
    from ..checks.debug import run_debug
    from ..evidence.held import held_tests
    from ..review.rounds import review_code

    begun, held = await _begun(run, "4a"), await held_tests(run, "4a")
    end = await run_debug(run, held)
    if end.goes_on:
        end = end.then(await review_code(run, "4a", begun))
    return end.then(await held.hold("code_fixer")) if end.goes_on else end


async def _begun(run: Run, phase: str) -> str:
    """The commit with which a phase that writes code began, also where the run was killed since."""
    progress = Progress(run.files, phase, "writers")
    begun = next((str(note["begun"]) for note in reversed(progress.read()) if "begun" in note), "")
    if not await run.git.knows(begun):  # there is none yet, or somebody has rewritten the history since
        begun = await run.git.checkpoint(f"{phase}: before the first agent")
        progress.note(begun=begun)
    return begun


async def _e2e(run: Run) -> PhaseEnd:
    from ..checks.e2e import run_e2e

    return await run_e2e(run)


async def _frontend(run: Run) -> PhaseEnd:
    from ..checks.frontend import run_frontend

    return await run_frontend(run)


async def _qa(run: Run) -> PhaseEnd:
    from ..checks.qa import run_qa

    return await run_qa(run)


_REVIEW = {"reviewer": 2, "aux_reviewer": 4, "quality_reviewer": 2, "fixer": 1}
_SPEC, _ALL = ("spec.md", "ux.md"), ("spec.md", "ux.md", "design.md")

TABLE: Mapping[str, Phase] = {
    "1a": Phase(work=_documents, agents={"spec": 1, "ux": 1}),
    "1a_review": Phase(work=_documents_review, needs=_SPEC, agents={name: 2 * n for name, n in _REVIEW.items()}),
    "1b": Phase(work=_design, needs=_SPEC, agents={"design": 1}),
    "1b_review": Phase(work=_design_review, needs=_ALL, agents=_REVIEW),
    "2a": Phase(work=_functional_tests, needs=("design.md",), agents={"structure": 1, "tests": 1, "code_reviewer": 1}),
    "2b": Phase(work=_integration_tests, needs=("design.md",), agents={"integration_tests": 1, "code_reviewer": 1}),
    "3": Phase(work=_implementation, needs=("design.md",), agents={"implementation": 1, "code_reviewer": 1}),
    "4a": Phase(work=_debug, agents={"debug": 2, "code_reviewer": 1}),
    "4b": Phase(work=_e2e, agents={"e2e": 1}),
    "4c": Phase(work=_frontend, agents={"frontend": 1}),
    "5": Phase(work=_qa, agents={"qa_reviewer": 1, "qa_fixer": 1}),
}
"""The phases by name. Those that work with the tests begin at 2a also where somebody else wrote the design."""


def check_ready(run: Run, phase: str) -> None:
    """Refuse a phase whose documents are missing. Blocks.

    Raises:
        NotReady: one is missing, or is no document; the text says with which phase to begin.
        FileFault: one cannot be read.
    """
    from ..documents.checks import why_no_document

    for document in TABLE[phase].needs:
        content = run.files.read(document)
        if why := why_no_document(content):
            state = "is missing" if content is None else f"is no document: {why}"
            raise NotReady(
                f"Phase {phase} needs .marvin/{document}, which {state}. "
                f"Write it, or begin with --from {'1b' if document == 'design.md' else '1a'}."
            )


def phases_of(first: str, until: str) -> tuple[str, ...]:
    """The phases from one to another, both included; an empty `until` stands for the last one."""
    end = PHASES.index(until) + 1 if until else len(PHASES)
    return PHASES[PHASES.index(first) : end]
