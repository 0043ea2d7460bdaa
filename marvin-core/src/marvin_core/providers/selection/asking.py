"""Requests the models of a service outside of an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ...api.config import Config
from ...api.providers import Endpoint, Lists, ProviderFactory, ServedModel
from ...util.imports import imported

Keep = Callable[[Sequence[ServedModel]], None]


def ask(config: Config, endpoint: Endpoint, factory: str) -> list[ServedModel]:
    """The models that a service lists; empty if the request fails. Blocks, for at most `timeouts.model_list`."""
    found: list[ServedModel] = []
    ask_in_background(config, endpoint, factory, found.extend).join(config.timeouts.model_list)
    return list(found)


def ask_in_background(config: Config, endpoint: Endpoint, factory: str, keep: Keep) -> threading.Thread:
    """Request the models of a service and store them, in a thread that does not delay the exit."""
    thread = threading.Thread(target=lambda: keep(_asked(config, endpoint, factory)), daemon=True)
    thread.start()
    return thread


def _asked(config: Config, endpoint: Endpoint, factory: str) -> list[ServedModel]:
    import asyncio

    from ...http.clients import Clients

    clients = Clients(config)  # its own client: a client belongs to the event loop that it was used in

    async def listed() -> list[ServedModel]:
        create: ProviderFactory = imported("provider", factory)
        provider = create(endpoint, lambda: clients.for_model(endpoint.base_url))
        try:
            return await provider.served() if isinstance(provider, Lists) else []
        finally:
            await provider.aclose()

    try:
        return asyncio.run(listed())
    except Exception:  # whatever it is: without a list, the known models apply
        return []
