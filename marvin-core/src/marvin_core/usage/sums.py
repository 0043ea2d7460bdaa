"""Adds up the usage of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..api.messages import ModelUsage


def total(used: Iterable[ModelUsage]) -> ModelUsage:
    """The sum; its cost is unknown if one of the costs is."""
    parts = tuple(used)
    known = [part.cost for part in parts if part.cost is not None]
    return ModelUsage(
        requests=sum(part.requests for part in parts),
        cost=sum(known, 0.0) if len(known) == len(parts) else None,
        estimated=any(part.estimated for part in parts),
    )


def by_name(parts: Iterable[Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    """The models of several providers and agents by their names alone."""
    names: dict[str, list[ModelUsage]] = {}
    for models in parts:
        for model, used in models.items():
            names.setdefault(model, []).append(used)
    return {model: total(used) for model, used in names.items()}
