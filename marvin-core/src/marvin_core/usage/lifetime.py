"""usage.json: what all sessions used.

    {"turns": {MODEL: REQUESTS}, "cost": {MODEL: USD},
     "providers": {PROVIDER: {"requests": N, "cost": USD, "estimated": BOOL, "models": {MODEL: {...the same...}}}}}

`turns` and `cost` have the names of the models as keys; files of older versions have nothing else. What another program
keeps in the file stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError
from ..api.messages import ModelUsage
from ..api.timeouts import Timeouts
from ..util.numbers import amount, count
from ..util.state_files import locked, replace_file, set_aside
from ..util.untrusted_json import parse_json
from .sums import total

Models = dict[str, ModelUsage]


class LifetimeTotals:
    """The content of the file. Invalid or negative numbers in it count as unknown."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Raises ValueError where the content is no such file."""
        self._data = data
        self._turns = {model: count(value) for model, value in _numbers(data, "turns").items()}
        self._cost = {model: amount(value) for model, value in _numbers(data, "cost").items()}
        self._providers = {
            provider: {model: _used(entry) for model, entry in _objects(_object(entry), "models").items()}
            for provider, entry in _objects(data, "providers").items()
        }

    def add(self, more: Mapping[str, Mapping[str, ModelUsage]]) -> None:
        """Add the usage of a session."""
        for provider, models in more.items():
            kept = self._providers.setdefault(provider, {})
            for model, used in models.items():
                kept[model] = _sum(kept.get(model), used)
                self._turns[model] = self._turns.get(model, 0) + used.requests
                self._cost[model] = _more(self._cost.get(model), used.cost)

    def by_provider(self) -> dict[str, Models]:
        """The totals; those without a provider are stored by the name of the model alone."""
        named: dict[str, int] = {}
        paid: dict[str, float] = {}
        for models in self._providers.values():
            for model, used in models.items():
                named[model] = named.get(model, 0) + used.requests
                paid[model] = paid.get(model, 0.0) + (used.cost or 0.0)
        older: Models = {}
        for model, turns in self._turns.items():
            if turns > named.get(model, 0):
                cost = self._cost.get(model)
                rest = None if cost is None else max(cost - paid.get(model, 0.0), 0.0)
                older[model] = ModelUsage(requests=turns - named.get(model, 0), cost=rest)
        return {**self._providers, **({"": older} if older else {})}

    def content(self) -> bytes:
        """The file."""
        providers = {
            provider: {
                **total(models.values()).as_dict(),
                "models": {model: used.as_dict() for model, used in models.items()},
            }
            for provider, models in self._providers.items()
        }
        data = {**self._data, "turns": self._turns, "cost": self._cost, "providers": providers}
        return json.dumps(data, indent=2).encode()


def read(path: Path) -> LifetimeTotals:
    """The totals in a file; none if there is no file.

    Raises:
        OSError, ConfigError: it cannot be read, or is damaged.
    """
    found = _parsed(path)
    if found is None:
        raise ConfigError(f"{path} is damaged, so the lifetime totals are unknown. Move it away to start with zero.")
    return found


def add(path: Path, more: Mapping[str, Mapping[str, ModelUsage]], timeouts: Timeouts) -> None:
    """Add to the totals in a file; a damaged one is moved aside and not overwritten.

    Raises:
        OSError, MarvinError: it cannot be written, or another process holds its lock.
    """
    with locked(path, timeouts.lock, timeouts.lock_poll):
        totals = _parsed(path)
        if totals is None:
            set_aside(path)
            totals = LifetimeTotals({})
        totals.add(more)
        replace_file(path, totals.content())


def _parsed(path: Path) -> LifetimeTotals | None:
    """The totals; None if the file is damaged."""
    try:
        return LifetimeTotals(_object(parse_json(path.read_bytes())))
    except FileNotFoundError:
        return LifetimeTotals({})
    except ValueError:
        return None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _objects(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    return _object(data.get(name, {}))


def _numbers(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = _objects(data, name)
    if not all(isinstance(value, (int, float, type(None))) for value in found.values()):
        raise ValueError(f"{name} contains something that is not a number")
    return found


def _used(entry: Any) -> ModelUsage:
    data = _object(entry)
    return ModelUsage(
        requests=count(data.get("requests")), cost=amount(data.get("cost")), estimated=data.get("estimated") is True
    )


def _sum(before: ModelUsage | None, more: ModelUsage) -> ModelUsage:
    if before is None:
        return more
    return ModelUsage(
        requests=before.requests + more.requests,
        cost=_more(before.cost, more.cost),
        estimated=before.estimated or more.estimated,
    )


def _more(before: float | None, more: float | None) -> float | None:
    """The sum. Unknown values add nothing; it is unknown if all values are."""
    return before if more is None else more if before is None else before + more
