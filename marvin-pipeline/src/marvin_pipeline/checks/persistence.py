"""Decides when to continue fixing, when to change the strategy, and when to stop: a state machine without agents."""

from __future__ import annotations

from typing import Literal, TypeAlias

from marvin_core import Record

Strategy: TypeAlias = Literal["fix", "diagnose", "rethink"]
"""How the next round goes about it.

fix: fix the failure. diagnose: find the cause first, with a read-only agent. rethink: abandon the approach that was
tried, and take another one.
"""
EndReason: TypeAlias = Literal["", "passed", "rounds", "repeated", "no progress"]
_STEPS: tuple[Strategy, ...] = ("fix", "diagnose", "rethink")
_REPEATED = 2
"""Known failures in a row after which the strategy changes, and after the last strategy the loop ends."""
_WITHOUT_PROGRESS = 5
"""Rounds without progress, whatever failed in them, with the same effect."""


class Attempt(Record):
    """The result of a round.

    `failure` is the fingerprint of the failure, empty for success. `tree` identifies the content of the project.
    `passed` and `failed` count tests, where known.
    """

    failure: str
    tree: str
    passed: int = 0
    failed: int = 0

    @property
    def worth(self) -> tuple[int, int]:
        """A rank of the result: a broken start passes nothing, so more passing tests count before fewer failing
        ones."""
        return self.passed, -self.failed


class Step(Record):
    """The next step: end for a reason, or continue with a strategy.

    `is_repeated`: the failure occurred before. `is_unchanged`: nothing in the project has changed since.
    """

    end: EndReason = ""
    strategy: Strategy = "fix"
    is_repeated: bool = False
    is_unchanged: bool = False


class Persistence:
    """Decides after each round. It always ends: at the limit, or earlier without progress.

    Args:
        rounds: the maximum number of rounds of fixes.
    """

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._seen: set[str] = set()
        self._trees: set[tuple[str, str]] = set()
        self._before: Attempt | None = None
        self._best: tuple[int, int] | None = None
        self._repeated = 0
        self._without = 0
        self._level = 0
        self.done = 0
        """The rounds of fixes so far."""

    def next(self, attempt: Attempt) -> Step:
        """The next step after a round. Must not be called after an end."""
        if not attempt.failure:
            return Step(end="passed")
        repeated = attempt.failure in self._seen
        unchanged = self._before is not None and attempt.tree == self._before.tree
        better = self._best is not None and attempt.worth > self._best
        if better:
            self._repeated = self._without = self._level = 0
        elif self._before is not None:
            # A known state of the project with the same failure is a cycle.
            circles = (attempt.failure, attempt.tree) in self._trees
            self._repeated = self._repeated + 1 + circles if repeated else 0
            self._without += 1
        self._remember(attempt)
        end = self._climbed(repeated=self._repeated >= _REPEATED, without=self._without >= _WITHOUT_PROGRESS)
        if not end and self.done >= self._rounds:
            end = "rounds"
        if end:
            return Step(end=end, is_repeated=repeated, is_unchanged=unchanged)
        self.done += 1
        return Step(strategy=_STEPS[self._level], is_repeated=repeated, is_unchanged=unchanged)

    def _climbed(self, *, repeated: bool, without: bool) -> EndReason:
        if not repeated and not without:
            return ""
        if self._level == len(_STEPS) - 1:
            return "repeated" if repeated else "no progress"
        self._level += 1
        self._repeated = self._without = 0
        return ""

    def _remember(self, attempt: Attempt) -> None:
        self._seen.add(attempt.failure)
        self._trees.add((attempt.failure, attempt.tree))
        self._before = attempt
        if self._best is None or attempt.worth > self._best:
            self._best = attempt.worth
