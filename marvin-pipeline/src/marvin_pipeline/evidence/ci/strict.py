"""What `--strict` holds against a run that came to a good end: evidence that is missing, or worth too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records import GateName
from .results import GateResult, Results
from .words import GATE_WORDS

_NEEDED: Mapping[str, tuple[GateName, ...]] = {
    "2a": ("red",),
    "2b": ("red",),
    "4a": ("green", "unweakened", "mutations"),
    "5": ("unweakened",),
}
"""The gates that a phase which is done has recorded."""
_NAMED = 10


def weaknesses(results: Results) -> Sequence[str]:
    """What is weak, a sentence each; nothing where all of it holds."""
    return [*_gates(results), *_criteria(results)]


def _gates(results: Results) -> Sequence[str]:
    there = {(one.gate.phase, one.gate.name) for one in results.gates}
    done = [phase.phase for phase in results.history.phases if phase.is_done]
    needed = [(phase, name) for phase in done for name in _NEEDED.get(phase, ())]
    missing = [
        f"Phase {phase} recorded nothing on this: {GATE_WORDS[name]}."
        for phase, name in needed
        if (phase, name) not in there
    ]
    return [*missing, *(_about(one) for one in results.gates if not one.holds or _lacks(one))]


def _lacks(result: GateResult) -> bool:
    """Whether less is known than was asked for, and nothing later made up for it."""
    return bool(result.gate.faults) and result.standing not in ("settled", "accepted")


def _about(result: GateResult) -> str:
    gate = result.gate
    if result.standing == "of_elsewhere":
        return f"What {gate.phase} recorded on this is of another history: {GATE_WORDS[gate.name]}."
    return f"{gate.phase}: {gate.reason} Once that is mended, begin with --from {gate.phase}."


def _criteria(results: Results) -> Sequence[str]:
    """Criteria without a test, once the tests are written, and those that are not shown, once they are to pass."""
    done = {phase.phase for phase in results.history.phases if phase.is_done}
    if "2b" not in done:
        return []
    if not results.criteria:
        return ["The specification names no acceptance criteria, so nothing tells what the tests show."]
    wrong = ("untested", "failing", "pending") if "4a" in done else ("untested",)
    ids = [one.criterion.id for one in results.criteria if one.proof in wrong]
    if not ids:
        return []
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return [f"No test that passes shows {', '.join(ids[:_NAMED])}{more}."]
