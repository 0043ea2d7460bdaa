"""Counting what model requests use, and bounding what they may cost."""

from __future__ import annotations

from typing import Protocol

from .errors import BudgetExceeded
from .messages import Usage
from .providers import Request
from .record import Record


class Meter(Protocol):
    """Counts model requests; `count` tells the cost in USD, None where that is not known.

    `whole` says whether the service told all that was used.
    """

    def add(self, provider: str, model: str, usage: Usage) -> None: ...
    async def count(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> float | None: ...


class Reservation(Record):
    """A request whose worst case is reserved. `size` is in bytes; a request that costs nothing has no `key`.

    `output` is the tokens that its answer may have, and `most_bytes` the bytes from which on it surely has more; 0
    for no end. `amount` is in micro-dollars.
    """

    provider: str
    model: str
    size: int = 0
    input_tokens: int = 0
    key: str = ""
    amount: int = 0
    output: int = 0
    most_bytes: int = 0


class CostCeiling(Protocol):
    """What requests may cost together. `Budget` says what these do."""

    async def reserve(
        self, provider: str, model: str, request: Request, *, limited: bool = True
    ) -> tuple[Request, Reservation]: ...
    async def settle(
        self, hold: Reservation, usage: Usage | None, came: int, *, complete: bool, silent: bool = False
    ) -> None: ...
    async def refused(self, hold: Reservation) -> None: ...
    async def begin_last(self) -> None: ...
    def end_last(self) -> None: ...
    async def reached(self) -> BudgetExceeded: ...
    @property
    def standing(self) -> tuple[float, float] | None: ...
