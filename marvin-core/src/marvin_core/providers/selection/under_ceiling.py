"""Other models that go on under a cost ceiling of their own, as play mode has one."""

from __future__ import annotations

from collections.abc import Iterable

from ...api.providers import Provider
from ...api.usage import CostCeiling
from ..budgeted import BudgetedProvider
from ..resilient import Alternatives, NoAlternatives


class FallbacksUnderCeiling(NoAlternatives):
    """Other services go on under the same ceiling.

    No larger model does: it would stay, and be counted under this ceiling, when the prompt is over.
    """

    def __init__(self, alternatives: Alternatives, ceiling: CostCeiling) -> None:
        self._alternatives = alternatives
        self._ceiling = ceiling

    def fallbacks(self, failed: Provider) -> Iterable[Provider]:
        """Those of other services, the best first."""
        return (BudgetedProvider(other, self._ceiling) for other in self._alternatives.fallbacks(failed))
