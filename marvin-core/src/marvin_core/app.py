"""Putting a run together: the configuration, the packs, the provider, the session, the interface."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .clients import Clients
from .config import Config, Secrets
from .context import Asker
from .engine import Ingredients
from .errors import PluginError
from .plugins import Plugins
from .prices import Prices
from .providers.base import Provider, ProviderFactory
from .providers.choose import Choice, choose
from .session import Session
from .usage import UsageMeter

if TYPE_CHECKING:
    from .ui.base import UI


class App:
    """One run of the program. `warn` is told, in one line, of what went wrong on the way."""

    def __init__(self, config: Config, secrets: Secrets, warn: Callable[[str], None]) -> None:
        self.config = config
        self.secrets = secrets
        self._warn = warn
        self.plugins = Plugins(config, warn)
        for spec in self.plugins.tools:
            needed = (need.removeprefix("env:") for need in spec.requires if need.startswith("env:"))
            secrets.declare([*needed, *filter(_sounds_secret, spec.settings)])
        self.choice: Choice = choose(config, secrets, self.plugins.providers)
        self._clients = Clients(config)
        endpoint = self.choice.endpoint
        if endpoint is not None:
            self._clients.expect(endpoint.base_url)
        local = frozenset({endpoint.provider}) if endpoint is not None and self.choice.local else frozenset[str]()
        prices = Prices(config.prices, config.cache_folder / "prices.json", local)
        self.meter = UsageMeter(prices.cost, prices.is_known)

    def session(self, *, asker: Asker | None, interactive: bool) -> Session:
        """The session of this run."""
        return Session(
            Ingredients(
                config=self.config,
                secrets=self.secrets,
                tools=self.plugins.tools,
                hooks=self.plugins.hooks(),
                commands=self.plugins.commands() if interactive else (),
                provider=self._provider(),
                how_to=self.choice.how_to,
                origin=self.choice.reason,
                client=self._clients.for_tools,
                close_client=self._clients.close,
                meter=self.meter,
                asker=asker,
            )
        )

    def _provider(self) -> Provider | None:
        endpoint = self.choice.endpoint
        if endpoint is None:
            return None
        from .providers.resilient import Resilient

        create: ProviderFactory = _imported("provider", self.choice.factory)
        return Resilient(create(endpoint, lambda: self._clients.for_model(endpoint.base_url)), self.config.waits)

    def ui(self) -> UI:
        """The interface that was asked for, else the plain chat."""
        wanted = "plain" if self.config.plain else self.config.ui or "plain"
        specs = {spec.name: spec for spec in self.plugins.uis}
        if wanted not in specs:
            self._warn(f"There is no interface {wanted!r} (ui: in config.yaml); there are: {', '.join(specs)}.")
            wanted = "plain"
        made: UI = _imported("interface", specs[wanted].factory)()
        return made

    def save_usage(self) -> None:
        """Add this session to the lifetime totals; where that fails only the totals suffer."""
        try:
            self.meter.save_lifetime(self.config.config_folder / "usage.json", self.config.waits)
        except Exception as error:  # the run is over and its result must not depend on this
            self._warn(f"The lifetime totals were not saved: {error}")


def _imported(kind: str, name: str) -> Any:
    """What a pack's factory is, by its name.

    Raises:
        PluginError: where it cannot be had.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # a stranger's module may raise anything
        why = f"{type(error).__name__}: {error}"
        raise PluginError(f"The {kind} {name!r} cannot be loaded: {why}. Correct or remove its pack.") from error


def _sounds_secret(name: str) -> bool:
    """Whether a declared setting is one to keep: an address, say, would only be redacted from what users see."""
    return any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD"))
