"""The usage of the session: tokens, requests and cost, for each provider and model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..api.messages import ModelUsage, Usage
from ..api.providers import OFFLINE
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..util.numbers import sound
from ..util.threads import in_thread
from .sums import by_name, total

_MUCH = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
PriceOf = Callable[[str, str, Usage], "float | None"]


class CountedRequest(Record):
    """A model request. `whole` says whether the service reported the complete usage."""

    provider: str
    model: str
    usage: Usage
    whole: bool = True


class UsageMeter:
    """Counts the model requests of one session; those of the provider `offline` are not counted.

    `price_of` returns the cost of a request of a provider and model in USD, None if the price is unknown; then the sums
    are unknown, too, and never zero. `is_quick` says whether that takes no time: the import of the price table takes
    most of a second.
    """

    def __init__(self, price_of: PriceOf, is_quick: Callable[[str, str], bool]) -> None:
        self._price_of = price_of
        self._is_quick = is_quick
        self._requests: list[CountedRequest] = []
        self._costs: list[float | None] = []
        # Costs are looked up in threads: by the agent after a request, and by whoever asks for the sums meanwhile.
        self._pricing = threading.Lock()
        self._saved = 0
        self._waited_in_vain = False
        self._saving = threading.Lock()
        self._agents: list[Mapping[str, ModelUsage]] = []

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """The cost of a usage in USD; None if no price is known. Blocks while the price table is read."""
        return self._price_of(provider, model, usage)

    def add_agent(self, models: Mapping[str, ModelUsage]) -> None:
        """Count the usage of an agent, by the names of models; it includes the agents below.

        The agent itself adds it to the lifetime totals, so this run does not.
        """
        self._agents.append(models)

    def add(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> None:
        """Count one model request; it is priced when a cost is first needed.

        With `whole` false the answer broke off, so that a cost that was stated may be that of its beginning.
        """
        counted = sound(usage) if whole else sound(usage).replace(cost=None)
        self._add(CountedRequest(provider=provider, model=model, usage=counted, whole=whole))

    def _add(self, request: CountedRequest) -> None:
        if request.provider != OFFLINE:
            self._requests.append(request)

    async def count(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> float | None:
        """Count one model request; returns its cost in USD, None if unknown.

        Args:
            whole: whether the service reported the complete usage; otherwise only a free request has a known cost.
        """
        if provider == OFFLINE:
            return 0.0
        number = len(self._requests)
        self._add(CountedRequest(provider=provider, model=model, usage=sound(usage), whole=whole))
        costs = self._priced() if self._is_quick(provider, model) else await in_thread(self._priced)
        return costs[number]

    def _priced(self) -> list[float | None]:
        """The cost of each request so far."""
        with self._pricing:
            for request in self._requests[len(self._costs) :]:
                self._costs.append(self._cost(request))
            return list(self._costs)

    def _cost(self, request: CountedRequest) -> float | None:
        provider, model, usage = request.provider, request.model, request.usage
        if usage.cost is not None:
            return usage.cost
        if not request.whole or usage == Usage():  # that is unknown, unless nothing costs anything
            return 0.0 if self._price_of(provider, model, _MUCH) == 0 else None
        found = self._price_of(provider, model, usage)
        return usage.estimate if found is None else found

    def summary(self) -> dict[str, Any]:
        """The fields of MARVIN_COST: session_cost, llm_turns, model_turns, model_cost. They include agents."""
        models = by_name([*self.by_provider().values(), *self._agents])
        known = [used.cost for used in models.values() if used.cost is not None]
        rounded = {model: None if used.cost is None else round(used.cost, 9) for model, used in models.items()}
        return {
            "session_cost": round(sum(known, 0.0), 9) if len(known) == len(models) else None,
            "llm_turns": sum(used.requests for used in models.values()),
            "model_turns": {model: used.requests for model, used in models.items()},
            "model_cost": rounded,
        }

    def by_provider(self) -> dict[str, dict[str, ModelUsage]]:
        """The usage of each model of each provider."""
        return self._by_provider()

    def _by_provider(self, first: int = 0, end: int | None = None) -> dict[str, dict[str, ModelUsage]]:
        found: dict[str, dict[str, ModelUsage]] = {}
        # Not strict: in another thread, one more request may have been counted since.
        for request, cost in list(zip(self._requests, self._priced(), strict=False))[first:end]:
            models = found.setdefault(request.provider, {})
            estimated = request.usage.cost is None and request.usage.estimate is not None
            used = ModelUsage(requests=1, cost=cost, estimated=estimated)
            models[request.model] = used if request.model not in models else total((models[request.model], used))
        return found

    def known_cost(self) -> float:
        """The cost in USD of the requests whose cost is known, including those of agents. Blocks like `summary`."""
        of_agents = (used.cost for models in self._agents for used in models.values())
        return sum(cost for cost in (*self._priced(), *of_agents) if cost is not None)

    def tokens(self) -> dict[str, int]:
        """The token sums of the session."""
        names = (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
        )
        return {name: sum(getattr(request.usage, name) for request in self._requests) for name in names}

    def lifetime(self, path: Path) -> dict[str, dict[str, ModelUsage]]:
        """The totals of usage.json with this session added, by provider and model.

        The provider is empty for requests counted before the file had providers.

        Raises:
            OSError, ConfigError: the file cannot be read, or is damaged.
        """
        from .lifetime import read

        with self._saving:
            totals = read(path)
            totals.add(self._by_provider(self._saved))
        return totals.by_provider()

    def save_lifetime(self, path: Path, timeouts: Timeouts) -> None:
        """Add the new part to the lifetime totals in usage.json. After a timeout, the next call tries only once.

        Raises:
            OSError, MarvinError: the file cannot be written, or another process holds its lock.
        """
        with self._saving:
            end = len(self._priced())
            if end > self._saved:
                from .lifetime import add

                limits = timeouts.replace(lock=0.0) if self._waited_in_vain else timeouts
                self._waited_in_vain = True
                add(path, self._by_provider(self._saved, end), limits)
                self._saved, self._waited_in_vain = end, False
