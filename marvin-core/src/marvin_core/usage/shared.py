"""Money that Marvins share which are started one by one, and that counts on when whoever starts them is killed."""

from __future__ import annotations

from pathlib import Path

from ..api.timeouts import Timeouts
from .ledger import Ledger

_MICRO = 1_000_000


class SharedBudget:
    """A budget in a folder of files. Blocks while another process writes to one of them.

    Each of the Marvins that share it keeps to it by itself, as agents do: before each request it reserves the worst
    case. So the money is counted whatever is killed.

    Args:
        folder: where it is kept; those who share it have to reach the folder, and be the same user.
    """

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self._folder = folder
        self._timeouts = timeouts
        self._ledger: Ledger | None = None
        self._looked_at: dict[Path, Ledger] = {}

    def begin(self, dollars: float) -> None:
        """Have so many USD from now on, beside what was spent before.

        Raises:
            OSError: the folder cannot be written.
        """
        self._ledger = Ledger.create(self._folder, max(0, round(dollars * _MICRO)), self._timeouts)

    def part(self, name: str, dollars: float) -> str:
        """The address of a part of it, as MARVIN_LEDGER tells it to a Marvin that may spend so many USD of it.

        Args:
            name: tells the part apart; one of this name that was begun keeps what it has.

        Raises:
            BudgetExceeded: the file cannot be used.
            ValueError: nothing was begun.
        """
        if self._ledger is None:
            raise ValueError("The budget must be started before it can be divided.")
        return self._ledger.bounded(max(0, round(dollars * _MICRO)), name).address

    def spent(self, name: str = "") -> float:
        """USD that were spent of a part, or of all, from the first beginning on.

        What a Marvin reserved that was killed counts as spent, since its service may have billed it.

        Raises:
            ConfigError: a file of it is damaged, so that nobody knows.
        """
        for file in self._folder.glob("*.jsonl"):
            if file not in self._looked_at:  # each one reads on where it has read to
                self._looked_at[file] = Ledger.inherit(f"{file}#", self._timeouts)
        return sum(ledger.spent(name) for ledger in self._looked_at.values()) / _MICRO
