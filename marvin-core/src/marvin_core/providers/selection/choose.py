"""Selects the model that answers, and gives the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...api.config import Config
from ...api.providers import OFFLINE, Endpoint, ProviderSpec
from ...api.record import Record
from ...config.tiers import ALIASES, TIERS
from .catalog import NO_MODEL, Catalog, KeyMissingError
from .model_names import find, prefixed, spelled

if TYPE_CHECKING:
    from .local_servers import LocalServer

Probe = Callable[[], "Sequence[LocalServer]"]


class Choice(Record):
    """The result: an endpoint and the factory of its provider, or neither and what to do about it.

    `reason` explains the choice. `local` means that requests run on this machine and cost nothing. `notice` says what
    differs from the request.
    """

    endpoint: Endpoint | None
    factory: str = ""
    reason: str = ""
    local: bool = False
    problem: str = ""
    """Why there is no model, in one line."""
    how_to: str = ""
    notice: str = ""


def choose(config: Config, catalog: Catalog, probe: Probe | None = None) -> Choice:
    """Choose the requested provider, otherwise the first one that is set up.

    Args:
        probe: looks for local servers if nothing is set up. Only a chat passes it: without a model it then continues
            with the provider `offline`.

    Raises:
        UsageError, ConfigError: the requested provider does not exist.
    """
    if config.model not in ALIASES:
        return _chosen(config, catalog, probe)
    model, notice = _model_of_tier(config, catalog)
    chosen = _chosen(config.replace(model=model), catalog, probe)
    if chosen.endpoint is None or chosen.endpoint.provider == OFFLINE:
        return chosen
    return chosen.replace(notice=notice)


def _named_by_user(config: Config, catalog: Catalog) -> ProviderSpec:
    """Raises `UsageError`, or `ConfigError` if the name does not come from a flag."""
    return catalog.spec(config.provider, config.provider_origin, by_flag=config.provider_from == "flag")


def _model_of_tier(config: Config, catalog: Catalog) -> tuple[str, str]:
    """The model for `high` or `low`, and a notice if it is the default because nobody serves the model of the tier."""
    tier = ALIASES[config.model]
    wanted = config.tiers[tier]
    if config.provider:
        current: ProviderSpec | None = _named_by_user(config, catalog)
    else:
        current = next(_candidates(catalog, chat=True), (None, ""))[0]
    found = find(catalog, wanted, current)
    if found is not None and (found.spec is current or not config.provider):
        return f"{found.spec.name}/{found.model}", ""
    if wanted != TIERS[tier].model:
        return wanted, ""
    whose = config.provider or "What is set up"
    return "", (
        f"{whose} does not serve {wanted}, which is the model of the tier {config.model}; the default model is used."
    )


def _candidates(catalog: Catalog, *, chat: bool) -> Iterator[tuple[ProviderSpec, str]]:
    """The automatic candidates: services with a key or login, then those that only a chat looks for."""
    return ((spec, reason) for spec, reason in catalog.set_up() if chat or not spec.ready)


def _chosen(config: Config, catalog: Catalog, probe: Probe | None) -> Choice:
    if config.provider:
        spec = _named_by_user(config, catalog)
        origin = config.provider_origin
        return _choice(catalog, spec, config.model.removeprefix(f"{spec.name}/"), config, origin, f"{origin} names it")
    first, origin = next(_candidates(catalog, chat=probe is not None), (None, ""))
    asked = prefixed(catalog, config.model, first)
    if asked is not None:
        name = config.model.removeprefix(f"{asked.name}/")
        origin = f"{config.model_origin} {config.model}"
        return _choice(catalog, asked, name, config, origin, f"{origin} names it")
    if first is not None:
        found = find(catalog, config.model, first) if config.model else None
        if found is not None and found.spec is not first:
            return _choice(catalog, found.spec, found.model, config, f"it serves {config.model}")
        return _choice(catalog, first, found.model if found else config.model, config, origin)
    if probe is None:
        return Choice(endpoint=None, problem=NO_MODEL, how_to=catalog.how_to())
    for server in probe():
        spec = catalog.known[server.provider]
        return _choice(catalog, spec, config.model or server.model, config, server.reason)
    return _choice(catalog, catalog.known[OFFLINE], OFFLINE, config, "no model is configured")


def _choice(catalog: Catalog, spec: ProviderSpec, named: str, config: Config, origin: str, reason: str = "") -> Choice:
    """The choice of a service, requested by `origin` or found for this `reason`."""
    # What a service's own variable says is closer to it than what config.yaml says for all.
    closer = catalog.named_by_variable(spec) if config.model_from == "file" else ""
    model = closer or spelled(catalog, spec, named) or catalog.default_model(spec)
    try:
        endpoint = catalog.endpoint(spec, model, origin)
    except KeyMissingError as error:
        return Choice(endpoint=None, problem=str(error).partition("\n")[0], how_to=str(error))
    return Choice(endpoint=endpoint, factory=spec.factory, reason=reason or origin, local=catalog.is_local(spec))
