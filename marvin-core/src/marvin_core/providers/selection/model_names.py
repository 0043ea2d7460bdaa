"""What the name of a model means: `PROVIDER/MODEL`, a bare name, or a tier."""

from __future__ import annotations

from ...api.errors import ConfigError, UsageError
from ...api.providers import OFFLINE, ProviderSpec
from ...api.record import Record
from ...config.program import command_name
from ...util.text import FAINTLY_LIKE, near_names
from .catalog import Catalog

_NEAR = 3


class NamedModel(Record):
    """A model of a service."""

    spec: ProviderSpec
    model: str


def find(catalog: Catalog, name: str, current: ProviderSpec | None) -> NamedModel | None:
    """Who is known to serve this model: the current service, else the first that is set up; None for nobody."""
    if name in catalog.known:
        spec = catalog.known[name]
        return NamedModel(spec=spec, model=catalog.default_model(spec))
    asked = prefixed(catalog, name, current)
    if asked is not None:
        spec = asked
        rest = name.removeprefix(f"{spec.name}/")
        return NamedModel(spec=spec, model=_spelled(spec, rest) or rest or catalog.default_model(spec))
    candidates = [spec for spec, _ in catalog.set_up() if current is None or spec.name != current.name]
    for spec in [*([current] if current is not None else []), *candidates]:
        model = _spelled(spec, name)
        if model:
            return NamedModel(spec=spec, model=model)
    return None


def prefixed(catalog: Catalog, name: str, current: ProviderSpec | None) -> ProviderSpec | None:
    """The service that a name such as `groq/llama` begins with, if it does.

    Some services have names of others in those of their models (`openai/gpt-oss-120b`): such a name is left to
    the current one, if that lists it, or the other is not set up.
    """
    prefix, slash, _ = name.partition("/")
    spec = catalog.known.get(prefix) if slash else None
    if spec is None or current is None:
        return spec
    listed = name in (*current.models, catalog.default_model(current))
    return None if listed or (not catalog.reason(spec) and _spelled(current, name)) else spec


def named(catalog: Catalog, name: str, current: ProviderSpec | None) -> NamedModel:
    """As `find`. A name that nobody is known to serve goes to the current service, if its models are not listed here.

    Raises:
        UsageError: where the service lists its models and this is none of them; the text has the nearest names.
    """
    found = find(catalog, name, current)
    if found is not None:
        return found
    if current is not None and not current.models and current.factory and current.name != OFFLINE:
        return NamedModel(spec=current, model=name)
    known = [f"{spec.name}/{model}" for spec, _ in catalog.set_up() for model in spec.models or (spec.default_model,)]
    if not known:
        raise UsageError(
            f"No provider is set up, so none serves {name!r}. "
            f"In a chat /model says how to set one, in a shell `{command_name()} providers`."
        )
    near = near_names(name, known, _NEAR, enough=FAINTLY_LIKE) or known[:_NEAR]
    hint = f"Nearest: {', '.join(near)}. " if near else ""
    raise UsageError(
        f"No provider that is set up is known to serve {name!r}. {hint}"
        "PROVIDER/MODEL asks a provider for a model that is not listed."
    )


def default_of(catalog: Catalog, name: str) -> NamedModel | None:
    """The service that serves a tier's model, among those that are set up; None where none does.

    A key that is missing is no reason to fail here: a tier is a wish.
    """
    try:
        found = find(catalog, name, None)
    except ConfigError:
        return None
    return found if found is not None and catalog.reason(found.spec) else None


def _spelled(spec: ProviderSpec, name: str) -> str:
    """The name as the service spells it, if it is known to serve that: some write claude-opus-4.6, some -4-6."""
    plain = _plain(name)
    for model in (*spec.models, spec.default_model):
        if model and plain in (_plain(model), _plain(model.rpartition("/")[2])):
            return model
    if any(start and plain.startswith(_plain(start)) for start in spec.windows or ()):
        return name
    return ""


def _plain(name: str) -> str:
    return name.lower().replace(".", "-")
