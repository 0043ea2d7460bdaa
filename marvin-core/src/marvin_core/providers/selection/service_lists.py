"""The models of services and the facts about each: from config.yaml, lists, the price table, and names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...api.providers import ModelFacts, ServedModel
from ..generations import facts_by_name, hosted_window
from .list_store import ListStore

if TYPE_CHECKING:
    from typing import Protocol

    from ...api.config import Config
    from ...api.providers import Endpoint, ProviderSpec

    class Services(Protocol):
        """The addresses of services, and how their lists are requested."""

        def base_url(self, spec: ProviderSpec) -> str: ...
        def is_local(self, spec: ProviderSpec) -> bool: ...
        def endpoint(self, spec: ProviderSpec, model: str, origin: str) -> Endpoint: ...


_NO_CHAT = r"(?i)embed|rerank|whisper|moderation|\b(tts|bge|clip)\b"
"""Names of listed models that give no chat answers."""
_REQUESTS = "/chat/completions"
_DATED = r"-20\d{6}$"


class ServiceLists:
    """The model lists of a run's services, and the facts about their models."""

    def __init__(self, config: Config, services: Services) -> None:
        self._config = config
        self._services = services
        self._asked: set[str] = set()
        self._facts: dict[tuple[str, str, str], ModelFacts] = {}
        self.store = ListStore(config.cache_folder / "models")

    def address(self, spec: ProviderSpec) -> str:
        """The address under which the list of a service is stored."""
        return self._services.base_url(spec).strip().rstrip("/").removesuffix(_REQUESTS)

    def known(self, spec: ProviderSpec) -> tuple[ServedModel, ...]:
        """The models that a service listed, as far as the list is at hand."""
        kept = self.store.read(self.address(spec)) if self._services.base_url(spec) else None
        return kept.models if kept is not None else ()

    def asked(self, spec: ProviderSpec) -> tuple[ServedModel, ...]:
        """The models that a service lists; the list is requested if it is not at hand, on this machine once a run.

        A remote service may take seconds: it is not asked from an event loop, which would block.
        """
        address = self.address(spec)
        local = self._services.is_local(spec)
        may_ask = local or not (self.known(spec) or _on_event_loop())
        if address and address not in self._asked and may_ask:
            self._asked.add(address)
            self.keep(spec, self._ask(spec, local=local))
        return self.known(spec)

    def _ask(self, spec: ProviderSpec, *, local: bool) -> Sequence[ServedModel]:
        from ...api.errors import MarvinError

        try:
            endpoint = self._services.endpoint(spec, "-", "")
        except MarvinError:  # its key is missing; the request itself says so
            return ()
        if local and endpoint.base_url.lower().startswith("http://"):
            from .local_servers import listed

            found = listed(spec, endpoint.base_url, self._config.timeouts, endpoint.key)
            if found:
                return found
            self._asked.discard(self.address(spec))  # a server that was not there may be by now
            return ()
        from .asking import ask

        return ask(self._config, endpoint, spec.factory)

    def keep(self, spec: ProviderSpec, models: Sequence[ServedModel]) -> None:
        """Store the list of a service: on disk, unless the service is on this machine and quickly asked again."""
        address = self.address(spec)
        if not models or not address:
            return
        self.store.keep(address, models, on_disk=not self._services.is_local(spec))
        self._facts.clear()
        if any(model.name == spec.default_model for model in models):
            self.store.forget_gone(address, spec.default_model)

    def refresh(self, spec: ProviderSpec) -> None:
        """Request the list of a service in the background, once a run, if there is no fresh one."""
        from ...api.errors import MarvinError

        address = self.address(spec)
        kept = self.store.read(address) if address else None
        if not address or address in self._asked or self._services.is_local(spec) or (kept and kept.is_fresh):
            return
        self._asked.add(address)
        try:
            endpoint = self._services.endpoint(spec, "-", "")
        except MarvinError:
            return
        from .asking import ask_in_background

        ask_in_background(self._config, endpoint, spec.factory, lambda models: self.keep(spec, models))

    def facts(self, spec: ProviderSpec, model: str) -> ModelFacts:
        """The facts about a model that are at hand. The first source counts: config.yaml, the list, our tables, its
        name.
        """
        address = self.address(spec)
        key = (spec.name, address, model)
        if key not in self._facts:
            self._facts[key] = self._gathered(spec, address, model)
        return self._facts[key]

    def _gathered(self, spec: ProviderSpec, address: str, model: str) -> ModelFacts:
        settings = self._config.endpoints.get(spec.name)
        own = settings is not None and bool(settings.windows or settings.context_window)
        configured = ModelFacts(window=spec.window(model) if own else None)
        given = ModelFacts(window=spec.window(model), longest=spec.output(model), ends=self._end(spec, model))
        facts = configured.or_else(self.store.facts(address, model)).or_else(given)
        if spec.in_process:
            return facts
        looked_up = ModelFacts(window=None if facts.window else self.store.window_in_table(f"{spec.name} {model}"))
        return facts.or_else(looked_up).or_else(facts_by_name(model))

    def _end(self, spec: ProviderSpec, model: str) -> str:
        """The end date of a model according to its service; empty for models on this machine."""
        if self._services.is_local(spec):
            return ""
        from .lifetimes import end_of

        return end_of(spec.name, model)

    def has_ended(self, spec: ProviderSpec, model: str) -> bool:
        """Whether the end date of a model, according to its service, is past."""
        from .lifetimes import has_ended

        return has_ended(self._end(spec, model))

    def look_up_window(self, spec: ProviderSpec, model: str) -> int | None:
        """Look up the window of a model in the price table, whose import takes time, else in its name."""
        from .price_table import table_facts

        window = table_facts(spec.name, self._services.base_url(spec), model, self._config.cache_folder).window
        if window is not None:
            self.store.keep_window_of_table(f"{spec.name} {model}", window)
        elif not self._services.is_local(spec):
            window = hosted_window(model)
        return window


def _on_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # where nobody imported it there is none
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def chat_models(models: Iterable[ServedModel]) -> list[str]:
    """The names of models that answer, in the order of the list; all names if none seems to answer."""
    names = [model.name for model in models]
    return [name for name in names if not re.search(_NO_CHAT, name)] or names


def is_listed(model: str, names: Iterable[str]) -> bool:
    """Whether a list contains this model, under its name or that of one of its versions."""
    return any(
        name == model or name in (f"{model}:latest", f"models/{model}") or re.sub(_DATED, "", name) == model
        for name in names
    )


def same_place(one: str, other: str) -> bool:
    """Whether two addresses have the same host and scheme."""
    if one == other:
        return bool(one)  # as nearly all are, and a start asks for each service
    try:
        parts = [urlsplit(url.strip()) for url in (one, other)]
    except ValueError:
        return False
    (scheme, netloc), found = [(part.scheme.lower(), part.netloc.lower()) for part in parts]
    return bool(netloc) and (scheme, netloc) == found
