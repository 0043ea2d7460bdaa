"""When to go on mending, when to go about it differently, and when to stop: a state machine that knows no agents."""

from __future__ import annotations

from typing import Literal, TypeAlias

from marvin_core import Record

Strategy: TypeAlias = Literal["fix", "diagnose", "rethink"]
"""How the next round goes about it.

fix: mend what fails. diagnose: find the cause first, by an agent that changes nothing. rethink: leave the way that was
tried, and take another one.
"""
EndReason: TypeAlias = Literal["", "passed", "rounds", "repeated", "no progress"]
_STEPS: tuple[Strategy, ...] = ("fix", "diagnose", "rethink")
_REPEATED = 2
"""Failures in a row that are known already, after which the strategy changes, and after the last one all ends."""
_WITHOUT_PROGRESS = 5
"""Rounds without progress, whatever failed in them, with the same effect."""


class Attempt(Record):
    """What a round found.

    `failure` is the fingerprint of what failed, empty where nothing did. `tree` stands for the content of the project.
    `passed` and `failed` count tests, where that is known.
    """

    failure: str
    tree: str
    passed: int = 0
    failed: int = 0

    @property
    def worth(self) -> tuple[int, int]:
        """How good it is: a failure to begin with passes nothing, so more that pass count before fewer that fail."""
        return self.passed, -self.failed


class Step(Record):
    """What to do next: end for a reason, or go on with a strategy.

    `is_repeated`: the failure is one that was seen before. `is_unchanged`: nothing in the project has changed since.
    """

    end: EndReason = ""
    strategy: Strategy = "fix"
    is_repeated: bool = False
    is_unchanged: bool = False


class Persistence:
    """Decides after each round. It ends for certain: at the limit, and sooner where nothing gets better.

    Args:
        rounds: how many rounds of mending there may be.
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
        """The rounds of mending that were decided on."""

    def next(self, attempt: Attempt) -> Step:
        """What follows from a round. Not to be asked again after an end."""
        if not attempt.failure:
            return Step(end="passed")
        repeated = attempt.failure in self._seen
        unchanged = self._before is not None and attempt.tree == self._before.tree
        better = self._best is not None and attempt.worth > self._best
        if better:
            self._repeated = self._without = self._level = 0
        elif self._before is not None:
            # A state of the project that failed like this before leads around in a circle.
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
