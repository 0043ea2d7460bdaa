"""The models of a run: the configured ones, which become providers at their first use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from ...api.config import Config
from ...api.errors import ConfigError, MarvinError, PluginError
from ...api.models import AgentModel, ModelEntry, ModelListener, Serving
from ...api.providers import OFFLINE, Endpoint, Lists, Provider, ProviderFactory, ProviderSpec, ServedModel
from ...config.tiers import ALIASES, TIERS
from ...http.clients import Clients
from ...util.failures import is_failure, told
from ...util.imports import imported
from ..generations import is_spelled_otherwise
from .catalog import Catalog, how_to_use
from .choose import Choice
from .model_names import NamedModel, default_of, find, named

if TYPE_CHECKING:
    from ...api.models import CostCeiling
    from .fallback_chain import FallbackChain

    class Locate(Protocol):
        """Records the address of a service, and whether its requests are free; None if that depends on the model."""

        def __call__(self, provider: str, base_url: str, *, free: bool | None) -> None: ...


_HEIRS = 8
"""The maximum number of models of one service that are tried in a run, if the service lists and refuses them in turn.
"""


class Models:
    """The `ModelSource` of a run.

    Providers are cached by service and model. `locate` is called for each service in use. Each request is charged to
    the `ceiling`. `warn` is called for entries of `fallback:` that are skipped.
    """

    def __init__(
        self,
        catalog: Catalog,
        choice: Choice,
        config: Config,
        clients: Clients,
        locate: Locate,
        ceiling: CostCeiling | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._catalog = catalog
        self._choice = choice
        self._config = config
        self._clients = clients
        self._locate = locate
        self._ceiling = ceiling
        self._made: dict[tuple[str, str], Provider] = {}
        self._retired: list[Provider] = []
        self._warn = warn
        self._chain: FallbackChain | None = None
        self._gone: set[tuple[str, str]] = set()
        self.watched: Callable[[Provider, str], Provider] = lambda provider, address: provider
        """Wraps each provider below the accounting of its requests; receives the address of the service."""

    @property
    def how_to(self) -> str:
        """What to do if there is no model."""
        return self._choice.how_to or self._catalog.how_to()

    def first(self) -> Serving | None:
        """The model at the start of a session; None if none is configured."""
        choice = self._choice
        if choice.endpoint is None:
            return None
        return Serving(provider=self._provider(choice.endpoint, choice.factory), reason=choice.reason)

    def named(self, name: str, current: Provider | None) -> Serving:
        """The model for a name; see `ModelSource.named`."""
        spec = self._catalog.known.get(current.name) if current else None
        if name in ALIASES:
            return self._of_tier(ALIASES[name], spec)
        return self._serving(named(self._catalog, name, spec), "you chose it")

    def for_agent(self, name: str, current: Provider | None) -> AgentModel:
        """The model of an agent; see `ModelSource.for_agent`."""
        if name in TIERS:
            provider = self._of_tier(name, self._catalog.known.get(current.name) if current else None).provider
        elif name or current is None:
            provider = self.named(name, current).provider
        else:
            provider = current
        if provider.name == OFFLINE:
            raise ConfigError(self.how_to)
        spec = self._catalog.known[provider.name]
        variables = tuple(dict.fromkeys((*self._catalog.key_variables(spec), *spec.handed_on)))
        return AgentModel(provider=provider.name, model=provider.model, variables=variables)

    def _of_tier(self, tier: str, current: ProviderSpec | None) -> Serving:
        """The model of a tier; if it is the tier's default and nobody serves it, the model of the current service."""
        wanted = self._config.tiers[tier]
        if wanted != TIERS[tier].model:
            return self._serving(named(self._catalog, wanted, current), f"{wanted} is set for it")
        found = find(self._catalog, wanted, current)
        if found is not None and self._catalog.reason(found.spec):
            return self._serving(found, f"{wanted} is its default")
        return self._default(current, wanted)

    def _default(self, current: ProviderSpec | None, wanted: str) -> Serving:
        if current is None or current.name == OFFLINE:
            raise ConfigError(self._catalog.how_to())
        best = NamedModel(spec=current, model=self._catalog.default_model(current))
        return self._serving(best, f"no configured provider serves {wanted}")

    def pro(self, current: Provider | None) -> Serving:
        """Copilot if it is set up, otherwise the model of the high tier, otherwise the default of the current one."""
        for found in self._best():
            try:
                return self._serving(found, "it is the best of the configured models")
            except MarvinError:  # the next one is no worse than none
                continue
        return self._default(self._catalog.known.get(current.name) if current else None, self._config.tiers["opus"])

    def _best(self) -> Iterator[NamedModel]:
        yield from filter(None, (self._copilot(), default_of(self._catalog, self._config.tiers["opus"])))

    def _copilot(self) -> NamedModel | None:
        spec = self._catalog.known.get("copilot")
        if spec is None or not self._catalog.reason(spec):
            return None
        return NamedModel(spec=spec, model=self._catalog.default_model(spec))

    def _serving(self, found: NamedModel, reason: str) -> Serving:
        endpoint = self._catalog.endpoint(found.spec, found.model, "")
        return Serving(provider=self._provider(endpoint, found.spec.factory), reason=reason)

    def _provider(self, endpoint: Endpoint, factory: str) -> Provider:
        key = (endpoint.provider, endpoint.model)
        if key not in self._made:
            free = self._catalog.is_free(self._catalog.known[endpoint.provider])
            self._locate(endpoint.provider, endpoint.base_url, free=free)
            self._made[key] = self._paid(self.watched(self._created(endpoint, factory), endpoint.base_url))
        return self._made[key]

    def _created(self, endpoint: Endpoint, factory: str) -> Provider:
        create: ProviderFactory = imported("provider", factory)
        try:
            made: object = create(endpoint, lambda: self._clients.for_model(endpoint.base_url))
            if callable(getattr(made, "stream", None)) and callable(getattr(made, "aclose", None)):
                return cast("Provider", made)
            raise TypeError(f"its factory made {made!r:.100}, which is not a provider")
        except BaseException as error:  # of a pack, which may raise anything
            if isinstance(error, MarvinError) or not is_failure(error):
                raise
            source = self._catalog.known[endpoint.provider].source
            raise PluginError(
                f"The provider {endpoint.provider}{f' of {source}' if source else ''} cannot be used: {told(error)}. "
                "Choose another one with --provider, or correct or remove its pack."
            ) from error

    def _paid(self, provider: Provider) -> Provider:
        """The provider, with its requests charged to the ceiling if there is one."""
        if self._ceiling is None:
            return provider
        from ..budgeted import BudgetedProvider

        return BudgetedProvider(provider, self._ceiling)

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider, wrapped for one prompt; see `ModelSource.resilient`."""
        from ..resilient import Resilient

        timeouts = self._config.timeouts
        if ceiling is None:
            return Resilient(provider, timeouts, self, follower, restarts=restarts)
        from ..budgeted import BudgetedProvider
        from .under_ceiling import FallbacksUnderCeiling

        paid = BudgetedProvider(provider, ceiling)
        return Resilient(paid, timeouts, FallbacksUnderCeiling(self, ceiling), follower, restarts=restarts)

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        """The fallback models in the order of config.yaml; Copilot if nothing is configured."""
        spec = self._catalog.known.get(failed.name)
        if self._config.fallback:
            if self._chain is None:
                from .fallback_chain import FallbackChain

                fetch, made = partial(self._fetch, current=None), partial(self.named, current=None)
                self._chain = FallbackChain(self._config.fallback, fetch, made, self._warn)
            async for other in self._chain.usable(failed):
                yield other
        elif spec is not None and not self._catalog.is_local(spec):
            copilot = self._copilot()
            if copilot is not None and copilot.spec is not spec:
                await self._fetch_key(copilot.spec)
                yield self._serving(copilot, "it replaces the previous model").provider

    def larger(self, small: Provider) -> Provider | None:
        """The model of the same service with the next larger window, with thinking if this one has it."""
        spec = self._catalog.known.get(small.name)
        if spec is None or small.context_window is None:
            return None
        from .lifetimes import has_ended

        facts = {model: self._catalog.lists.facts(spec, model) for model in spec.models}
        thinks = self._catalog.lists.facts(spec, small.model).thinks
        windows = {
            model: known.window
            for model, known in facts.items()
            if known.window and (known.thinks or not thinks) and not has_ended(known.ends)
        }
        larger = [model for model, window in windows.items() if window > small.context_window]
        if not larger:
            return None
        best = NamedModel(spec=spec, model=min(larger, key=lambda model: windows[model]))
        try:
            return self._serving(best, "the conversation needs its larger window").provider
        except MarvinError:
            return None

    def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
        """The replacement of a default model that its service no longer serves.

        It is stored, so that the next run begins with it. No model is used twice in a run. A model that the user named
        has no replacement, except for another spelling of its name.
        """
        spec = self._catalog.known.get(gone.name)
        if spec is None:
            return None
        meant = next((model for model in served if is_spelled_otherwise(gone.model, model)), "")
        if meant and gone.model not in served:
            return self._serving(NamedModel(spec=spec, model=meant), "that is its name at its service").provider
        if self._is_named(spec, gone.model):
            return None
        if gone.model not in (spec.default_model, self._catalog.default_model(spec)):
            return None
        self._gone.add((gone.name, gone.model))
        if sum(name == gone.name for name, _ in self._gone) > _HEIRS:
            return None
        left = [model for model in served if (gone.name, model) not in self._gone]
        from .successors import heir

        best = heir(self._catalog, spec, gone.model, left)
        if not best:
            return None
        serving = self._serving(NamedModel(spec=spec, model=best), "the previous model is no longer served")
        if not self._catalog.has_own_models(spec):
            address, store = self._catalog.lists.address(spec), self._catalog.lists.store
            for model in {gone.model, spec.default_model}:
                store.remember_successor(address, model, best, listed=gone.model in served)
        return serving.provider

    def _is_named(self, spec: ProviderSpec, model: str) -> bool:
        """Whether the user asked for exactly this model."""
        by_name = bool(self._config.model) and self._config.model not in (*ALIASES, *self._catalog.known)
        first = self._choice.endpoint
        chosen = by_name and first is not None and (first.provider, first.model) == (spec.name, model)
        return chosen or self._catalog.named_by_variable(spec) == model

    async def _fetch_key(self, spec: ProviderSpec) -> None:
        from ...util.threads import in_thread

        await in_thread(lambda: self._catalog.fetch_key(spec))

    def know(self, name: str | None, current: Provider | None) -> None:
        """Fetch the model lists that are needed to resolve a name, and the key from the keyring. Blocks.

        Afterwards `named` has the data it needs, and without a name, `pro`.

        Raises:
            ConfigError: the keyring does not return the key.
        """
        if name is None:
            for best in self._best():
                with suppress(ConfigError):  # the next one is no worse than none
                    self._catalog.fetch_key(best.spec)
                    return
            return
        if name.partition("/")[0] not in self._catalog.known:
            for spec, _ in self._catalog.set_up():
                if self._catalog.has_own_models(spec) and not self._catalog.lists.known(spec):
                    self._catalog.lists.asked(spec)
        self._fetch(name, self._catalog.known.get(current.name) if current else None)

    def _fetch(self, name: str, current: ProviderSpec | None) -> None:
        """Fetch the key for a name, and the lists that identify its service. Blocks, raises like `know`."""
        try:
            found = named(self._catalog, self._config.tiers[ALIASES[name]] if name in ALIASES else name, current)
        except MarvinError:  # `named` says it
            return
        self._catalog.fetch_key(found.spec)

    def ending(self, provider: Provider) -> str:
        """The notice about a model that ends soon; see `ModelSource.ending`."""
        return self._catalog.ending(provider.name, provider.model)

    def refresh(self, provider: Provider) -> None:
        """Refresh the list of a used service in the background, if the service is on another machine."""
        spec = self._catalog.known.get(provider.name)
        if spec is not None and not spec.in_process:
            self._catalog.lists.refresh(spec)

    def listed(self) -> Sequence[ModelEntry]:
        """Every service, with the configured ones first."""
        entries = [
            ModelEntry(
                provider=spec.name,
                models=self._offered(spec),
                reason=self._catalog.reason(spec),
                how_to=how_to_use(spec),
            )
            for spec in self._catalog.known.values()
            if spec.name != OFFLINE
        ]
        return sorted(entries, key=lambda entry: not entry.reason)

    def _offered(self, spec: ProviderSpec) -> tuple[str, ...]:
        """The models to choose from."""
        default = self._catalog.default_model(spec)
        names = self._catalog.names(spec) if self._catalog.has_own_models(spec) else spec.models
        return tuple(dict.fromkeys(filter(None, (default, *names))))

    async def served(self, name: str) -> list[ServedModel]:
        """The models that a service lists, which are stored; empty if it lists none.

        Raises:
            ConfigError: the service is not set up.
            ProviderError: the service cannot be reached, rejects the key, or fails.
        """
        spec = self._catalog.spec(name, "")
        await self._fetch_key(spec)
        provider = self._serving(NamedModel(spec=spec, model=self._catalog.default_model(spec)), "").provider
        found = await provider.served() if isinstance(provider, Lists) else []
        self._catalog.lists.keep(spec, found)
        return found

    def renew(self) -> None:
        """Create the providers again at their next use: a key has changed."""
        self._retired += self._made.values()
        self._made.clear()

    def patient(self, coding: bool) -> None:
        """Use the timeouts of coding mode for silent services, or those of a chat."""
        self._clients.patient(coding)

    async def aclose(self) -> None:
        """Close the connections of all providers; a failure does not prevent the others from closing."""
        async with AsyncExitStack() as closing:
            for provider in (*self._retired, *self._made.values()):
                closing.push_async_callback(provider.aclose)
