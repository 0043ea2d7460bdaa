"""What fails a completed run: failing tests always, and with `--strict` weak evidence.

Weak evidence is missing, failed or not measured. It does not count as weak if the user disabled the measurement, or
if there was nothing to measure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..records import GateName
from .results import GateResult, Results
from .words import GATE_WORDS

_NEEDED: Mapping[str, tuple[GateName, ...]] = {
    "2a": ("red", "no_mocks"),
    "2b": ("red", "no_mocks", "unweakened"),
    "3": ("unweakened",),
    "4a": ("green", "unweakened", "mutations"),
    "5": ("unweakened",),
}
"""The gates that a finished phase has recorded."""
_NAMED = 10


def red_end(results: Results) -> str:
    """The failing tests of a completed run, for example of one that ended at phase 3; empty without any."""
    done = {phase.phase for phase in results.history.phases if phase.is_done}
    red = [one.gate for one in results.gates if one.gate.name == "green" and one.standing == "failed"]
    return "".join(
        f"Phase {gate.phase} is finished, and its tests are red. {gate.reason} Phase 4a fixes failures: run the "
        "pipeline again, up to that phase or a later one."
        for gate in red[-1:]
        if gate.phase in done
    )


def weaknesses(results: Results, unmeasured: Collection[GateName] = ()) -> Sequence[str]:
    """The weak evidence, a sentence each; empty if all of it holds.

    Args:
        unmeasured: the gates that may be not measured.
    """
    return [*_gates(results, unmeasured), *_criteria(results)]


def _gates(results: Results, unmeasured: Collection[GateName]) -> Sequence[str]:
    there = {(one.gate.phase, one.gate.name) for one in results.gates}
    done = [phase.phase for phase in results.history.phases if phase.is_done]
    needed = [(phase, name) for phase in done for name in _NEEDED.get(phase, ())]
    missing = [
        f"Phase {phase} recorded no result for this: {GATE_WORDS[name]}."
        for phase, name in needed
        if (phase, name) not in there
    ]
    lacking = [one for one in results.gates if one.holds and _lacks(one) and one.gate.name not in unmeasured]
    return [*missing, *(_about(one) for one in results.gates if not one.holds or one in lacking)]


def _lacks(result: GateResult) -> bool:
    """Whether a gate's result is weak, and no later one makes up for it."""
    if result.standing == "not_measured" and not result.gate.excused:
        return True
    return bool(result.gate.faults) and result.standing != "settled"


def _about(result: GateResult) -> str:
    gate = result.gate
    if result.standing == "of_elsewhere":
        return f"The result of {gate.phase} belongs to another history: {GATE_WORDS[gate.name]}."
    if result.holds:
        return (
            f"{gate.phase}: not all of this was measured: {GATE_WORDS[gate.name]}. {gate.reason} Fix that and start "
            f"with --from {gate.phase}, or allow it: add `{gate.name}` to packs.pipeline.unmeasured."
        )
    return f"{gate.phase}: {gate.reason} When that is fixed, start with --from {gate.phase}."


def _criteria(results: Results) -> Sequence[str]:
    """Criteria without a test once the tests are written, and those without passing tests once these should pass."""
    done = {phase.phase for phase in results.history.phases if phase.is_done}
    if "2b" not in done:
        return []
    if not results.criteria:
        return ["The specification has no acceptance criteria, so it is not known what the tests show."]
    wrong = ("untested", "failing", "pending") if "4a" in done else ("untested",)
    ids = [one.criterion.id for one in results.criteria if one.proof in wrong]
    if not ids:
        return []
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return [f"No passing test covers {', '.join(ids[:_NAMED])}{more}."]
