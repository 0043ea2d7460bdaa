"""A provider that tries again where the one inside it fails for the moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from ..errors import Overloaded, ProviderError, RateLimited, StreamBroken
from ..waits import Waits
from .base import CallDelta, Delta, Provider, Request, Retrying, Stop, TextDelta, ThinkingDelta

_REASONS: dict[type[ProviderError], str] = {
    RateLimited: "Rate limited by {}",
    Overloaded: "{} is overloaded",
    StreamBroken: "{} gave a broken answer",
}


class Resilient:
    """Wraps a provider and is one.

    A rate limit, an overload and a broken or empty answer are tried again after each pause of
    `waits.retry_backoff`, or when the service asked to come back, if that is within
    `waits.retry_after_limit`. Never once text or thinking was passed on: it may have been shown.
    """

    def __init__(self, provider: Provider, waits: Waits) -> None:
        self._provider = provider
        self._waits = waits

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def model(self) -> str:
        return self._provider.model

    @property
    def context_window(self) -> int | None:
        return self._provider.context_window

    @property
    def max_tools(self) -> int | None:
        return self._provider.max_tools

    async def aclose(self) -> None:
        """Close the wrapped provider."""
        await self._provider.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, with a `Retrying` before each new try; see `Provider.stream`."""
        import asyncio

        pauses = self._waits.retry_backoff
        for attempt in range(len(pauses) + 1):
            visible = answered = False
            deltas = cast("AsyncGenerator[Delta, None]", self._provider.stream(request))
            try:
                async with aclosing(deltas):
                    async for delta in deltas:
                        visible = visible or isinstance(delta, (TextDelta, ThinkingDelta))
                        answered = answered or isinstance(delta, CallDelta) or _has_text(delta)
                        if isinstance(delta, Stop) and not answered and delta.reason != "length":
                            raise StreamBroken(f"{self.name} gave an empty answer. Try again, or another model.")
                        yield delta
                return
            except (RateLimited, Overloaded, StreamBroken) as error:
                if visible or attempt == len(pauses):
                    raise
                pause = pauses[attempt]
                if isinstance(error, RateLimited) and error.retry_after is not None:
                    pause = error.retry_after
                if pause > self._waits.retry_after_limit:
                    raise
                reason = _REASONS[type(error)].format(self.name)
            yield Retrying(text=f"{reason}, trying again in {pause:.3g} s ({attempt + 1} of {len(pauses)})")
            await asyncio.sleep(pause)


def _has_text(delta: Delta) -> bool:
    return isinstance(delta, TextDelta) and bool(delta.text.strip())
