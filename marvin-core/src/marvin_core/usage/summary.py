"""What a session used, for whoever asks: tokens, cost and tool calls, and the totals of all sessions."""

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
    """Counts the tool calls that the bus tells of, and sums up what the meter counted. `totals` is usage.json."""

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
        """What was used since the start; with `lifetime` also the totals of usage.json, this session among them.

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
        except MarvinError:  # the ledger is gone, as the next request says; what was used is known all the same
            return self._budget.standing

    def take_up(self, session_id: str, cost: float) -> float:
        """Count under the cost ceiling what a session cost that is gone on with. Blocks.

        Args:
            cost: what its file says, in USD; what this run counted of it is not counted again.

        Returns:
            What killed runs spent for it beyond that, in USD. It is counted as well, and told once.

        Raises:
            BudgetExceeded: the ledger is gone or cannot be written.
        """
        if self._budget is None:
            return 0.0
        lost = self._budget.left_behind(session_id)
        self._budget.carry(session_id, cost + lost)
        return lost

    def work_for(self, session_id: str, cost: float) -> None:
        """Note under the cost ceiling whose prompts these are, and that the session has what is spent until now.

        Blocks. Where this process is killed, whoever goes on with the session finds there what it spent.

        Args:
            cost: what the session's file says that it cost, in USD.
        """
        if self._budget is not None:
            with suppress(MarvinError):  # the ledger is gone, as the next request says
                self._budget.work_for(session_id, self._told, cost)

    def prompt_ended(self) -> float:
        """Bring usage.json up to date. Blocks.

        Returns:
            What was spent since the last prompt ended, in USD, as far as it is known; agents below included.
        """
        with suppress(OSError, MarvinError):  # the end of the run tries again, and tells
            self._meter.save_lifetime(self._totals, self._timeouts)
        before, self._told = self._told, max(self._spent(), self._told)
        return self._told - before

    def _spent(self) -> float:
        spent = None
        with suppress(MarvinError):  # the ledger is gone, as the next request says
            spent = self._budget.spent() if self._budget is not None else None
        return self._meter.known_cost() if spent is None else spent
