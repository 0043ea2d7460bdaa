"""What was used, as text."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.tool_context import ModelUsage, UsageSummary
from ..util.text import counted
from .sums import total

_OLDER = "counted without a provider"


def usage_text(summary: UsageSummary) -> str:
    """What was used, for people and models alike."""
    tokens = summary.tokens
    cached = f"{tokens['cache_read_tokens']:,} read from a cache, {tokens['cache_write_tokens']:,} written to one"
    lines = [
        f"Since Marvin was started: {_used(_sum(summary.providers))}.",
        *_ceiling(summary),
        f"Input tokens: {tokens['input_tokens']:,} ({cached})",
        f"Output tokens: {tokens['output_tokens']:,} ({tokens['reasoning_tokens']:,} of them reasoning)",
        *_providers(summary.providers),
        f"Tool calls: {sum(summary.tool_calls.values()):,}",
        *(f"  {name}: {count:,}" for name, count in summary.tool_calls.items()),
    ]
    if summary.lifetime is not None:
        lines += [f"All sessions: {_known(summary.lifetime)}.", *_providers(summary.lifetime)]
    return "\n".join(lines)


def _ceiling(summary: UsageSummary) -> list[str]:
    if summary.ceiling is None:
        return []
    return [f"Cost ceiling: {_cost(summary.ceiling)} for all agents together, {_cost(summary.left)} left"]


def _sum(providers: Mapping[str, Mapping[str, ModelUsage]]) -> ModelUsage:
    return total(used for models in providers.values() for used in models.values())


def _used(used: ModelUsage, what: str = "model request") -> str:
    estimated = " (estimated)" if used.estimated and used.cost is not None else ""
    return f"{counted(used.requests, what)}, cost {_cost(used.cost)}{estimated}"


def _known(providers: Mapping[str, Mapping[str, ModelUsage]]) -> str:
    """The sum of all whose cost is known, and of how many models it is not."""
    every = [used for models in providers.values() for used in models.values()]
    known = [used for used in every if used.cost is not None]
    if not known or len(known) == len(every):
        return _used(total(every))
    told = _used(total(known).replace(requests=total(every).requests))
    return f"{told} without {counted(len(every) - len(known), 'model')} whose price is unknown"


def _providers(providers: Mapping[str, Mapping[str, ModelUsage]]) -> list[str]:
    lines = []
    for provider, models in providers.items():
        lines.append(f"  {provider or _OLDER}: {_used(total(models.values()), 'request')}")
        lines += [f"    {model}: {_used(used, 'request')}" for model, used in models.items()]
    return lines


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f} USD"
