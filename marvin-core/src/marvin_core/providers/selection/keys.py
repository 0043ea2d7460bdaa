"""The keys of model services: validated with a request that costs nothing, stored, and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...api.errors import AuthFailed, ConfigError, ProviderError, UsageError
from ...api.providers import ProviderSpec, Secret
from ...api.ui import UI, AsksSecrets
from ...config.program import command_name
from ...config.secrets import Secrets
from ...util.text import counted
from .catalog import Catalog, how_to_use

if TYPE_CHECKING:
    from ...api.models import KeyPlace
    from ...config.stored.keys import StoredKeys
    from .models import Models


class ServiceKeys:
    """The `KeyControl` of a run. `ui` asks the user, if a user is present."""

    def __init__(self, catalog: Catalog, secrets: Secrets, models: Models, ui: UI | None = None) -> None:
        self._catalog = catalog
        self._secrets = secrets
        self._models = models
        self._ui = ui

    def services(self) -> Sequence[str]:
        """The services that take a key."""
        return [name for name, spec in self._catalog.known.items() if self._catalog.key_variable(spec)]

    def variable(self, service: str) -> str:
        """The variable for the key of a service.

        Raises:
            UsageError: there is no such service, or it takes no key; the text says what to do instead.
        """
        spec = self._catalog.spec(service, "", by_flag=True)
        found = self._catalog.key_variable(spec)
        if not found:
            way = how_to_use(spec)
            what = f"{way[:1].upper()}{way[1:]}." if way else f"It needs no key: use --provider {service}."
            raise UsageError(f"{service} has no key. {what}")
        return found

    def has_login(self, service: str) -> bool:
        """Whether a service has accounts instead of keys."""
        spec = self._catalog.known.get(service)
        return spec is not None and spec.login

    async def try_out(self, service: str, key: Secret) -> str:
        """Use a key from now on; returns the result of a request for the service's models.

        Raises:
            UsageError: as `variable`, and if the text cannot be a key.
            AuthFailed: the service rejects the key; the previous key is restored, as after a cancellation.
        """
        variable, value = self.variable(service), key.reveal().strip()
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise UsageError(
                "That is not a key: a key has only letters, digits and signs, and no spaces. Copy it again."
            )
        before = self._secrets.given(variable)
        self._use(variable, Secret(value))
        try:
            served = await self._models.served(service)
        except AuthFailed as error:
            self._use(variable, before)
            raise AuthFailed(
                f"{service} does not accept this key, so it was not stored: {error} Copy it again.", provider=service
            ) from None
        except ProviderError as error:
            return f"It could not be tested: {error}"
        except BaseException:  # who cancels it does not want the key
            self._use(variable, before)
            raise
        return f"{service} answers" + (f", with {counted(len(served), 'model')}." if served else ".")

    async def read(self, question: str) -> str | None:
        """The text that the user types, not shown; None if the interface cannot read it that way."""
        asks: object = self._ui
        return await asks.ask_secret(question) if isinstance(asks, AsksSecrets) else None

    async def place(self) -> KeyPlace:
        """Where the user wants to store a key, if there is a choice."""
        from ...util.threads import in_thread

        if self._ui is None:
            return "file"
        problem = await in_thread(self.keyring_problem)
        if problem:
            return "file"
        asked = "Where should the key be stored: in this system's keyring, or in a file that only you can read?"
        return "keyring" if await self._ui.ask(asked, ("keyring", "file")) == "keyring" else "file"

    def keyring_problem(self) -> str:
        """Why keys cannot be stored in the system's keyring; empty if they can. Blocks."""
        return self._stored.keyring_problem()

    def keep(self, service: str, key: Secret, place: KeyPlace) -> str:
        """Store a key for later runs; returns the message for the user. Blocks.

        Raises:
            ConfigError, MarvinError, OSError: the key cannot be stored.
        """
        variable = self.variable(service)
        self._stored.keep(variable, key.reveal().strip(), place)
        told = f"The key of {service} is stored in {self._stored.place(variable)}."
        if self._secrets.in_environment(variable):
            told += f" The variable {variable} is set and takes precedence at the next start: unset it."
        return told

    def forget(self, service: str) -> str:
        """Delete the stored key of a service; returns the message for the user. Blocks, raises like `keep`."""
        variable = self.variable(service)
        place, spec = self._stored.place(variable), self._catalog.known[service]
        if not self._stored.remove(variable):
            told = f"Marvin has no stored key of {service}."
        else:
            told = f"The key of {service} was removed from {place}."
            self._use(variable, None)
        if self._secrets.in_environment(variable):
            return f"{told} The variable {variable} is still set."
        if self._has_key_file(spec):
            return f"{told} The file ~/{spec.key_file} still contains one."
        return told

    def _has_key_file(self, spec: ProviderSpec) -> bool:
        return bool(spec.key_file and self._secrets.get(self._catalog.key_variable(spec), spec.key_file))

    def _use(self, variable: str, key: Secret | None) -> None:
        self._secrets.use_key(variable, key)
        self._models.renew()

    @property
    def _stored(self) -> StoredKeys:
        if self._secrets.stored is None:
            raise ConfigError(f"Keys cannot be stored in this run. Use `{command_name()} login` in a shell.")
        return self._secrets.stored
