"""The rounds of a loop that mends, noted so that a run that was killed goes on with the round that it was in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..progress import Progress
from .persistence import Attempt, Persistence, Step


class Rounds:
    """What is done of one loop. Its methods block.

    Args:
        progress: where it is noted.
        limit: how many rounds of mending there may be.
    """

    def __init__(self, progress: Progress, limit: int) -> None:
        self._progress = progress
        self._machine = Persistence(limit)
        self.history: list[str] = []
        """A line for each round that was begun."""
        self.begun = ""
        """The commit that the loop began with; empty where it is not noted."""
        self._resume()

    @property
    def done(self) -> int:
        """The rounds of mending that were decided on."""
        return self._machine.done

    def begin(self, commit: str) -> None:
        """Note the commit that the loop begins with. Raises `FileFault`, as all that follow."""
        self.begun = commit
        self._progress.note(begun=commit)

    def next(self, attempt: Attempt, line: str) -> Step:
        """What follows from a check.

        Args:
            line: what the check found, for the history.
        """
        step = self._machine.next(attempt)
        if step.end:
            self._progress.forget()  # whoever runs it again wants another try
        else:
            self._progress.note(round=self.done, attempt=attempt.as_dict(), line=line)
            self.history.append(f"{self.done}. {step.strategy}: {line}")
        return step

    def ended(self) -> None:
        """The round is done; what it came to, the next check tells."""
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
            if step.end:  # the limit is another one by now
                return
            self.history.append(f"{self.done}. {step.strategy}: {begun[number].get('line', '')}")


def _attempt(value: Mapping[str, Any]) -> Attempt:
    counts = {name: int(value[name]) for name in ("passed", "failed")}
    return Attempt(failure=str(value["failure"]), tree=str(value["tree"]), **counts)
