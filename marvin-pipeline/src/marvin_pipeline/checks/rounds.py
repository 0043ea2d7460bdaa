"""The rounds of a repair loop, stored so that a killed run resumes the round that it was in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..progress import Progress
from .persistence import Attempt, Persistence, Step


class Rounds:
    """The state of a loop. Methods block.

    Args:
        progress: where it is stored.
        limit: the maximum number of rounds of fixes.
    """

    def __init__(self, progress: Progress, limit: int) -> None:
        self._progress = progress
        self._machine = Persistence(limit)
        self.history: list[str] = []
        """A line for each round that was started."""
        self.begun = ""
        """The commit at the start of the loop; empty if none is stored."""
        self._resume()

    @property
    def done(self) -> int:
        """The rounds of fixes so far."""
        return self._machine.done

    def begin(self, commit: str) -> None:
        """Store the commit at the start of the loop. Raises `FileFault`, as the following methods do."""
        self.begun = commit
        self._progress.note(begun=commit)

    def next(self, attempt: Attempt, line: str) -> Step:
        """The next step after a check.

        Args:
            line: the finding of the check, for the history.
        """
        step = self._machine.next(attempt)
        if step.end:
            self._progress.forget()  # running it again means another try
        else:
            self._progress.note(round=self.done, attempt=attempt.as_dict(), line=line)
            self.history.append(f"{self.done}. {step.strategy}: {line}")
        return step

    def ended(self) -> None:
        """Record the end of a round; the next check gives its result."""
        self._progress.note(done=self.done)

    def _resume(self) -> None:
        noted = self._progress.read()
        self.begun = next((str(note["begun"]) for note in noted if "begun" in note), "")
        begun = {note["round"]: note for note in noted if isinstance(note.get("round"), int)}
        ended = {note["done"] for note in noted if isinstance(note.get("done"), int)}
        while (number := self.done + 1) in begun and number in ended:
            try:
                attempt = _attempt(begun[number]["attempt"])
            except (KeyError, TypeError, ValueError):
                return
            step = self._machine.next(attempt)
            if step.end:  # the limit has changed since
                return
            self.history.append(f"{self.done}. {step.strategy}: {begun[number].get('line', '')}")


def _attempt(value: Mapping[str, Any]) -> Attempt:
    counts = {name: int(value[name]) for name in ("passed", "failed")}
    return Attempt(failure=str(value["failure"]), tree=str(value["tree"]), **counts)
