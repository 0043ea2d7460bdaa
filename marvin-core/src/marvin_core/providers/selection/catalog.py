"""The model services that a run knows, and which of them are set up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...api.config import Config, EndpointSettings
from ...api.errors import ConfigError, UsageError
from ...api.providers import Endpoint, ModelFacts, ProviderSpec, Secret
from ...config.program import command_name
from ...config.secret_files import secrets_of_address, tokens
from ...config.secrets import Secrets
from ...config.settings import WrongSetting
from ...profiles.store import Profiles
from ...util.failures import is_failure
from ...util.imports import imported
from ...util.text import hint_at
from ...util.untrusted_json import parse_json
from ..generations import plain_name
from .service_lists import ServiceLists, chat_models, same_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ...api.tool_context import PackContext

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
    """The key of a requested service is missing; the text says how to set it."""


class Catalog:
    """The services of the packs in the order of preference, with the changes and additions of config.yaml.

    Raises:
        ConfigError: an entry of `providers:` cannot be used.
    """

    def __init__(
        self,
        config: Config,
        secrets: Secrets,
        specs: Sequence[ProviderSpec],
        pack_of: Callable[[ProviderSpec], PackContext | None] = lambda spec: None,
    ) -> None:
        self._config = config
        self._pack_of = pack_of
        self._secrets = secrets
        self._profiles = Profiles(config.config_folder, config.timeouts)
        known = {spec.name: spec for spec in specs}
        self._servers_here = {spec.name for spec in specs if _LOOPBACK.match(spec.base_url)}
        for name, settings in config.endpoints.items():
            known[name] = _overlaid(name, settings, known.get(name))
        self.known: Mapping[str, ProviderSpec] = known
        self._homes = {spec.name: spec.base_url for spec in specs}
        self.lists = ServiceLists(config, self)
        for spec in known.values():
            secrets.declare((*spec.key_variables, *spec.home_key_variables))
            secrets.watch_key_file(spec.key_file)
            self._learn_of(self.base_url(spec))
        if any(spec.login for spec in known.values()):
            for name in self._profiles.names():
                secrets.watch(self._profiles.folder(name) / "tokens.json", tokens)

    def _learn_of(self, address: str) -> None:
        """Hide the password in an address, and a key after it, in all output."""
        if "@" in address or "?" in address:
            for value in secrets_of_address(address):
                self._secrets.learn(Secret(value))

    def spec(self, name: str, origin: str, *, by_flag: bool = False) -> ProviderSpec:
        """The service of this name.

        Raises:
            UsageError, ConfigError: there is none; `origin` says where the name was given.
        """
        if name in self.known:
            return self.known[name]
        hint = hint_at(name, self.known)
        text = f"Unknown provider {name!r}{f' (from {origin})' if origin else ''}. {hint}"
        raise UsageError(text) if by_flag else ConfigError(text)

    def reason(self, spec: ProviderSpec) -> str:
        """Why this service can be chosen automatically; empty if it is not set up."""
        settings = self._config.endpoints.get(spec.name)
        if spec.login and self._has_login(spec):
            return f"the profile {self._profiles.active} is logged in"
        variable = next(filter(self._secrets.in_environment, self.key_variables(spec)), "")
        if variable:
            return f"{variable} is set"
        stored = next(filter(self._secrets.stores, self.key_variables(spec)), "")
        if stored and self._secrets.stored is not None:
            return f"its key is in {self._secrets.stored.place(stored)}"
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

        They are checked lazily, one by one: services with a program of their own take the longest.
        """
        for spec in sorted(self.known.values(), key=lambda spec: bool(spec.ready)):
            reason = self.reason(spec)
            if reason:
                yield spec, reason

    def base_url(self, spec: ProviderSpec) -> str:
        """The address of a service."""
        return (self._secrets.setting(spec.url_variable) if spec.url_variable else None) or spec.base_url

    def is_local(self, spec: ProviderSpec) -> bool:
        """Whether its requests go to this machine; `is_free` says whether they are free."""
        return spec.in_process or bool(_LOOPBACK.match(self.base_url(spec)))

    def is_here(self, spec: ProviderSpec) -> bool:
        """Whether it is a server on this machine: contacting it is free, and discloses nothing."""
        return self.is_local(spec) and not spec.in_process

    def is_free(self, spec: ProviderSpec) -> bool | None:
        """Whether its requests are free; None if that depends on the model.

        A server on this machine may be a gateway to paid services, unless it is one that runs models itself.
        """
        settings = self._config.endpoints.get(spec.name)
        if settings is not None and settings.free is not None:
            return settings.free
        if not self.is_local(spec):
            return False
        runs_models = spec.in_process or spec.name in self._servers_here or spec.factory == WIRES["ollama"]
        return True if runs_models else None

    def local(self) -> list[tuple[ProviderSpec, str]]:
        """The services on this machine with their addresses."""
        return [(spec, self.base_url(spec)) for spec in self.known.values() if self.is_local(spec)]

    def longest(self, provider: str, model: str) -> int | None:
        """The longest answer of a model, in tokens; None if unknown."""
        return self.lists.facts(self.known[provider], model).longest if provider in self.known else None

    def listed(self, provider: str, model: str) -> ModelFacts:
        """The facts about a model in the list of a service, if it is already known: no request is made."""
        if provider not in self.known:
            return ModelFacts()
        return self.lists.store.facts(self.lists.address(self.known[provider]), model)

    def named_by_variable(self, spec: ProviderSpec) -> str:
        """The model in the service's own variable; empty if it is not set."""
        return (self._secrets.setting(spec.model_variable) if spec.model_variable else None) or ""

    def default_model(self, spec: ProviderSpec) -> str:
        """The default model of a service.

        For a server with models of its own it is the first one that it lists, otherwise the service's default or its
        replacement.
        """
        variable = self.named_by_variable(spec)
        if variable:
            return variable
        if not self.has_own_models(spec):
            return self.lists.store.successor(self.lists.address(spec), spec.default_model) or spec.default_model
        names = chat_models(self.lists.asked(spec))
        return spec.default_model if not names or spec.default_model in names else names[0]

    def has_own_models(self, spec: ProviderSpec) -> bool:
        """Whether only the server knows its models, because a person runs it or chose it by its address."""
        settings = self._config.endpoints.get(spec.name)
        base_url = self.base_url(spec)
        if (settings is not None and settings.models) or not base_url.startswith(("http://", "https://")):
            return False
        own = spec.keyless and not self._at_home(spec)
        return own or not spec.default_model or (spec.keyless and bool(_LOOPBACK.match(base_url)))

    def ending(self, provider: str, model: str) -> str:
        """The notice about a model that ends within sixty days; empty for any other model, and after the first time."""
        spec = self.known.get(provider)
        ends = self.lists.facts(spec, model).ends if spec is not None else ""
        if not ends:
            return ""
        from .lifetimes import ends_soon, has_ended, heir_of

        if not ends_soon(ends) or not self.lists.store.tell_once(f"{provider}/{model} {ends}"):
            return ""
        heir = heir_of(provider, model)
        return (
            f"{model} of {provider} {'was' if has_ended(ends) else 'will be'} retired on "
            f"{ends}{f'; the service recommends {heir} instead' if heir else ''}. Choose another one with --model, "
            f"or with /model in a chat; `{command_name()} models` lists them."
        )

    def names(self, spec: ProviderSpec) -> tuple[str, ...]:
        """The known models of a service; those that people may want to choose come first."""
        listed = [model.name for model in self.lists.known(spec)]
        if listed and self.has_own_models(spec):
            return tuple(listed)
        return tuple(dict.fromkeys(filter(None, (*spec.models, spec.default_model, *listed))))

    def serves(self, spec: ProviderSpec, model: str) -> bool:
        """Whether a service may have an unlisted model, judged by the beginning of its name."""
        starts = (*spec.families, *(start for start in spec.windows or () if start))
        if self.has_own_models(spec) or not starts:
            return False
        plain = plain_name(model)
        return any(plain.startswith(plain_name(start)) for start in starts) and not self.lists.has_ended(spec, model)

    def key_variables(self, spec: ProviderSpec) -> tuple[str, ...]:
        """The variables with keys for the address in use."""
        home = spec.home_key_variables if spec.home_key_variables and self._at_home(spec) else ()
        return (*spec.key_variables, *home)

    def _at_home(self, spec: ProviderSpec) -> bool:
        return same_place(self.base_url(spec), self._homes.get(spec.name, ""))

    def _key_hint(self, spec: ProviderSpec) -> str:
        variables = self.key_variables(spec)
        return next(filter(self._secrets.in_environment, variables), variables[0] if variables else "")

    def endpoint(self, spec: ProviderSpec, model: str, origin: str) -> Endpoint:
        """The address and credentials for this model; `origin` says where the provider was named, if it was.

        Raises:
            ConfigError: the key is missing, or the address is invalid.
        """
        base_url, key = self.base_url(spec), self._key(spec)
        own_address = spec.keyless and bool(self._secrets.setting(spec.url_variable))
        if spec.key_variables and not key and not self.is_local(spec) and not own_address:
            named = f" ({origin})" if origin else ""
            raise KeyMissingError(f"The provider {spec.name}{named} needs a key. {_sentence(spec)}")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"The address of {spec.name} is {base_url!r}; it must begin with http:// or https://.")
        if model.startswith("models/"):
            from ..http.model_lists import google_name

            model = google_name(model)
        settings, facts = self._config.endpoints.get(spec.name), self.lists.facts(spec, model)
        return Endpoint(
            provider=spec.name,
            base_url=base_url,
            model=model,
            key=key,
            key_hint=self._key_hint(spec),
            context_window=facts.window,
            max_tools=spec.max_tools,
            max_output=facts.longest,
            look_up_window=lambda: self.lists.look_up_window(spec, model),
            headers=settings.headers if settings else None,
            profile_folder=self._profile_folder() if spec.login else None,
            environment=lambda: self._environment(spec),
            learn=self._secrets.learn,
            pack=self._pack_of(spec),
            cache=self._config.cache,
            timeouts=self._config.timeouts,
            limits=self._config.limits,
        )

    def _ready(self, spec: ProviderSpec) -> str:
        try:
            check: Callable[[Mapping[str, str]], str] = imported("provider", spec.ready)
            return check(self._environment(spec))
        except BaseException as error:  # of a pack: if it fails to say so, it is not ready
            if not is_failure(error):
                raise
            return ""

    def _environment(self, spec: ProviderSpec) -> dict[str, str]:
        """The environment of a provider's program: it trusts the same certificate authorities as Marvin."""
        trusted = {"SSL_CERT_FILE": self._config.ca_file} if self._config.ca_file else {}
        return {**self._secrets.child_environment(spec.handed_on), "HOME": str(self._config.home), **trusted}

    def key_variable(self, spec: ProviderSpec) -> str:
        """The variable with a key for the address in use; empty if the service takes no key."""
        home = spec.home_key_variables if self._at_home(spec) else ()
        return next(iter((*home, *spec.key_variables)), "")

    def _profile_folder(self) -> Path:
        return self._profiles.folder(self._profiles.active)

    def _has_login(self, spec: ProviderSpec) -> bool:
        try:
            return spec.name in parse_json((self._profile_folder() / "tokens.json").read_bytes())
        except (OSError, ValueError, TypeError):
            return False

    def _key(self, spec: ProviderSpec) -> Secret:
        found = (self._secrets.get(name, spec.key_file) for name in self.key_variables(spec))
        return next(filter(None, found), Secret(""))

    def fetch_key(self, spec: ProviderSpec) -> None:
        """Fetch the key of a service; the system's keyring may ask the user for it. Blocks.

        Raises:
            ConfigError: the keyring does not return it.
        """
        for name in self.key_variables(spec):
            self._secrets.fetch([name])
            if self._secrets.get(name, spec.key_file):
                return

    def how_to(self) -> str:
        """What to do if no service is set up."""
        lines = "\n".join(f"  - {way}" for way in map(how_to_use, self.known.values()) if way)
        return (
            f"{NO_MODEL} To set a provider, do one of these:\n{lines}\n  - or define one under `providers:` in "
            "config.yaml"
        )


