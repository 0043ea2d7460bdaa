"""How loops and phases end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from marvin_core import BudgetExceeded, Record

Outcome: TypeAlias = Literal["passed", "ended", "failed", "skipped"]
"""passed: it did all that it is for. ended: it came to an end before that, and what is left does not stop the run.
failed: the run stops. skipped: there was nothing to do."""


Cause: TypeAlias = Literal["", "findings", "tests"]
"""Why a run stops, where that has an exit code of its own. findings: those of a review, above the floor, are left.
tests: tests, or what tries the program, fail, or are not worth what they should be."""


class LoopEnd(Record):
    """How a loop of reviews and fixes ended."""

    outcome: Outcome
    reason: str
    """Why it ended, in a sentence."""
    rounds: int = 0
    carried: tuple[str, ...] = ()
    """The findings below the floor that are left, a line each: for the report, and for the agents of later phases."""
    blocking: tuple[str, ...] = ()
    """The findings above the floor that are left, a line each."""
    cause: Cause = ""
    """Why it stops the run, where it failed."""


class PhaseEnd(Record):
    """How a phase ended."""

    outcome: Outcome
    reason: str
    carried: tuple[str, ...] = ()
    """As of `LoopEnd`."""
    blocking: tuple[str, ...] = ()
    """As of `LoopEnd`."""
    cause: Cause = ""
    """As of `LoopEnd`."""

    @property
    def goes_on(self) -> bool:
        """Whether the next phase may begin."""
        return self.outcome != "failed"

    def then(self, later: LoopEnd | PhaseEnd) -> PhaseEnd:
        """The end of this and of what came after it in the same phase: the weaker outcome counts."""
        order: tuple[Outcome, ...] = ("skipped", "passed", "ended", "failed")
        weaker = max(self.outcome, later.outcome, key=order.index)
        reasons = [one.reason for one in (self, later) if one.reason and one.outcome == weaker]
        return PhaseEnd(
            outcome=weaker,
            reason=" ".join(reasons),
            carried=(*self.carried, *later.carried),
            blocking=(*self.blocking, *later.blocking),
            cause=self.cause if self.outcome == "failed" else later.cause,
        )


def raise_first(results: Iterable[object]) -> None:
    """Raise what failed of what was done side by side: of several failures a limit that was reached, else the first."""
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in sorted(failures, key=lambda one: not isinstance(one, BudgetExceeded)):
        raise failure
