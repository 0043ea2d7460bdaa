"""The budget of a batch: a ceiling for all tasks and one for each task, over all runs of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from marvin_core import Record, SharedBudget, Timeouts

from .records import BatchFault
from .tasks import Task

LEDGERS = "ledgers"
_TOLD = "{:.6f}"
_LEAST = 0.000001
"""The least amount in USD that can be counted."""


class Share(Record):
    """The budget of a task for a run."""

    dollars: float
    ledger: str
    """The address of its ledger."""

    @property
    def is_nothing(self) -> bool:
        """Whether it is less than the least amount."""
        return self.dollars < _LEAST

    @property
    def words(self) -> tuple[str, ...]:
        """The flag that passes it to a run."""
        return (f"--max-cost={_TOLD.format(self.dollars)}",)


class Money:
    """The budget. Methods block.

    Args:
        folder: of the results.
        ceiling: USD for all tasks together; None for no such ceiling.
    """

    def __init__(self, folder: Path, ceiling: float | None, timeouts: Timeouts) -> None:
        self._budget = SharedBudget(folder / LEDGERS, timeouts)
        self._ceiling = ceiling

    def begin(self, tasks: Sequence[Task]) -> None:
        """Reserve the rest of the ceiling for the tasks. Raises `MarvinError` if costs cannot be counted."""
        bounded = [task.max_cost for task in tasks if task.max_cost is not None]
        if self._ceiling is None and not bounded:
            return
        try:
            left = sum(bounded) if self._ceiling is None else self._ceiling - self._budget.spent()
            self._budget.begin(left)
        except OSError as error:
            raise BatchFault(f"The costs of the batch cannot be recorded: {error}") from error

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left for any task."""
        return self._ceiling is not None and self._budget.spent() >= self._ceiling

    def share(self, task: Task) -> Share | None:
        """The budget of a task; None without a ceiling.

        Raises:
            MarvinError: costs cannot be counted.
        """
        left = self._left(task)
        if not left:
            return None
        dollars = max(0.0, min(left))
        return Share(dollars=dollars, ledger=self._budget.part(task.id, dollars))

    def has_more_for(self, task: Task) -> bool:
        """Whether a task that reached its ceiling has budget again, for example because the ceiling was raised."""
        return all(dollars >= _LEAST for dollars in self._left(task))

    def _left(self, task: Task) -> list[float]:
        """The rest of each ceiling of a task, in USD."""
        left = [] if self._ceiling is None else [self._ceiling - self._budget.spent()]
        return left if task.max_cost is None else [*left, task.max_cost - self._budget.spent(task.id)]
