"""The model service of the garden."""

from __future__ import annotations

from collections.abc import AsyncIterator

from marvin_core import ClientFactory, Delta, Endpoint, Request, Stop, TextDelta

from .settings import GardenSettings


class Scarecrow:
    """Repeats what it hears from its service."""

    name = "scarecrow"
    context_window = None
    max_tools = None

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        assert endpoint.pack is not None
        self.model = endpoint.model
        self._season = endpoint.pack.settings(GardenSettings).season
        self._endpoint = endpoint
        self._client = client

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer."""
        answer = await self._client().get(f"{self._endpoint.base_url}/say")
        yield TextDelta(text=f"{answer.text} {request.messages[-1].text} in {self._season}")
        yield Stop(reason="stop")

    async def aclose(self) -> None:
        """Nothing to close."""


def create(endpoint: Endpoint, client: ClientFactory) -> Scarecrow:
    """The provider."""
    return Scarecrow(endpoint, client)
