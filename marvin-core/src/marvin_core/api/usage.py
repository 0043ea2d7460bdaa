"""Counting what model requests use."""

from __future__ import annotations

from typing import Protocol

from .messages import Usage


class Meter(Protocol):
    """Counts model requests; `count` tells the cost in USD, None where no price is known."""

    def add(self, provider: str, model: str, usage: Usage) -> None: ...
    async def count(self, provider: str, model: str, usage: Usage) -> float | None: ...
