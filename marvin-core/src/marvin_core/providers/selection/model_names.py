"""The meaning of a model's name: `PROVIDER/MODEL`, a bare name, or a tier."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.errors import ConfigError, UsageError
from ...api.providers import OFFLINE, ProviderSpec
from ...api.record import Record
from ...config.program import command_name
from ...util.text import FAINTLY_LIKE, near_names
from ..generations import plain_name
from .catalog import Catalog

_NEAR = 3


class NamedModel(Record):
    """A model of a service."""

    spec: ProviderSpec
    model: str


def find(catalog: Catalog, name: str, current: ProviderSpec | None) -> NamedModel | None:
    """The service that is known to serve this model: the current one, otherwise the first that is set up; None if
    unknown.

    Lists of gateways that are not at hand are requested before the result is None.
    """
    if name in catalog.known:
        spec = catalog.known[name]
        return NamedModel(spec=spec, model=catalog.default_model(spec))
    asked = prefixed(catalog, name, current)
    if asked is not None:
        spec = asked
        rest = name.removeprefix(f"{spec.name}/")
        return NamedModel(spec=spec, model=_spelled(catalog, spec, rest) or rest or catalog.default_model(spec))
    candidates = [spec for spec, _ in catalog.set_up() if current is None or spec.name != current.name]
    specs = [*([current] if current is not None else []), *candidates]
    return _first(catalog, name, specs) or _first(catalog, name, _asked_now(catalog, specs))


def _first(catalog: Catalog, name: str, specs: Sequence[ProviderSpec]) -> NamedModel | None:
    for spec in specs:
        model = _spelled(catalog, spec, name)
        if model:
            return NamedModel(spec=spec, model=model)
    return None


def _asked_now(catalog: Catalog, specs: Sequence[ProviderSpec]) -> list[ProviderSpec]:
    """The gateways whose list was missing and has now been fetched."""
    unknown = [spec for spec in specs if spec.gateway and not catalog.lists.known(spec)]
    return [spec for spec in unknown if catalog.lists.asked(spec)]


def spelled(catalog: Catalog, spec: ProviderSpec, name: str) -> str:
    """The name of a model in the service's own spelling, or unchanged if the service is not known to have it."""
    found = _spelled(catalog, spec, name) if name else ""
    if found or "/" in name or not spec.gateway or catalog.has_own_models(spec) or not _asked_now(catalog, [spec]):
        return found or name
    return _spelled(catalog, spec, name) or name


def prefixed(catalog: Catalog, name: str, current: ProviderSpec | None) -> ProviderSpec | None:
    """The service that a name such as `groq/llama` begins with, if any.

    The model names of some services contain names of others (`openai/gpt-oss-120b`). Such a name belongs to the current
    service if that lists it, or may have it while the other service is not set up.
    """
    prefix, slash, _ = name.partition("/")
    spec = catalog.known.get(prefix) if slash else None
    if spec is None or current is None or (spec is current and name not in catalog.names(current)):
        return spec
    if catalog.has_own_models(current) and catalog.lists.asked(current):
        return None if name in catalog.names(current) else spec
    if name in catalog.names(current):
        return None
    may_have = catalog.has_own_models(current) or _spelled(catalog, current, name)
    return None if may_have and not catalog.reason(spec) else spec


def is_known(catalog: Catalog, name: str) -> bool:
    """Whether a name means a service, or a model that a service is known to serve, set up or not."""
    if name in catalog.known or prefixed(catalog, name, None) is not None:
        return True
    return any(_spelled(catalog, spec, name) for spec in catalog.known.values())


def named(catalog: Catalog, name: str, current: ProviderSpec | None) -> NamedModel:
    """Like `find`. A name that nobody is known to serve goes to the current service if its models are not listed here.

    Raises:
        UsageError: the service lists its models, and this is none of them; the text contains the nearest names.
    """
    found = find(catalog, name, current)
    if found is not None:
        return found
    if current is not None and current.name != OFFLINE and _may_have_more(catalog, current):
        return NamedModel(spec=current, model=name)
    specs = {spec.name: spec for spec in (*([current] if current else []), *(spec for spec, _ in catalog.set_up()))}
    specs.pop(OFFLINE, None)
    known = [f"{spec.name}/{model}" for spec in specs.values() for model in catalog.names(spec)]
    if not known:
        raise UsageError(
            f"No provider is set up, so Marvin cannot use {name!r}. To set one up, type /model in a chat, or run "
            f"`{command_name()} providers`."
        )
    near = near_names(name, known, _NEAR, enough=FAINTLY_LIKE) or known[:_NEAR]
    hint = f"Nearest: {', '.join(near)}. " if near else ""
    raise UsageError(
        f"None of the configured providers is known to serve {name!r}. {hint}Use PROVIDER/MODEL to request a model "
        "that is not listed."
    )


def _may_have_more(catalog: Catalog, spec: ProviderSpec) -> bool:
    """Whether a service may serve models beyond the listed ones."""
    return bool(spec.factory) and (not spec.models or (catalog.has_own_models(spec) and not catalog.lists.known(spec)))


def default_of(catalog: Catalog, name: str) -> NamedModel | None:
    """The service for a tier's model, among those that are set up; None if there is none.

    A missing key is no error here: a tier is a preference.
    """
    try:
        found = find(catalog, name, None)
    except ConfigError:
        return None
    return found if found is not None and catalog.reason(found.spec) else None


def _spelled(catalog: Catalog, spec: ProviderSpec, name: str) -> str:
    """The name in the service's spelling, if the service is known to serve it; a gateway adds the maker's name."""
    plain = plain_name(name)
    for model in catalog.names(spec):
        if plain == plain_name(model.removesuffix(":latest")) or plain == plain_name(model):
            return model
    for model in catalog.names(spec):
        if plain == plain_name(model.rpartition("/")[2]):
            return model
    return name if catalog.serves(spec, name) else ""
