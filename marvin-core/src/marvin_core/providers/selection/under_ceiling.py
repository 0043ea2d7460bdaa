"""Fallback models under a separate cost ceiling, such as that of play mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ...api.models import CostCeiling
from ...api.providers import Provider
from ..budgeted import BudgetedProvider
from ..resilient import NoAlternatives

if TYPE_CHECKING:
    from ..resilient import Alternatives


class FallbacksUnderCeiling(NoAlternatives):
    """Other services take over under the same ceiling. No larger model does: it would stay after the prompt, and still
    be charged to this ceiling.
    """

    def __init__(self, alternatives: Alternatives, ceiling: CostCeiling) -> None:
        self._alternatives = alternatives
        self._ceiling = ceiling

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        """The models of other services, the best first."""
        async for other in self._alternatives.fallbacks(failed):
            yield BudgetedProvider(other, self._ceiling)
