"""Asking a service for its models from where no event loop runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ...api.config import Config
from ...api.providers import Endpoint, Lists, ProviderFactory, ServedModel
from ...util.imports import imported

Keep = Callable[[Sequence[ServedModel]], None]


def ask(config: Config, endpoint: Endpoint, factory: str) -> list[ServedModel]:
    """The models that a service lists; empty if it cannot be asked. Blocks, `timeouts.model_list` at most."""
    found: list[ServedModel] = []
    ask_in_background(config, endpoint, factory, found.extend).join(config.timeouts.model_list)
    return list(found)


def ask_in_background(config: Config, endpoint: Endpoint, factory: str, keep: Keep) -> threading.Thread:
    """Ask a service for its models and have them kept, in a thread that the end of the program does not wait for."""
    thread = threading.Thread(target=lambda: keep(_asked(config, endpoint, factory)), daemon=True)
    thread.start()
    return thread


def _asked(config: Config, endpoint: Endpoint, factory: str) -> list[ServedModel]:
    import asyncio

    from ...http.clients import Clients

    clients = Clients(config)  # of its own: a client belongs to the event loop that it was used in

    async def listed() -> list[ServedModel]:
        create: ProviderFactory = imported("provider", factory)
        provider = create(endpoint, lambda: clients.for_model(endpoint.base_url))
        try:
            return await provider.served() if isinstance(provider, Lists) else []
        finally:
            await provider.aclose()

    try:
        return asyncio.run(listed())
    except Exception:  # whatever it is: without a list, what is known already counts
        return []
