"""What providers say of themselves: of an endpoint, or of another provider inside."""

from __future__ import annotations

from ..api.providers import Endpoint, Provider, adds_revealed


class EndpointProvider:
    """A provider that is what its endpoint says."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        return self._endpoint.provider

    @property
    def model(self) -> str:
        return self._endpoint.model

    @property
    def context_window(self) -> int | None:
        return self._endpoint.context_window

    @property
    def max_tools(self) -> int | None:
        return self._endpoint.max_tools


class WrapperProvider:
    """A provider that passes for the one inside."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

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

    @property
    def defers(self) -> bool:
        """Whether the one inside adds the tools by itself that an output reveals."""
        return adds_revealed(self._provider)

    async def aclose(self) -> None:
        """Close the wrapped provider."""
        await self._provider.aclose()
