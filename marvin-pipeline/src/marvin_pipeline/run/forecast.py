"""The expected cost of a phase, shown before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from marvin_core import Record

from .roles import ROLES

if TYPE_CHECKING:
    from .context import Run


class Effort(Record):
    """The typical tokens of an agent, of all of its requests together."""

    input: int
    output: int


_USUAL = Effort(input=300_000, output=20_000)
_EFFORTS: Mapping[str, Effort] = {
    **dict.fromkeys(("spec", "ux", "design"), Effort(input=150_000, output=20_000)),
    **dict.fromkeys(("reviewer", "aux_reviewer", "quality_reviewer"), Effort(input=60_000, output=4_000)),
    "fixer": Effort(input=120_000, output=10_000),
    "structure": Effort(input=150_000, output=8_000),
    "implementation": Effort(input=1_500_000, output=60_000),
}
"""By role, measured on small projects; a run's own agents count more."""


async def forecast(run: Run, agents: Mapping[str, int]) -> float | None:
    """The expected cost of agents in USD; None if a price is unknown.

    For roles that were used in this run, the cost of these agents is used.
    """
    total = 0.0
    for role, count in agents.items():
        each = _seen(run, role)
        if each is None:
            effort = _EFFORTS.get(role, _USUAL)
            each = await run.control.price(ROLES[role].tier, effort.input, effort.output)
        if each is None:
            return None
        total += count * each
    return total


def _seen(run: Run, role: str) -> float | None:
    costs = [agent.cost for agent in run.journal.agents if agent.role == role and agent.cost is not None]
    return sum(costs) / len(costs) if costs else None
