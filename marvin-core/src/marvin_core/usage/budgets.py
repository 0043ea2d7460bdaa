"""The budgets of a run: that of its cost ceiling, and those inside it, such as that of play mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..api.config import Config
from .prices import Prices

if TYPE_CHECKING:
    from .budget import Budget

    class OutputLimits(Protocol):
        """The limits on the length of answers."""

        def longest(self, provider: str, model: str) -> int | None:
            """The longest answer of a model in tokens; None if unknown."""
            ...


class BudgetFactory:
    """Creates budgets. `warn` receives a line about anything that keeps an agent waiting."""

    def __init__(self, config: Config, prices: Prices, limits: OutputLimits, warn: Callable[[str], None]) -> None:
        self._config = config
        self._prices = prices
        self._limits = limits
        self._warn = warn

    def of_run(self) -> Budget | None:
        """The budget of the cost ceiling from flags, environment and ledger; None if there is none."""
        if self._config.max_cost is None and not self._config.ledger:
            return None
        return self._budget(self._config)

    def of(self, dollars: float) -> Budget:
        """A budget of this many USD; its spending also counts under the ceiling of the run."""
        budget = self._budget(self._config.replace(max_cost=dollars, ledger=""))
        budget.within = True
        return budget

    def _budget(self, config: Config) -> Budget:
        from .budget import budget_of

        return budget_of(config, self._prices, self._limits.longest, self._warn)
