"""The budgets of a run: that of its cost ceiling, and those within it, as play mode has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..api.config import Config
from .prices import Prices

if TYPE_CHECKING:
    from .budget import Budget

    class OutputLimits(Protocol):
        """How long answers may become."""

        def longest(self, provider: str, model: str) -> int | None:
            """The longest answer of a model, in tokens; None where it is not known."""
            ...


class BudgetFactory:
    """Makes budgets. `warn` is told in one line of what keeps an agent waiting."""

    def __init__(self, config: Config, prices: Prices, limits: OutputLimits, warn: Callable[[str], None]) -> None:
        self._config = config
        self._prices = prices
        self._limits = limits
        self._warn = warn

    def of_run(self) -> Budget | None:
        """The budget of the cost ceiling that flags, environment and ledger name; None without one."""
        if self._config.max_cost is None and not self._config.ledger:
            return None
        return self._budget(self._config)

    def of(self, dollars: float) -> Budget:
        """A budget of this many USD; what is spent counts under the ceiling of the run as well."""
        budget = self._budget(self._config.replace(max_cost=dollars, ledger=""))
        budget.within = True
        return budget

    def _budget(self, config: Config) -> Budget:
        from .budget import budget_of

        return budget_of(config, self._prices, self._limits.longest, self._warn)
