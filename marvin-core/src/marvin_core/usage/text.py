"""What was used, as text."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.tool_context import UsageSummary
from ..util.text import counted


def usage_text(summary: UsageSummary) -> str:
    """What was used, for people and models alike."""
    tokens = summary.tokens
    requests = sum(count for count, _ in summary.models.values())
    cached = f"{tokens['cache_read_tokens']:,} read from a cache, {tokens['cache_write_tokens']:,} written to one"
    lines = [
        f"Since Marvin was started: {counted(requests, 'model request')}, cost {_cost(summary.cost)}.",
        *_ceiling(summary),
        f"Input tokens: {tokens['input_tokens']:,} ({cached})",
        f"Output tokens: {tokens['output_tokens']:,} ({tokens['reasoning_tokens']:,} of them reasoning)",
        *_models(summary.models),
        f"Tool calls: {sum(summary.tool_calls.values()):,}",
        *(f"  {name}: {count:,}" for name, count in summary.tool_calls.items()),
    ]
    if summary.lifetime is not None:
        every = summary.lifetime.values()
        known = [cost for _, cost in every if cost is not None]
        total = _cost(sum(known)) if known or not summary.lifetime else "unknown"
        unknown = sum(cost is None for _, cost in every)
        without = f" without {counted(unknown, 'model')} whose price is unknown" if known and unknown else ""
        lines += [
            f"All sessions: {counted(sum(count for count, _ in every), 'model request')}, cost {total}{without}.",
            *_models(summary.lifetime),
        ]
    return "\n".join(lines)


def _ceiling(summary: UsageSummary) -> list[str]:
    if summary.ceiling is None:
        return []
    return [f"Cost ceiling: {_cost(summary.ceiling)} for all agents together, {_cost(summary.left)} left"]


def _models(models: Mapping[str, tuple[int, float | None]]) -> list[str]:
    return [f"  {model}: {counted(count, 'request')}, cost {_cost(cost)}" for model, (count, cost) in models.items()]


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f} USD"
