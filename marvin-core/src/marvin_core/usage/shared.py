"""A budget that separately started Marvin processes share, and that survives when their parent is killed."""

from __future__ import annotations

from pathlib import Path

from ..api.timeouts import Timeouts
from .ledger import Ledger

_MICRO = 1_000_000


class SharedBudget:
    """A budget in a folder of files. Blocks while another process writes to one of them.

    Each Marvin enforces the budget itself: before each request it reserves the maximum cost. So all costs are counted,
    whatever is killed.

    Args:
        folder: where the files are; all users of the budget must reach it, and be the same user.
    """

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self._folder = folder
        self._timeouts = timeouts
        self._ledger: Ledger | None = None
        self._looked_at: dict[Path, Ledger] = {}

    def begin(self, dollars: float) -> None:
        """Set the budget in USD, in addition to what was spent before.

        Raises:
            OSError: the folder cannot be written.
        """
        self._ledger = Ledger.create(self._folder, max(0, round(dollars * _MICRO)), self._timeouts)

    def part(self, name: str, dollars: float) -> str:
        """A new part of the budget with a ceiling in USD; returns its address, which is a value for MARVIN_LEDGER.

        Args:
            name: identifies the part; an existing part of this name continues with its spending.

        Raises:
            BudgetExceeded: the file cannot be used.
            ValueError: there is no budget yet.
        """
        if self._ledger is None:
            raise ValueError("The budget must be started before it can be divided.")
        return self._ledger.bounded(max(0, round(dollars * _MICRO)), name).address

    def spent(self, name: str = "") -> float:
        """The spending of a part, or of all parts, in USD since the budget was created.

        Reservations of killed Marvins count as spent, since the service may bill them.

        Raises:
            ConfigError: a file is damaged, so that the spending is unknown.
        """
        for file in self._folder.glob("*.jsonl"):
            if file not in self._looked_at:  # each continues where it stopped reading
                self._looked_at[file] = Ledger.inherit(f"{file}#", self._timeouts)
        return sum(ledger.spent(name) for ledger in self._looked_at.values()) / _MICRO
