"""What the session used: tokens, requests and cost, per provider and model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError
from ..api.messages import Usage
from ..api.providers import OFFLINE
from ..api.timeouts import Timeouts
from ..util.state_files import locked, replace_file
from ..util.threads import in_thread
from ..util.untrusted_json import parse_json

_MUCH = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
PriceOf = Callable[[str, str, Usage], "float | None"]


class UsageMeter:
    """Counts the model requests of one session; what the provider `offline` does is none.

    `price_of` gives the cost in USD of a request of a provider and model, or None where no price is
    known; an unknown price makes the sums unknown, never zero. `is_quick` says whether that takes no
    time, since the price table takes most of a second to import.
    """

    def __init__(self, price_of: PriceOf, is_quick: Callable[[str, str], bool]) -> None:
        self._price_of = price_of
        self._is_quick = is_quick
        self._requests: list[tuple[str, str, Usage]] = []
        self._costs: list[float | None] = []
        # Costs are looked up in threads: by the agent after a request, and by whoever asks for the sums meanwhile.
        self._pricing = threading.Lock()

    def add(self, provider: str, model: str, usage: Usage) -> None:
        """Count one model request; it is priced when a cost is first asked for."""
        if provider == OFFLINE:
            return
        self._requests.append((provider, model, usage))

    async def count(self, provider: str, model: str, usage: Usage) -> float | None:
        """Count one model request; returns its cost in USD, None where unknown."""
        if provider == OFFLINE:
            return 0.0
        number = len(self._requests)
        self.add(provider, model, usage)
        costs = self._priced() if self._is_quick(provider, model) else await in_thread(self._priced)
        return costs[number]

    def _priced(self) -> list[float | None]:
        """The cost of each request so far."""
        with self._pricing:
            for provider, model, usage in self._requests[len(self._costs) :]:
                self._costs.append(self._cost(provider, model, usage))
            return list(self._costs)

    def _cost(self, provider: str, model: str, usage: Usage) -> float | None:
        if usage.cost is not None:
            return usage.cost
        if usage == Usage():  # the service did not say what was used; that is unknown, unless nothing costs anything
            return 0.0 if self._price_of(provider, model, _MUCH) == 0 else None
        return self._price_of(provider, model, usage)

    def summary(self) -> dict[str, Any]:
        """The fields of MARVIN_COST: session_cost, llm_turns, model_turns, model_cost."""
        turns: dict[str, int] = {}
        costs: dict[str, float | None] = {}
        # Not strict: in another thread, one more request may have been counted since.
        for (_, model, _usage), cost in zip(self._requests, self._priced(), strict=False):
            turns[model] = turns.get(model, 0) + 1
            so_far = costs.get(model, 0.0)
            costs[model] = None if cost is None or so_far is None else so_far + cost
        known = [cost for cost in costs.values() if cost is not None]
        total = round(sum(known, 0.0), 9) if len(known) == len(costs) else None
        rounded = {model: None if cost is None else round(cost, 9) for model, cost in costs.items()}
        return {
            "session_cost": total,
            "llm_turns": sum(turns.values()),
            "model_turns": turns,
            "model_cost": rounded,
        }

    def tokens(self) -> dict[str, int]:
        """The token sums of the session."""
        names = (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
        )
        return {name: sum(getattr(usage, name) for _, _, usage in self._requests) for name in names}

    def lifetime(self, path: Path) -> dict[str, Any]:
        """The totals of usage.json with this session added: turns and cost by model.

        Raises:
            OSError, ConfigError: where the file cannot be read or is damaged.
        """
        totals = _parsed(path)
        if totals is None:
            raise ConfigError(f"{path} is damaged, so the lifetime totals are unknown. Move it away to begin anew.")
        self._add_to(totals)
        return totals

    def _add_to(self, totals: dict[str, Any]) -> None:
        summary = self.summary()
        _add(totals.setdefault("turns", {}), summary["model_turns"])
        _add(totals.setdefault("cost", {}), summary["model_cost"])

    def save_lifetime(self, path: Path, timeouts: Timeouts) -> None:
        """Add this session to the lifetime totals in usage.json.

        Raises:
            OSError, MarvinError: where the file cannot be written or is locked by another process.
        """
        if not self._requests:
            return
        self._priced()
        with locked(path, timeouts.lock, timeouts.lock_poll):
            totals = _read(path)
            self._add_to(totals)
            replace_file(path, json.dumps(totals, indent=2).encode())


def _add(totals: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add up; what is None is unknown and adds nothing, and stays None where nothing is known."""
    for name, value in more.items():
        so_far = totals.get(name)
        totals[name] = so_far if value is None else value if so_far is None else so_far + value


def _is_sums(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, (int, float, type(None))) for v in value.values())


def _read(path: Path) -> dict[str, Any]:
    """The lifetime totals; a damaged file is moved aside, not overwritten."""
    totals = _parsed(path)
    if totals is None:
        path.rename(path.with_suffix(".damaged.json"))
    return totals or {}


def _parsed(path: Path) -> dict[str, Any] | None:
    """The lifetime totals; None where the file is damaged."""
    try:
        data = parse_json(path.read_bytes())
        if isinstance(data, dict) and all(_is_sums(data.get(name, {})) for name in ("turns", "cost")):
            return data
    except FileNotFoundError:
        return {}
    except ValueError:
        pass
    return None
