"""Counting what model requests use, and bounding what they may cost."""

from __future__ import annotations

from typing import Protocol

from .messages import Usage
from .providers import Request
from .record import Record


class Meter(Protocol):
    """Counts model requests; `count` tells the cost in USD, None where no price is known."""

    def add(self, provider: str, model: str, usage: Usage) -> None: ...
    async def count(self, provider: str, model: str, usage: Usage) -> float | None: ...


class Reservation(Record):
    """A request whose worst case is reserved. `size` is in bytes; a request that costs nothing has no `key`."""

    provider: str
    model: str
    size: int = 0
    input_tokens: int = 0
    key: str = ""


class CostCeiling(Protocol):
    """What requests may cost together. `Budget` says what these do."""

    async def reserve(self, provider: str, model: str, request: Request) -> tuple[Request, Reservation]: ...
    def settle(self, hold: Reservation, usage: Usage | None, came: int, *, complete: bool) -> None: ...
    def refused(self, hold: Reservation) -> None: ...
    def begin_last(self) -> None: ...
    def end_last(self) -> None: ...
    def told(self) -> str: ...
