"""The usage of a session for interfaces and tools: tokens, cost and tool calls, and the totals of all sessions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..api.errors import MarvinError
from ..api.events import Event, ToolExecutionEnd
from ..api.messages import UsageSummary
from ..api.timeouts import Timeouts
from .meter import UsageMeter

if TYPE_CHECKING:
    from .budget import Budget


class UsageTotals:
    """Counts the tool calls on the bus, and adds up the meter's counts. `totals` is usage.json."""

    def __init__(self, meter: UsageMeter, totals: Path, timeouts: Timeouts, budget: Budget | None = None) -> None:
        self._meter = meter
        self._totals = totals
        self._timeouts = timeouts
        self._budget = budget
        self._calls: dict[str, int] = {}
        self._told = 0.0

    def listen(self, event: Event) -> None:
        """Count a call."""
        if isinstance(event, ToolExecutionEnd):
            self._calls[event.name] = self._calls.get(event.name, 0) + 1

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """The usage since the start; with `lifetime` also the totals of usage.json, including this session.

        Raises:
            OSError, ConfigError: usage.json cannot be read or is damaged.
        """
        ceiling, left = self._left() or (None, None)
        return UsageSummary(
            tokens=self._meter.tokens(),
            cost=self._meter.summary()["session_cost"],
            providers=self._meter.by_provider(),
            tool_calls=dict(sorted(self._calls.items(), key=lambda item: (-item[1], item[0]))),
            lifetime=self._meter.lifetime(self._totals) if lifetime else None,
            ceiling=ceiling,
            left=left,
        )

    def _left(self) -> tuple[float, float] | None:
        if self._budget is None:
            return None
        try:
            return self._budget.left()
        except MarvinError:  # the ledger is gone, as the next request reports; the usage itself is known
            return self._budget.standing

    def take_up(self, session_id: str, cost: float) -> float:
        """Count the cost of a resumed session against the cost ceiling. Blocks.

        Args:
            cost: the cost in its file, in USD; what this run has counted itself is not counted again.

        Returns:
            The additional spending of killed runs of the session in USD, once. It is counted as well.

        Raises:
            BudgetExceeded: the ledger is gone or cannot be written.
        """
        if self._budget is None:
            return 0.0
        lost = self._budget.left_behind(session_id)
        self._budget.carry(session_id, cost + lost)
        return lost

    def work_for(self, session_id: str, cost: float) -> None:
        """Record in the ledger which session the prompts belong to, and the cost that its file has.

        Blocks. If this process is killed, the ledger tells the run that resumes the session what was spent.

        Args:
            cost: the cost in the session's file, in USD.
        """
        if self._budget is not None:
            with suppress(MarvinError):  # the ledger is gone, as the next request reports
                self._budget.work_for(session_id, self._told, cost)

    def prompt_ended(self) -> float:
        """Update usage.json. Blocks.

        Returns:
            The known spending since the end of the last prompt in USD, including sub-agents.
        """
        with suppress(OSError, MarvinError):  # the end of the run tries again, and reports
            self._meter.save_lifetime(self._totals, self._timeouts)
        before, self._told = self._told, max(self._spent(), self._told)
        return self._told - before

    def _spent(self) -> float:
        spent = None
        with suppress(MarvinError):  # the ledger is gone, as the next request reports
            spent = self._budget.spent() if self._budget is not None else None
        return self._meter.known_cost() if spent is None else spent
