"""The results of loops and phases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from marvin_core import BudgetExceeded, Record

Outcome: TypeAlias = Literal["passed", "ended", "failed", "skipped"]
"""passed: it did everything. ended: it ended before that, and open findings do not stop the run.
failed: the run stops. skipped: there was nothing to do."""


Cause: TypeAlias = Literal["", "findings", "tests"]
"""The causes of a failed run with an exit code of their own. findings: findings of a review above the floor are left.
tests: tests, or the end-to-end test, fail or prove too little."""


class LoopEnd(Record):
    """The result of a loop of reviews and fixes."""

    outcome: Outcome
    reason: str
    """Why it ended, in a sentence."""
    rounds: int = 0
    carried: tuple[str, ...] = ()
    """Open findings below the floor, one a line: for the report, and for the agents of later phases."""
    blocking: tuple[str, ...] = ()
    """Open findings above the floor, one a line."""
    cause: Cause = ""
    """The cause of a failure."""


class PhaseEnd(Record):
    """The result of a phase."""

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
        """Whether the next phase may start."""
        return self.outcome != "failed"

    def then(self, later: LoopEnd | PhaseEnd) -> PhaseEnd:
        """The combined result of two steps of a phase: the weaker outcome counts."""
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
    """Raise an exception of parallel tasks: an exhausted limit if there is one, else the first exception."""
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in sorted(failures, key=lambda one: not isinstance(one, BudgetExceeded)):
        raise failure
