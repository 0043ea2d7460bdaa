"""A provider that replays a script, for tests of the layers above providers."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..api.errors import ConfigError, UsageError
from ..api.models import AgentModel, ModelEntry, ModelListener, Serving
from ..api.providers import Delta, Provider, Request

if TYPE_CHECKING:
    from ..api.models import CostCeiling

ScriptStep: TypeAlias = Delta | BaseException


class ScriptedProvider:
    """Answers each request with the next list of its script: deltas to yield, and errors to raise.

    `requests` records the requests. A request beyond the script raises `AssertionError`.
    """

    def __init__(
        self,
        *script: Sequence[ScriptStep],
        name: str = "scripted",
        model: str = "scripted",
        context_window: int | None = None,
        max_tools: int | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.context_window = context_window
        self.max_tools = max_tools
        self.requests: list[Request] = []
        self.closed = False
        self._script = deque(script)

    def script(self, *script: Sequence[ScriptStep]) -> None:
        """Add answers to the script."""
        self._script.extend(script)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The next answer of the script."""
        self.requests.append(request)
        if not self._script:
            raise AssertionError(f"script exhausted: this is request {len(self.requests)}")
        for step in self._script.popleft():
            if isinstance(step, BaseException):
                raise step
            yield step

    async def aclose(self) -> None:
        """Record that the provider was closed."""
        self.closed = True


class ScriptedModels:
    """A `ModelSource` of existing providers. A session begins with the first one.

    There are no retries and no fallbacks: the script defines what happens.
    """

    def __init__(self, *providers: Provider, how_to: str = "To set a provider: export A_KEY.") -> None:
        self._providers = providers
        self.how_to = how_to

    def first(self) -> Serving | None:
        """The first provider."""
        return Serving(provider=self._providers[0], reason="it is scripted") if self._providers else None

    def named(self, name: str, current: Provider | None) -> Serving:
        """The provider of this name, or with this model, or both as PROVIDER/MODEL."""
        for provider in self._providers:
            if name in (provider.name, provider.model, f"{provider.name}/{provider.model}"):
                return Serving(provider=provider, reason="you chose it")
        raise UsageError(f"There is no model {name!r} in this script.")

    def pro(self, current: Provider | None) -> Serving:
        """The last provider."""
        if not self._providers:
            raise ConfigError(self.how_to)
        return Serving(provider=self._providers[-1], reason="it is the best")

    def for_agent(self, name: str, current: Provider | None) -> AgentModel:
        """The current provider, or the one with this name. An agent is another process, which has no script."""
        provider = self.named(name, current).provider if name or current is None else current
        return AgentModel(provider=provider.name, model=provider.model)

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider itself, under the cost ceiling if there is one."""
        from ..providers.budgeted import BudgetedProvider

        return BudgetedProvider(provider, ceiling) if ceiling is not None else provider

    def know(self, name: str | None, current: Provider | None) -> None:
        """Do nothing: all models are known."""

    def ending(self, provider: Provider) -> str:
        """Return an empty text: no model is retired."""
        return ""

    def refresh(self, provider: Provider) -> None:
        """Do nothing: nothing expires."""

    def listed(self) -> Sequence[ModelEntry]:
        """One entry for each provider."""
        return [
            ModelEntry(provider=provider.name, models=(provider.model,), reason="it is scripted", how_to="")
            for provider in self._providers
        ]

    def patient(self, coding: bool) -> None:
        """Do nothing: a script needs no timeouts."""

    async def aclose(self) -> None:
        """Close all providers."""
        for provider in self._providers:
            await provider.aclose()
