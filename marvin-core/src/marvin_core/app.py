"""Putting a run together: the configuration, the packs, the provider, the session, the interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .api.config import Config
from .config.secrets import Secrets
from .engine.call_context import Asker
from .engine.engine import Ingredients
from .engine.session import Session
from .http.clients import Clients
from .plugins.manager import Plugins
from .providers.selection.catalog import Catalog
from .providers.selection.choose import Choice, choose
from .providers.selection.models import Models
from .usage.meter import UsageMeter
from .usage.prices import Prices
from .util.imports import imported

if TYPE_CHECKING:
    from .api.ui import UI
    from .providers.selection.local_servers import Found
    from .usage.budget import Budget


class App:
    """One run of the program. `warn` is told, in one line, of what went wrong on the way.

    A `chat` also looks for local servers, and goes on without a model where there is none.
    """

    def __init__(self, config: Config, secrets: Secrets, warn: Callable[[str], None], *, chat: bool = False) -> None:
        self.config = config
        self.secrets = secrets
        self._warn = warn
        self.plugins = Plugins(config, warn)
        for spec in self.plugins.tools:
            secrets.declare(spec.secrets)
        self.catalog = Catalog(config, secrets, self.plugins.providers)
        self._clients = Clients(config)
        self.choice: Choice = choose(config, self.catalog, self._probe if chat else None)
        if self.choice.notice:
            warn(self.choice.notice)
        if self.choice.endpoint is not None:
            self._clients.expect(self.choice.endpoint.base_url)
        self._prices = Prices(config.prices, config.cache_folder / "prices.json")
        self.meter = UsageMeter(self._prices.cost, self._prices.is_known)
        self.budget = self._make_budget()
        self.models = Models(self.catalog, self.choice, config, self._clients, self._prices.add, self.budget)

    def _make_budget(self) -> Budget | None:
        """The cost ceiling, if there is one."""
        if self.config.max_cost is None and not self.config.ledger:
            return None
        return self._budget_of(self.config)

    def _allow(self, dollars: float) -> Budget:
        """A budget of this many USD, beside the ceiling of the run, if there is one; what is spent counts in both."""
        return self._budget_of(self.config.replace(max_cost=dollars, ledger=""))

    def _budget_of(self, config: Config) -> Budget:
        from .usage.budget import budget_of

        return budget_of(config, self._prices, self.catalog.longest, self._warn)

    def _probe(self) -> Sequence[Found]:
        from .providers.selection.local_servers import probe

        return probe(self.catalog.local(), self.config.timeouts)

    def session(self, *, asker: Asker | None, interactive: bool) -> Session:
        """The session of this run."""
        return Session(
            Ingredients(
                config=self.config,
                secrets=self.secrets,
                tools=self.plugins.tools,
                hooks=self.plugins.hooks(),
                commands=self.plugins.commands() if interactive else (),
                models=self.models,
                client=self._clients.for_tools,
                close_client=self._clients.close,
                meter=self.meter,
                asker=asker,
                budget=self.budget,
                allow=self._allow,
            )
        )

    def ui(self) -> UI:
        """The interface that was asked for, else the plain chat."""
        wanted = "plain" if self.config.plain else self.config.ui or "plain"
        specs = {spec.name: spec for spec in self.plugins.uis}
        if wanted not in specs:
            self._warn(f"There is no interface {wanted!r} (ui: in config.yaml); there are: {', '.join(specs)}.")
            wanted = "plain"
        made: UI = imported("interface", specs[wanted].factory)()
        return made

    def save_usage(self) -> None:
        """Add this session to the lifetime totals; where that fails only the totals suffer."""
        try:
            self.meter.save_lifetime(self.config.config_folder / "usage.json", self.config.timeouts)
        except Exception as error:  # the run is over and its result must not depend on this
            self._warn(f"The lifetime totals were not saved: {error}")
