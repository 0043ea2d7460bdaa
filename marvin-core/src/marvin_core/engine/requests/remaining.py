"""A line for the model about what is left of the context window and of the budget, once it is little."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...api.messages import Text, ToolOutput, tool
from ...api.models import CostCeiling
from ...conversation.compactor import Compactor
from ...conversation.window import Window, characters
from ..parts import SessionParts

_LITTLE = 0.25
"""The share of a cost ceiling below which the remaining amount is reported."""
_STEPS = 20
"""The number of steps in which the system prompt reports it: each change invalidates the cache of the whole
conversation."""


class Remaining:
    """Reports what is left: the tokens before older messages are summarized, and the dollars below a ceiling."""

    def __init__(self, parts: SessionParts, compactor: Compactor) -> None:
        self._parts = parts
        self._compactor = compactor

    def roughly(self, ceiling: CostCeiling | None) -> str:
        """The text for the system prompt, rounded up so that it changes seldom. Empty if enough is left."""
        window = self._parts.model.window
        tokens = self._tokens(0)
        dollars = self._dollars(ceiling)
        if not _is_little(window, tokens, dollars):
            return ""
        step = max(window.compact // _STEPS, 1)
        told = [
            (
                f"Fewer than {(tokens // step + 1) * step:,} tokens are left before older messages are replaced by a "
                "summary."
            )
        ]
        if dollars is not None:
            share = dollars[0] / _STEPS
            at_most = min(math.floor(dollars[1] / share) + 1, _STEPS) * share if share else 0.0
            told.append(f"Of the cost ceiling at most {at_most:.4g} USD are left.")
        return " ".join(told)

    def added(self, outputs: Sequence[ToolOutput], ceiling: CostCeiling | None) -> list[ToolOutput]:
        """The outputs of a round; the last one reports what is left after them, if that is little."""
        tokens, dollars = self._tokens(characters([tool(outputs)])), self._dollars(ceiling)
        if not outputs or not _is_little(self._parts.model.window, tokens, dollars):
            return list(outputs)
        told = f"About {tokens:,} tokens are left before older messages are replaced by a summary."
        if dollars is not None:
            told += f" Of the cost ceiling of {dollars[0]:.4g} USD {dollars[1]:.4f} are left."
        return [*outputs[:-1], _with_line(outputs[-1], f"[{told}]")]

    def _tokens(self, added: int) -> int:
        window = self._parts.model.window
        used = window.tokens(self._parts.conversation.characters + self._compactor.overhead + added)
        return max(window.compact - used, 0)

    def _dollars(self, ceiling: CostCeiling | None) -> tuple[float, float] | None:
        """The ceiling and the remaining amount in USD: of the prompt's and the run's ceiling, that with less left."""
        standings = (each.standing for each in (ceiling, self._parts.setup.budget) if each is not None)
        return min(filter(None, standings), key=lambda standing: standing[1], default=None)


def _is_little(window: Window, tokens: int, dollars: tuple[float, float] | None) -> bool:
    near = window.compact - tokens >= window.warn
    return near or (dollars is not None and dollars[1] < dollars[0] * _LITTLE)


def _with_line(output: ToolOutput, line: str) -> ToolOutput:
    *others, last = output.content or (Text(text=""),)
    if not isinstance(last, Text):
        return output.replace(content=(*output.content, Text(text=line)))
    return output.replace(content=(*others, last.replace(text=f"{last.text}\n{line}" if last.text else line)))
