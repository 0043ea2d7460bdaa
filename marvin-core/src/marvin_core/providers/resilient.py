"""Wraps a provider: retries after temporary failures, then continues with another model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, cast

from ..api.errors import (
    AuthFailed,
    BadRequest,
    ConfigError,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    StreamBroken,
    Unreachable,
)
from ..api.messages import Usage
from ..api.models import ModelListener
from ..api.providers import (
    CallDelta,
    Delta,
    Provider,
    Request,
    Retrying,
    Stop,
    Switched,
    TextDelta,
    ThinkingDelta,
    UsageDelta,
    adds_revealed,
)
from ..api.timeouts import Timeouts
from .generations import is_spelled_otherwise
from .wrapper import WrapperProvider

if TYPE_CHECKING:

    class Alternatives(Protocol):
        """The other models that may take over after a failure."""

        def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
            """The fallback models, in the order in which they are tried."""
            ...

        def larger(self, small: Provider) -> Provider | None:
            """The model of the same service with the next larger context window."""
            ...

        def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
            """The replacement for a model that its service no longer serves, or has under another name."""
            ...


_REASONS: dict[type[ProviderError], str] = {
    RateLimited: "Rate limited by {}",
    Overloaded: "{} is overloaded",
    StreamBroken: "{} gave a broken answer",
}
_TOO_LONG = "The conversation is too long for {previous}; {model} continues"
_GONE = "{previous} is no longer served; {model} replaces it"
_REFUSED = "{previous} is listed by its service, but this account may not use it; {model} replaces it"
_SPELLED = "{previous} is called {model}"
_FAILED = "{previous} failed: {error} {model} takes over"
_ELSEWHERE = (RateLimited, Overloaded, StreamBroken, AuthFailed, QuotaExhausted, Unreachable)
"""The failures after which another service may succeed."""
_ELSEWHERE_AGAIN = (*_ELSEWHERE, ModelNotFound, BadRequest, ConfigError)
"""The same for a fallback model: nobody chose it for this prompt, so the next one is tried."""


class NoAlternatives:
    """No other model takes over."""

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        """None."""
        none: Sequence[Provider] = ()
        for other in none:
            yield other

    def larger(self, small: Provider) -> Provider | None:
        """None."""
        return None

    def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
        """None."""
        return None


class Resilient(WrapperProvider):
    """Wraps a provider for one prompt, and is one itself.

    After a rate limit, an overload, or a broken or empty answer, it tries again: after each pause of
    `timeouts.retry_backoff`, or at the time that the service names, if that is within `timeouts.retry_after_limit`. It
    never does once text or thinking was passed on, which may have been shown.

    If that does not help, it tries the fallback models of the `alternatives` in order; failures that do not go away by
    waiting lead there at once. A conversation that is too long goes to the larger model of the same service. A model
    that is no longer served is replaced by its successor. No model is used twice, so this ends. The `follower` is
    notified of each change. With `restarts`, another model may repeat an answer that was shown in part.
    """

    def __init__(
        self,
        provider: Provider,
        timeouts: Timeouts,
        alternatives: Alternatives | None = None,
        follower: ModelListener | None = None,
        *,
        restarts: bool = False,
    ) -> None:
        super().__init__(provider)
        self._timeouts = timeouts
        self._alternatives = alternatives or NoAlternatives()
        self._follower = follower
        self._restarts = restarts
        self._first = provider
        self._asked = {_key(provider)}
        self._stands_in = False
        self._shown = False

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, with a `Retrying` before each retry and a `Switched` before the answer of another model."""
        while True:
            try:
                async with aclosing(self._tried(request)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except (ProviderError, ConfigError) as error:
                switched = await self._switch(error)
                if switched is None:
                    raise
            yield switched

    async def _switch(self, error: ProviderError | ConfigError) -> Switched | None:
        """Switch to another model, if one may succeed."""
        previous = self._full_name()
        other = self._better(error)
        told = _TOO_LONG if isinstance(error, ContextOverflow) else _GONE
        if isinstance(error, ModelNotFound) and self.model in error.served:
            told = _REFUSED
        if other is not None and is_spelled_otherwise(self.model, other.model):
            told = _SPELLED
        if other is None and self._may_fall_back(error):
            other, told = await self._fallback(), _FAILED
            self._stands_in = self._stands_in or other is not None
        if other is None:
            return None
        self._asked.add(_key(other))
        self._provider = other
        if self._follower is not None:
            tell = self._follower.lent if self._stands_in else self._follower.moved
            tell(other)
        model = self._full_name()
        return Switched(previous=previous, model=model, reason=told.format(previous=previous, model=model, error=error))

    def _better(self, error: ProviderError | ConfigError) -> Provider | None:
        """The model of the same service that can do what this one cannot."""
        found: Provider | None = None
        if isinstance(error, ContextOverflow) and not self._shown and not _limits_account(error, self._provider):
            found = self._alternatives.larger(self._provider)
        elif isinstance(error, ModelNotFound):
            found = self._alternatives.successor(self._provider, error.served)
        return found if found is not None and _key(found) not in self._asked else None

    async def _fallback(self) -> Provider | None:
        """The next fallback model that was not tried in this prompt."""
        others = cast("AsyncGenerator[Provider, None]", self._alternatives.fallbacks(self._first))
        async with aclosing(others):
            async for other in others:
                if _key(other) not in self._asked:
                    return other
        return None

    def _may_fall_back(self, error: ProviderError | ConfigError) -> bool:
        curable = isinstance(error, _ELSEWHERE_AGAIN if self._stands_in else _ELSEWHERE)
        return curable and (self._restarts or not self._shown)

    def _full_name(self) -> str:
        return f"{self._provider.name}/{self._provider.model}"

    async def _tried(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The answer of the current provider, with all retries."""
        import asyncio

        pauses = self._timeouts.retry_backoff
        for attempt in range(len(pauses) + 1):
            self._shown = answered = False
            last: Delta | None = None
            most = self._provider.max_tools
            asked = request.within(most) if adds_revealed(self._provider) else request.with_revealed(most)
            deltas = cast("AsyncGenerator[Delta, None]", self._provider.stream(asked))
            try:
                async with aclosing(deltas):
                    async for delta in deltas:
                        self._shown = self._shown or isinstance(delta, (TextDelta, ThinkingDelta))
                        answered = answered or isinstance(delta, CallDelta) or _has_text(delta)
                        if isinstance(delta, Stop) and not answered and delta.reason != "length":
                            raise StreamBroken(f"{self.name} gave an empty answer. Try again, or another model.")
                        last = delta
                        yield delta
                if not isinstance(last, Stop):
                    raise StreamBroken(f"The answer of {self.name} ended too early. Try again, or another model.")
                return
            except ProviderError as error:
                if error.billed and last is None:
                    yield UsageDelta(usage=Usage())  # a request whose cost is not known
                if attempt == len(pauses) or not await self._is_worth_another_try(error):
                    raise
                if isinstance(error, StreamBroken) and error.final:
                    raise
                pause = pauses[attempt]
                if isinstance(error, (RateLimited, Overloaded)):
                    pause = error.retry_after or pause  # "at once" is no pause
                if pause > self._timeouts.retry_after_limit:
                    raise
                reason = _REASONS[type(error)].format(self.name)
            yield Retrying(text=f"{reason}, trying again in {pause:.3g} s ({attempt + 1} of {len(pauses)})")
            await asyncio.sleep(pause)

    async def _is_worth_another_try(self, error: ProviderError) -> bool:
        if self._shown or not isinstance(error, tuple(_REASONS)):
            return False
        return not isinstance(error, Overloaded) or await self._fallback() is None


def _key(provider: Provider) -> tuple[str, str]:
    return provider.name, provider.model


def _limits_account(error: ContextOverflow, provider: Provider) -> bool:
    """Whether the service gives this account less than the model supports: another model would get no more."""
    return error.window is not None and error.window < (provider.context_window or 0)


def _has_text(delta: Delta) -> bool:
    return isinstance(delta, TextDelta) and bool(delta.text.strip())
