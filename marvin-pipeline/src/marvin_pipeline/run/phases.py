"""The phases in order, and the work of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from marvin_core import MarvinError, Record

from ..progress import Progress
from ..state import PHASES
from .ends import PhaseEnd, raise_first
from .roles import ROLES

if TYPE_CHECKING:
    from ..evidence.held import HeldTests
    from .context import Run

PhaseFunction: TypeAlias = "Callable[[Run], Awaitable[PhaseEnd]]"


class Phase(Record):
    """A phase of the pipeline."""

    work: PhaseFunction
    needs: tuple[str, ...] = ()
    """The documents below `.marvin` that it requires."""
    agents: Mapping[str, int]
    """Its agents in a run without problems, by role; used for the forecast."""


class NotReady(MarvinError):
    """A prerequisite of a phase is missing."""


async def _documents(run: Run) -> PhaseEnd:
    """Run the two writers in parallel. If one fails, the other one still finishes, so that nothing is lost."""
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
    return await _tests(run, "2a", "structure", "tests")


async def _integration_tests(run: Run) -> PhaseEnd:
    """The agent is told which criteria no test names yet; later agents are told which remain."""
    from ..evidence.tracing import untested

    before = await untested(run)
    run.carried.extend(before)
    end = await _tests(run, "2b", "integration_tests")
    run.carried[:] = [line for line in run.carried if line not in before]
    return end.then(PhaseEnd(outcome="passed", reason="", carried=await untested(run))) if end.goes_on else end


async def _tests(run: Run, phase: str, *roles: str) -> PhaseEnd:
    """Tests are written and reviewed; before and after the review they must use no mocks and fail for the right reason.

    Tests that existed at the start of 2b must not be weakened. In 2a they are still being written.
    """
    from ..evidence.held import HeldTests
    from ..evidence.proof import note_tests_before, prove_red
    from ..review.subjects import TEST_PHASES

    begun = await _begun(run, phase)
    held = HeldTests(run, phase, begun, compares=phase != TEST_PHASES[0])
    await note_tests_before(run, phase)
    await _written(run, phase, *roles)
    await held.hold(roles[-1])  # remaining mocks are reported after the review, which may have them fixed
    await prove_red(run, phase, roles[-1], begun, held)
    end = await _reviewed(run, phase, begun, held)
    if end.goes_on:
        end = await _and_held(end, held, prove_red(run, phase, roles[-1], begun, held))
    return end


async def _implementation(run: Run) -> PhaseEnd:
    from ..evidence.held import held_tests
    from ..evidence.proof import prove_green

    begun, held = await _begun(run, "3"), await held_tests(run, "3")
    await _written(run, "3", "implementation")
    await held.hold("implementation")
    end = await _reviewed(run, "3", begun, held)
    if not end.goes_on:
        return end
    return await _and_held(end, held, prove_green(run, "3", "implementation", held, fixed_later=True))


async def _and_held(end: PhaseEnd, held: HeldTests, proof: Awaitable[PhaseEnd | None]) -> PhaseEnd:
    """The result of a phase after a proof, whose agents may have left mocks in the tests."""
    before = held.left_over()
    proven = await proof
    end = end.then(proven) if proven else end
    after = held.left_over()
    return end if after == before else end.then(after)


async def _reviewed(run: Run, phase: str, begun: str, held: HeldTests) -> PhaseEnd:
    """Review what a phase wrote; the fixes must not weaken the tests."""
    from ..review.rounds import review_code

    end = PhaseEnd(outcome="passed", reason="").then(await review_code(run, phase, begun))
    return end.then(await held.hold("code_fixer")) if end.goes_on else end


async def _written(run: Run, phase: str, *roles: str) -> None:
    """Run the writers one after the other, each followed by a checkpoint."""
    progress = Progress(run.files, phase, "writers")
    done = {note.get("role") for note in progress.read()}
    for role in roles:
        if role not in done:
            await run.ask_for(role, {}, phase=phase)
            progress.note(role=role)
        await run.git.checkpoint(f"{phase}: after the agent that was to {ROLES[role].words}")


async def _debug(run: Run) -> PhaseEnd:
    from ..checks.debug import run_debug
    from ..evidence.held import held_tests
    from ..evidence.mutations.gate import check_mutations
    from ..evidence.proof import prove_green

    begun, held = await _begun(run, "4a"), await held_tests(run, "4a")
    end = await run_debug(run, held)
    if end.goes_on:
        end = end.then(await _reviewed(run, "4a", begun, held))
    if end.goes_on:
        end = await _and_held(end, held, prove_green(run, "4a", "debug", held))
    return end.then(await check_mutations(run, "4a")) if end.goes_on else end


async def _begun(run: Run, phase: str) -> str:
    """The commit at the start of a phase that writes code, also if the run was killed since."""
    progress = Progress(run.files, phase, "writers")
    begun = next((str(note["begun"]) for note in reversed(progress.read()) if "begun" in note), "")
    if not await run.git.knows(begun):  # there is none yet, or the history was rewritten since
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
"""The phases by name. Those with tests start at 2a even if somebody else wrote the design."""


def check_ready(run: Run, phase: str) -> None:
    """Refuse a phase whose documents are missing. Blocks.

    Raises:
        NotReady: one is missing or invalid; the text says with which phase to start.
        FileFault: one cannot be read.
    """
    from ..documents.checks import why_no_document

    for document in TABLE[phase].needs:
        content = run.files.read(document)
        if why := why_no_document(content):
            state = "is missing" if content is None else f"is not a document: {why}"
            raise NotReady(
                f"Phase {phase} needs .marvin/{document}, which {state}. Write it, or start with --from "
                f"{'1b' if document == 'design.md' else '1a'}."
            )


def phases_of(first: str, until: str) -> tuple[str, ...]:
    """The phases from one to another, both included; an empty `until` means the last one."""
    end = PHASES.index(until) + 1 if until else len(PHASES)
    return PHASES[PHASES.index(first) : end]
