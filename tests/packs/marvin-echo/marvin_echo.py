"""A provider: it says what it was told."""

from collections.abc import AsyncIterator, Iterable

from marvin_core import ClientFactory, Delta, Endpoint, ProviderSpec, Request, Stop, TextDelta, hookimpl


class Echo:
    """Answers with the newest message."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.provider
        self.model = endpoint.model
        self.context_window = 8_000
        self.max_tools = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        yield TextDelta(text=f"{self.model} heard: {request.messages[-1].text}")
        yield Stop(reason="stop")

    async def aclose(self) -> None:
        """Nothing is open."""


def create(endpoint: Endpoint, client: ClientFactory) -> Echo:
    """What `factory` below names."""
    return Echo(endpoint)


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """One provider, without a key."""
    return [
        ProviderSpec(name="echo", factory="marvin_echo:create", base_url="http://127.0.0.1", default_model="parrot")
    ]
