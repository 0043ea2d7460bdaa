"""Texts that all report formats share."""

from __future__ import annotations

from collections.abc import Mapping

from ..records import GateName
from .matrix import Proof

GATE_WORDS: Mapping[GateName, str] = {
    "red": "new tests fail before the code exists, and for that reason",
    "green": "the tests pass",
    "unweakened": "no test was weakened, skipped or deleted",
    "no_mocks": "no mocks replace real behaviour",
    "mutations": "mutations of the new code are caught by the tests",
}
"""What each gate checks."""

_PROOFS: Mapping[Proof, str] = {
    "shown": "Shown.",
    "failing": "Failing.",
    "pending": "Not shown yet.",
    "untested": "Untested.",
}


def proof_words(proof: Proof) -> str:
    """The result of a criterion, in a word or two."""
    return _PROOFS[proof]
