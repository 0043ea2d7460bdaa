"""The model services that a run knows, and which of them are set up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...api.config import Config, EndpointSettings
from ...api.errors import ConfigError, UsageError
from ...api.providers import Endpoint, ProviderSpec, Secret
from ...config.program import command_name
from ...config.secrets import Secrets
from ...profiles.store import Profiles
from ...util.imports import imported
from ...util.text import did_you_mean, near_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WIRES = {
    "chat-completions": "marvin_core.providers.chat_completions.provider:create",
    "messages": "marvin_core.providers.anthropic.provider:create",
    "responses": "marvin_core.providers.responses.provider:create",
    "codex": "marvin_core.providers.codex.provider:create",
    "ollama": "marvin_core.providers.ollama.provider:create",
    "local": "marvin_core.providers.local:create",
    "copilot": "marvin_core.providers.copilot.provider:create",
}
"""The wire formats that `providers:` in config.yaml may name, with the factory of each."""

_LOOPBACK = re.compile(r"https?://(127(\.\d+){3}|localhost|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)


NO_MODEL = "No model is configured."


class KeyMissingError(ConfigError):
    """A service was asked for whose key is not there; the text says how to set it."""


class Catalog:
    """The services of the packs, as config.yaml changes them and adds to them, in the order of preference.

    Raises:
        ConfigError: for an entry of `providers:` that cannot be used.
    """

    def __init__(self, config: Config, secrets: Secrets, specs: Sequence[ProviderSpec]) -> None:
        self._config = config
        self._secrets = secrets
        self._profiles = Profiles(config.config_folder, config.timeouts)
        known = {spec.name: spec for spec in specs}
        for name, settings in config.endpoints.items():
            known[name] = _overlaid(name, settings, known.get(name))
        self.known: Mapping[str, ProviderSpec] = known
        self._first_listed: dict[str, str] = {}
        for spec in known.values():
            secrets.declare(spec.key_variables)

    def spec(self, name: str, origin: str, *, by_flag: bool = False) -> ProviderSpec:
        """The service of this name.

        Raises:
            UsageError, ConfigError: where there is none; `origin` says where it was named, if it was.
        """
        if name in self.known:
            return self.known[name]
        hint = did_you_mean(near_names(name, self.known)) or f"There are: {', '.join(self.known)}."
        text = f"There is no provider {name!r}{f' (from {origin})' if origin else ''}. {hint}"
        raise UsageError(text) if by_flag else ConfigError(text)

    def reason(self, spec: ProviderSpec) -> str:
        """Why this service can be used without being asked for by name; empty where it is not set up."""
        settings = self._config.endpoints.get(spec.name)
        if spec.login and self._has_login(spec):
            return f"the profile {self._profiles.active} is logged in"
        if any(self._secrets.in_environment(name) for name in spec.key_variables):
            return f"{next(filter(self._secrets.in_environment, spec.key_variables))} is set"
        if self._key(spec):
            return f"its key is in ~/{spec.key_file}"
        if spec.keyless and self._secrets.setting(spec.url_variable):
            return f"{spec.url_variable} is set"
        if spec.ready and not spec.base_url:
            return self._ready(spec)
        if settings is not None and settings.base_url and (self.is_local(spec) or not spec.key_variables):
            return "config.yaml names it"
        return ""

    def set_up(self) -> Iterator[tuple[ProviderSpec, str]]:
        """The services that are set up, and why each counts as such.

        Looked for one by one, as far as somebody asks: those with a program of their own take the longest.
        """
        for spec in sorted(self.known.values(), key=lambda spec: bool(spec.ready)):
            reason = self.reason(spec)
            if reason:
                yield spec, reason

    def base_url(self, spec: ProviderSpec) -> str:
        """Where the service is."""
        return (self._secrets.setting(spec.url_variable) if spec.url_variable else None) or spec.base_url

    def is_local(self, spec: ProviderSpec) -> bool:
        """Whether its requests run on this machine, and so cost nothing."""
        return spec.in_process or bool(_LOOPBACK.match(self.base_url(spec)))

    def local(self) -> list[tuple[ProviderSpec, str]]:
        """The services on this machine, each with its address."""
        return [(spec, self.base_url(spec)) for spec in self.known.values() if self.is_local(spec)]

    def longest(self, provider: str, model: str) -> int | None:
        """The longest answer of a model, in tokens; None where it is not known."""
        return self.known[provider].output(model) if provider in self.known else None

    def default_model(self, spec: ProviderSpec) -> str:
        """The model of a service where nobody names one: on this machine the first that its server lists."""
        variable = self._secrets.setting(spec.model_variable) if spec.model_variable else None
        named = variable or spec.default_model
        return named if named or not _LOOPBACK.match(self.base_url(spec)) else self._listed(spec)

    def _listed(self, spec: ProviderSpec) -> str:
        if not self._first_listed.get(spec.name):  # a server that was not there may be by now
            from .local_servers import first_listed

            self._first_listed[spec.name] = first_listed(spec, self.base_url(spec), self._config.timeouts)
        return self._first_listed[spec.name]

    def endpoint(self, spec: ProviderSpec, model: str, origin: str) -> Endpoint:
        """Where and as whom to ask for this model; `origin` says where the provider was named, if it was.

        Raises:
            ConfigError: where the key is missing or the address is none.
        """
        base_url, key = self.base_url(spec), self._key(spec)
        own_address = spec.keyless and bool(self._secrets.setting(spec.url_variable))
        if spec.key_variables and not key and not self.is_local(spec) and not own_address:
            named = f" ({origin})" if origin else ""
            raise KeyMissingError(f"The provider {spec.name}{named} needs a key. {_sentence(spec)}")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"The address of {spec.name} is {base_url!r}; it must begin with http:// or https://.")
        settings = self._config.endpoints.get(spec.name)
        return Endpoint(
            provider=spec.name,
            base_url=base_url,
            model=model,
            key=key,
            key_hint=spec.key_variables[0] if spec.key_variables else "",
            context_window=spec.window(model),
            max_tools=spec.max_tools,
            max_output=spec.output(model),
            headers=settings.headers if settings else None,
            profile_folder=self._profile_folder() if spec.login else None,
            environment=lambda: self._environment(spec),
            learn=self._secrets.learn,
            timeouts=self._config.timeouts,
        )

    def _ready(self, spec: ProviderSpec) -> str:
        check: Callable[[Mapping[str, str]], str] = imported("provider", spec.ready)
        return check(self._environment(spec))

    def _environment(self, spec: ProviderSpec) -> dict[str, str]:
        """The environment of a provider's program: it trusts the authorities that Marvin trusts."""
        trusted = {"SSL_CERT_FILE": self._config.ca_file} if self._config.ca_file else {}
        return {**self._secrets.child_environment(spec.handed_on), "HOME": str(self._config.home), **trusted}

    def _profile_folder(self) -> Path:
        return self._profiles.folder(self._profiles.active)

    def _has_login(self, spec: ProviderSpec) -> bool:
        try:
            return spec.name in json.loads((self._profile_folder() / "tokens.json").read_bytes())
        except (OSError, ValueError, TypeError):
            return False

    def _key(self, spec: ProviderSpec) -> Secret:
        found = (self._secrets.get(name, spec.key_file) for name in spec.key_variables)
        return next(filter(None, found), Secret(""))

    def how_to(self) -> str:
        """What to do where no service is set up."""
        lines = "\n".join(f"  - {way}" for way in map(how_to_use, self.known.values()) if way)
        return (
            f"{NO_MODEL} To set a provider, do one of these:\n"
            f"{lines}\n"
            "  - or name one under `providers:` in config.yaml"
        )