def _overlaid(name: str, settings: EndpointSettings, spec: ProviderSpec | None) -> ProviderSpec:
    """A provider with the changes of config.yaml, or a new one that it defines."""
    if spec is None and not settings.base_url:
        raise WrongSetting(f"providers.{name} needs a base_url, as in https://host/v1.", "providers", name)
    if settings.base_url and not settings.base_url.startswith(("http://", "https://")):
        text = f"providers.{name}.base_url must begin with http:// or https://."  # it may contain a password
        raise WrongSetting(text, "providers", name, "base_url")
    wire = settings.wire or "chat-completions"
    if wire not in WIRES:
        text = f"providers.{name}.wire is {wire!r}. {hint_at(wire, WIRES)}"
        raise WrongSetting(text, "providers", name, "wire")
    spec = spec or ProviderSpec(name=name, factory=WIRES[wire], base_url="", default_model="")
    return spec.replace(
        factory=WIRES[wire] if settings.wire else spec.factory,
        base_url=settings.base_url or spec.base_url,
        default_model=settings.models[0] if settings.models else spec.default_model,
        models=settings.models or spec.models,
        key_variables=(settings.key,) if settings.key else spec.key_variables,
        max_tools=settings.max_tools or spec.max_tools,
        gateway=spec.gateway or not (settings.models or spec.models),
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
    """How to set up a service: a command of Marvin as it is typed here, nothing to install."""
    from importlib.util import find_spec

    name, colon, steps = spec.how_to.replace("`marvin ", f"`{command_name()} ").partition(": ")
    if spec.extra and find_spec(spec.extra) is None:
        steps = f'pip install "marvin-core[{spec.extra}]", {steps}'
    return f"{name}{colon}{steps}"
