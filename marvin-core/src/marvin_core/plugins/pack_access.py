"""The settings, secrets and folders of a pack, for its own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..api.config import Config
from ..api.errors import ConfigError
from ..config.secrets import SecretAccess, Secrets
from ..util.state_files import make_private_folder
from .model import DeclaredSettings, Pack

if TYPE_CHECKING:
    from ..api.hooks import Hook
    from ..api.settings import Settings
    from ..api.tools import ToolSpec

S = TypeVar("S", bound="Settings")

_LONGEST_FOLDER = 100
_PACKS = "packs"


class PackOwners(Protocol):
    """Finds the pack of an object."""

    def pack_of_tool(self, spec: ToolSpec) -> Pack:
        """The pack of a tool."""
        ...

    def pack_of_hook(self, hook: Hook) -> Pack:
        """The pack of a hook."""
        ...

    def pack_of_provider(self, name: str) -> Pack | None:
        """The pack of a provider; None for one of the core or of config.yaml."""
        ...

    def pack_named(self, name: str) -> Pack:
        """The pack of this name. Raises `ConfigError` if none is in use."""
        ...

    def declared(self, pack: Pack) -> DeclaredSettings | None:
        """The declared settings of a pack, if any."""
        ...


class Folders:
    """The `PackFolders` of a pack; `own` is its name in each of them."""

    def __init__(self, config: Config, profile: Callable[[], Path], own: str) -> None:
        self._config = config
        self._profile = profile
        self._own = own

    @property
    def data(self) -> Path:
        """For data that must not be lost."""
        return self._made(self._config.data_folder)

    @property
    def cache(self) -> Path:
        """For data that can be computed again."""
        return self._made(self._config.cache_folder)

    @property
    def state(self) -> Path:
        """For data that outlives a run and matters on this machine only."""
        return self._made(self._config.state_folder)

    @property
    def profile(self) -> Path:
        """For data that belongs to the user."""
        return self._made(self._profile())

    def there(self) -> Mapping[str, Path]:
        """The existing folders by kind; none is created."""
        roots = {"data": self._config.data_folder, "cache": self._config.cache_folder}
        roots |= {"state": self._config.state_folder, "profile": self._profile()}
        folders = {what: root / _PACKS / self._own for what, root in roots.items()}
        return {what: folder for what, folder in folders.items() if folder.is_dir()}

    def _made(self, root: Path) -> Path:
        folder = root / _PACKS / self._own
        try:
            make_private_folder(folder)
        except OSError as error:
            why = f"{error.strerror}. Make {error.filename or folder} a folder that you own"
            raise ConfigError(f"The folder {folder} cannot be created: {why}.") from error
        return folder


class PackAccess(SecretAccess):
    """The `PackContext` of one pack."""

    def __init__(
        self, pack: Pack, declared: DeclaredSettings | None, config: Config, secrets: Secrets, folders: Folders
    ) -> None:
        self.name = pack.name
        self.distribution = pack.distribution
        self.folders = folders
        self.timeouts = config.timeouts
        self._declared = declared
        self._config = config
        self._secrets = secrets

    def given(self) -> Mapping[str, Any]:
        """The values that config.yaml and variables set."""
        if self._declared is None:
            return {}
        from .pack_settings import PackSection

        section = self._config.pack_sections.get(self.name, {})
        return PackSection(self._declared, section, self._secrets, self._path).values

    @property
    def _path(self) -> Path:
        return self._config.config_folder / "config.yaml"

    def settings(self, model: type[S]) -> S:
        """The settings. Raises `ConfigError` if they are not declared, and the errors of `PackSection.checked`."""
        if self._declared is None or not self._declared.model:
            raise ConfigError(
                f"The pack {self.name} asked for {model.__name__}, but declares no settings. Return "
                "PackSettings(model=...) from marvin_register_settings."
            )
        from .pack_settings import PackSection

        section = self._config.pack_sections.get(self.name, {})
        found = PackSection(self._declared, section, self._secrets, self._path).checked()
        if not isinstance(found, model):
            raise ConfigError(
                f"The pack {self.name} asked for {model.__name__}, but its settings are declared as "
                f"{self._declared.model}. Ask for that class."
            )
        return found

    def _secret(self, name: str, default: Any) -> Any:
        declared = self.secrets
        if name not in declared:
            raise ConfigError(
                f"The pack {self.name} asked for {name}, which it does not declare. Add it to "
                "PackSettings(secrets={...}) in marvin_register_settings."
            )
        return self._secrets.value(name, declared[name], default)

    @property
    def secrets(self) -> Mapping[str, str]:
        """The declared secrets: variables, and their meaning."""
        return self._declared.secrets if self._declared is not None else {}


class Packs:
    """Finds the packs of a run by their registered objects.

    Args:
        profile: returns the folder of the active profile.
    """

    def __init__(self, owners: PackOwners, config: Config, secrets: Secrets, profile: Callable[[], Path]) -> None:
        self._owners = owners
        self._config = config
        self._secrets = secrets
        self._profile = profile

    def of_tool(self, spec: ToolSpec) -> PackAccess:
        """The pack of a tool."""
        return self.of(self._owners.pack_of_tool(spec))

    def of_hook(self, hook: Hook) -> PackAccess:
        """The pack of a hook."""
        return self.of(self._owners.pack_of_hook(hook))

    def of_provider(self, name: str) -> str:
        """The name of the pack of a provider; empty for one of the core or of config.yaml."""
        pack = self._owners.pack_of_provider(name)
        return "" if pack is None else pack.name

    def named(self, name: str) -> PackAccess:
        """The pack of this name. Raises `ConfigError` if none is in use."""
        return self.of(self._owners.pack_named(name))

    def of(self, pack: Pack) -> PackAccess:
        """The `PackContext` of a pack."""
        folders = Folders(self._config, self._profile, folder_name(pack, self._owners))
        return PackAccess(pack, self._owners.declared(pack), self._config, self._secrets, folders)


def folder_name(pack: Pack, owners: PackOwners) -> str:
    """The name of a pack's folders: its own, with that of its distribution if another pack has the same name."""
    try:
        alone = owners.pack_named(pack.name).key == pack.key
    except ConfigError:  # the pack is not in use, for instance in a test
        alone = True
    name = pack.name if alone else f"{pack.name}@{pack.distribution}"
    plain = "".join(c if c.isalnum() or c in "-_.@" else "_" for c in name)[:_LONGEST_FOLDER]
    return f"_{plain[1:]}" if plain.startswith(".") or not plain else plain