def _overlaid(name: str, settings: EndpointSettings, spec: ProviderSpec | None) -> ProviderSpec:
    """The provider as config.yaml changes it, or the new one that it defines."""
    if spec is None and not settings.base_url:
        raise ConfigError(f"providers.{name} in config.yaml needs a base_url, as in https://host/v1.")
    wire = settings.wire or "chat-completions"
    if wire not in WIRES:
        raise ConfigError(f"providers.{name}.wire is {wire!r}; use one of: {', '.join(WIRES)}.")
    spec = spec or ProviderSpec(name=name, factory=WIRES[wire], base_url="", default_model="")
    return spec.replace(
        factory=WIRES[wire] if settings.wire else spec.factory,
        base_url=settings.base_url or spec.base_url,
        default_model=settings.models[0] if settings.models else spec.default_model,
        models=settings.models or spec.models,
        key_variables=(settings.key,) if settings.key else spec.key_variables,
        max_tools=settings.max_tools or spec.max_tools,
        url_variable="" if settings.base_url else spec.url_variable,
        windows=_windows(settings) or spec.windows,
    )


def _windows(settings: EndpointSettings) -> Mapping[str, int]:
    rest = {"": settings.context_window} if settings.context_window else {}
    return {**rest, **(settings.windows or {})}


def _sentence(spec: ProviderSpec) -> str:
    way = how_to_use(spec)
    return f"{way[:1].upper()}{way[1:]}." if way else f"Set {spec.key_variables[0]}."


def how_to_use(spec: ProviderSpec) -> str:
    """How to have a service set up; a command of Marvin's as it is typed here."""
    return spec.how_to.replace("`marvin ", f"`{command_name()} ")
