"""A provider whose requests are charged to a cost ceiling."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from ..api.errors import ProviderError, Unreachable
from ..api.messages import Usage
from ..api.providers import (
    CallDelta,
    Delta,
    Lists,
    Measures,
    Provider,
    Request,
    ServedModel,
    Stop,
    TextDelta,
    ThinkingDelta,
    Unlimited,
    UsageDelta,
)
from .wrapper import WrapperProvider

if TYPE_CHECKING:
    from ..api.models import CostCeiling


class BudgetedProvider(WrapperProvider):
    """Wraps a provider and is one.

    It is the layer below retries and fallback models, so that each request is reserved before and settled afterwards,
    at the price of its own model.
    """

    def __init__(self, provider: Provider, ceiling: CostCeiling) -> None:
        super().__init__(provider)
        self._ceiling = ceiling

    @property
    def unlimited(self) -> bool:
        """Whether the service accepts no limit for the length of an answer; see `Unlimited`."""
        return isinstance(self._provider, Unlimited) and self._provider.unlimited

    async def served(self) -> list[ServedModel]:
        """The models of the service; the query is free. See `Lists`."""
        return await self._provider.served() if isinstance(self._provider, Lists) else []

    async def find_window(self) -> int | None:
        """The model's window; the query is free. See `Measures`."""
        return await self._provider.find_window() if isinstance(self._provider, Measures) else None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer; see `Provider.stream`.

        Raises:
            ConfigError: if the price of the model is unknown.
            BudgetExceeded: if the ceiling does not cover the request.
        """
        limited = not self.unlimited
        request, hold = await self._ceiling.reserve(self.name, self.model, request, limited=limited)
        usage: Usage | None = None
        came = 0
        complete = refused = silent = False
        deltas = cast("AsyncGenerator[Delta, None]", self._provider.stream(request))
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    usage = delta.usage if isinstance(delta, UsageDelta) else usage
                    came += _bytes(delta)
                    complete = isinstance(delta, Stop)
                    yield delta
                    if hold.most_bytes and came > hold.most_bytes and not complete:
                        yield Stop(reason="length")  # longer than allowed: the rest would not be covered
                        return
        except ProviderError as error:
            nothing = not came and usage is None
            refused = nothing and not error.billed
            silent = nothing and isinstance(error, Unreachable)
            raise
        finally:
            if refused:
                await self._ceiling.refused(hold)
            else:
                await self._ceiling.settle(hold, usage, came, complete=complete, silent=silent)


def _bytes(delta: Delta) -> int:
    if isinstance(delta, (TextDelta, ThinkingDelta)):
        return len(delta.text.encode("utf-8", "replace"))
    if isinstance(delta, CallDelta):
        return len(f"{delta.name}{delta.arguments}".encode("utf-8", "replace"))
    return 0
