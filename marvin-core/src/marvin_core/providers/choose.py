"""Which model answers, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..config import Config, EndpointSettings, Secrets
from ..errors import ConfigError, UsageError
from ..records import Record
from .base import Endpoint, ProviderSpec, Secret

WIRES = {
    "chat-completions": "marvin_core.providers.chat_completions:create",
    "messages": "marvin_core.providers.anthropic:create",
    "responses": "marvin_core.providers.responses:create",
    "ollama": "marvin_core.providers.ollama:create",
}
"""The wire formats that `providers:` in config.yaml may name, with the factory of each."""

_LOOPBACK = re.compile(r"https?://(127(\.\d+){3}|localhost|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)


class Choice(Record):
    """The outcome: an endpoint and the factory that makes its provider, or neither and what to do about it.

    `reason` says why this one; `local` that its requests run on this machine and cost nothing.
    """

    endpoint: Endpoint | None
    factory: str = ""
    reason: str = ""
    local: bool = False
    how_to: str = ""


def choose(config: Config, secrets: Secrets, specs: Sequence[ProviderSpec]) -> Choice:
    """Take the provider that was asked for, else the first that has its key.

    Raises:
        UsageError, ConfigError: where the one that was asked for does not exist.
    """
    known = {spec.name: spec for spec in specs}
    for name, settings in config.endpoints.items():
        known[name] = _overlaid(name, settings, known.get(name))
    for spec in known.values():
        secrets.declare(spec.key_variables)
    name, origin = config.provider, config.provider_origin
    if not name:
        prefix, slash, _ = config.model.partition("/")
        if slash and prefix in known:
            name, origin = prefix, f"{config.model_origin} {config.model}"
    if name:
        if name not in known:
            raise _unknown(name, origin, known)
        return _choice(known[name], config, secrets, origin)
    for spec in known.values():
        if spec.key_variables and _key(spec, secrets):
            return _choice(spec, config, secrets, f"{spec.key_variables[0]} is set")
        if spec.keyless and secrets.setting(spec.url_variable):
            return _choice(spec, config, secrets, f"{spec.url_variable} is set")
    return Choice(endpoint=None, how_to=_how_to(list(known.values())))


def _overlaid(name: str, settings: EndpointSettings, spec: ProviderSpec | None) -> ProviderSpec:
    """The provider as config.yaml changes it, or the new one that it defines."""
    if spec is None and not settings.base_url:
        raise ConfigError(f"providers.{name} in config.yaml needs a base_url, as in https://host/v1.")
    wire = settings.wire or "chat-completions"
    if wire not in WIRES:
        raise ConfigError(f"providers.{name}.wire is {wire!r}; use one of: {', '.join(WIRES)}.")
    spec = spec or ProviderSpec(name=name, factory=WIRES[wire], base_url="", default_model="")
    return spec.replace(
        base_url=settings.base_url or spec.base_url,
        default_model=settings.models[0] if settings.models else spec.default_model,
        key_variables=(settings.key,) if settings.key else spec.key_variables,
        max_tools=settings.max_tools or spec.max_tools,
        url_variable="" if settings.base_url else spec.url_variable,
        windows={"": settings.context_window} if settings.context_window else spec.windows,
    )


def _choice(spec: ProviderSpec, config: Config, secrets: Secrets, origin: str) -> Choice:
    base_url = (secrets.setting(spec.url_variable) if spec.url_variable else None) or spec.base_url
    local = bool(_LOOPBACK.match(base_url))
    key = _key(spec, secrets)
    own_address = spec.keyless and bool(secrets.setting(spec.url_variable))
    if spec.key_variables and not key and not local and not own_address:
        how_to = f"The provider {spec.name} ({origin}) needs a key. {_sentence(spec)}"
        return Choice(endpoint=None, how_to=how_to)
    if not base_url.startswith(("http://", "https://")):
        raise ConfigError(f"The address of {spec.name} is {base_url!r}; it must begin with http:// or https://.")
    model = _model(spec, config, secrets)
    settings = config.endpoints.get(spec.name)
    endpoint = Endpoint(
        provider=spec.name,
        base_url=base_url,
        model=model,
        key=key,
        key_hint=spec.key_variables[0] if spec.key_variables else "",
        context_window=spec.window(model),
        max_tools=spec.max_tools,
        max_output=spec.output(model),
        headers=settings.headers if settings else None,
        waits=config.waits,
    )
    return Choice(endpoint=endpoint, factory=spec.factory, reason=origin, local=local)


def _model(spec: ProviderSpec, config: Config, secrets: Secrets) -> str:
    named = config.model.removeprefix(f"{spec.name}/")
    variable = secrets.setting(spec.model_variable) if spec.model_variable else None
    if config.model and config.model_origin != "config.yaml":
        return named
    return variable or named or spec.default_model


def _key(spec: ProviderSpec, secrets: Secrets) -> Secret:
    found = (secrets.get(name, spec.key_file) for name in spec.key_variables)
    return next(filter(None, found), Secret(""))


def _unknown(name: str, origin: str, known: dict[str, ProviderSpec]) -> Exception:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
    text = f"There is no provider {name!r} (from {origin}). {hint}"
    return UsageError(text) if origin.startswith("--") else ConfigError(text)


def _how_to(specs: Sequence[ProviderSpec]) -> str:
    lines = "\n".join(f"  - {spec.how_to}" for spec in specs if spec.how_to)
    return (
        "No model is configured. To set a provider, do one of these:\n"
        f"{lines}\n"
        "  - or name one under `providers:` in config.yaml"
    )


def _sentence(spec: ProviderSpec) -> str:
    return f"{spec.how_to[:1].upper()}{spec.how_to[1:]}." if spec.how_to else f"Set {spec.key_variables[0]}."
