"""`fallback:` of config.yaml: the models that take over after a failure, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from ...api.config import Config
from ...api.errors import MarvinError
from ...api.models import Serving
from ...api.providers import OFFLINE, Provider
from ...config.settings import WrongSetting
from ...config.tiers import ALIASES
from ...util.text import hint_at
from .catalog import Catalog
from .model_names import is_known


class FallbackChain:
    """The entries, which become providers when needed.

    `know`, which blocks, fetches the data for `named`, which returns the model of an entry. `warn` is called once for
    each entry that cannot be used.
    """

    def __init__(
        self,
        names: Sequence[str],
        know: Callable[[str], None],
        named: Callable[[str], Serving],
        warn: Callable[[str], None] | None,
    ) -> None:
        self._names = names
        self._know = know
        self._named = named
        self._warn = warn
        self._told: set[str] = set()

    async def usable(self, failed: Provider) -> AsyncIterator[Provider]:
        """The providers that can replace one that failed."""
        from ...util.threads import in_thread

        for name in self._names:
            try:
                await in_thread(partial(self._know, name))
                provider = self._named(name).provider
            except MarvinError as error:
                self._pass_over(name, error)
                continue
            if (provider.name, provider.model) != (failed.name, failed.model):
                yield provider

    def _pass_over(self, name: str, error: MarvinError) -> None:
        if self._warn is not None and name not in self._told:
            self._told.add(name)
            self._warn(f"{name} in fallback: was skipped. {error}")


def check_names(config: Config, catalog: Catalog) -> None:
    """Check that the names in config.yaml exist. Whether a service is set up is checked when it is needed.

    Raises:
        WrongSetting: an unknown provider, or a name in `fallback:` that is neither a provider nor a model.
    """
    if config.provider_from == "file" and config.provider not in catalog.known:
        raise WrongSetting(
            f"there is no provider {config.provider!r}. {hint_at(config.provider, catalog.known)}", "provider"
        )
    for at, name in enumerate(config.fallback):
        if name.partition("/")[0] == OFFLINE:
            raise WrongSetting(f"fallback names {name}, which is not a model. Remove it there.", "fallback", at)
        if name in ALIASES or is_known(catalog, name):
            continue
        specs = [spec for spec in catalog.known.values() if spec.name != OFFLINE]
        services = [spec.name for spec in specs]
        models = (f"{spec.name}/{model}" for spec in specs for model in spec.models)
        hint = hint_at(name, [*services, *models], f"Available: {', '.join(services)}.")
        raise WrongSetting(
            f"fallback names {name!r}, which is neither a provider nor a known model. {hint} "
            "Write PROVIDER or PROVIDER/MODEL.",
            "fallback",
            at,
        )
