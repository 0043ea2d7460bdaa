"""The usage as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from ..api.messages import ModelUsage, UsageSummary
from ..util.text import counted
from .sums import total

Models: TypeAlias = Mapping[str, ModelUsage]
_OLDER = "counted before providers were recorded"


def usage_text(summary: UsageSummary) -> str:
    """The usage as text for people and models."""
    tokens = summary.tokens
    cached = f"{tokens['cache_read_tokens']:,} read from a cache, {tokens['cache_write_tokens']:,} written to one"
    lines = [
        f"Since Marvin was started: {_used(_sum(summary.providers), 'model request')}.",
        *_ceiling(summary),
        f"Input tokens: {tokens['input_tokens']:,} ({cached})",
        f"Output tokens: {tokens['output_tokens']:,} ({tokens['reasoning_tokens']:,} of them reasoning)",
        *_providers(summary.providers, lambda models: _used(total(models.values()), "request")),
        f"Tool calls: {sum(summary.tool_calls.values()):,}",
        *(f"  {name}: {count:,}" for name, count in summary.tool_calls.items()),
    ]
    if summary.lifetime is not None:
        every = [used for models in summary.lifetime.values() for used in models.values()]
        lines.append(f"All sessions: {_known(every, 'model request')}.")
        lines += _providers(summary.lifetime, lambda models: _known(models.values(), "request"))
    return "\n".join(lines)


def _ceiling(summary: UsageSummary) -> list[str]:
    if summary.ceiling is None:
        return []
    return [f"Cost ceiling: {_cost(summary.ceiling)} for all agents together, {_cost(summary.left)} left"]


def _sum(providers: Mapping[str, Models]) -> ModelUsage:
    return total(used for models in providers.values() for used in models.values())


def _used(used: ModelUsage, what: str) -> str:
    estimated = " (estimated)" if used.estimated and used.cost is not None else ""
    return f"{counted(used.requests, what)}, cost {_cost(used.cost)}{estimated}"


def _known(models: Iterable[ModelUsage], what: str) -> str:
    """The sum of all known costs, and the number of models whose cost is unknown."""
    every = list(models)
    known = [used for used in every if used.cost is not None]
    if not known or len(known) == len(every):
        return _used(total(every), what)
    told = _used(total(known).replace(requests=total(every).requests), what)
    return f"{told} without {counted(len(every) - len(known), 'model')} whose price is unknown"


def _providers(providers: Mapping[str, Models], told: Callable[[Models], str]) -> Iterator[str]:
    for provider, models in providers.items():
        yield f"  {provider or _OLDER}: {told(models)}"
        yield from (f"    {model}: {_used(used, 'request')}" for model, used in models.items())


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f} USD"
