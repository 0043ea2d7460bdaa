"""What a session used, for whoever asks: tokens, cost and tool calls, and the totals of all sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.events import Event, ToolExecutionEnd
from ..api.tool_context import UsageSummary
from .meter import UsageMeter

if TYPE_CHECKING:
    from .budget import Budget


class UsageTotals:
    """Counts the tool calls that the bus tells of, and sums up what the meter counted."""

    def __init__(self, meter: UsageMeter, totals: Path, budget: Budget | None = None) -> None:
        self._meter = meter
        self._totals = totals
        self._budget = budget
        self._calls: dict[str, int] = {}

    def listen(self, event: Event) -> None:
        """Count a call."""
        if isinstance(event, ToolExecutionEnd):
            self._calls[event.name] = self._calls.get(event.name, 0) + 1

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since the start; with `lifetime` also the totals of usage.json, this session among them.

        Raises:
            OSError, ConfigError: where usage.json cannot be read or is damaged.
            BudgetExceeded: where the ledger of the cost ceiling cannot be read.
        """
        ceiling, left = self._budget.left() if self._budget is not None else (None, None)
        summary = self._meter.summary()
        totals = self._meter.lifetime(self._totals) if lifetime else None
        return UsageSummary(
            tokens=self._meter.tokens(),
            cost=summary["session_cost"],
            models=_models(summary["model_turns"], summary["model_cost"]),
            tool_calls=dict(sorted(self._calls.items(), key=lambda item: (-item[1], item[0]))),
            lifetime=None if totals is None else _models(totals["turns"], totals["cost"]),
            ceiling=ceiling,
            left=left,
        )


def _models(turns: Mapping[str, Any], costs: Mapping[str, Any]) -> dict[str, tuple[int, float | None]]:
    return {model: (count, costs.get(model)) for model, count in turns.items()}
