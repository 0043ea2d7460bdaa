"""What the installed packs bring to this run, behind one typed door."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.config import Config
from ..api.errors import ConfigError
from ..api.providers import ProviderSpec
from ..api.session import Command
from ..api.tools import ToolSpec
from ..api.ui import UISpec
from .index import load_index
from .model import USER, DeclaredSettings, Index, Pack

if TYPE_CHECKING:
    import pluggy
    import typer

    from ..api.hooks import Hook

T = TypeVar("T")

BUILT_IN = "core"


class Plugins:
    """The packs that this run uses: all that are installed, or those that MARVIN_PACKS names.

    `warn` is told, in one line, of each pack that fails while it is used.
    """

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        self._config = config
        self._warn = warn
        self._index: Index = load_index(config.cache_folder, config.config_folder, config.timeouts.pack)
        self._manager: pluggy.PluginManager | None = None
        self.packs: tuple[Pack, ...] = tuple(pack for pack in self._index.packs if self._is_used(pack))
        missing = (config.packs or frozenset[str]()) - {pack.name for pack in self._index.packs}
        if missing:
            there = ", ".join(pack.name for pack in self._index.packs)
            warn(f"MARVIN_PACKS names {', '.join(sorted(missing))}, which is not installed. There are: {there}.")
        self._failed: dict[str, Pack] = {}
        self._by_key = {pack.key: pack for pack in self.packs}
        self._hooks: dict[int, tuple[Hook, Pack]] = {}

    def _is_used(self, pack: Pack) -> bool:
        chosen = self._config.packs
        return chosen is None or pack.name in chosen or pack.name == BUILT_IN or pack.distribution == USER

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the packs in use, in the index's order."""
        return tuple(spec for spec in self._index.tools if self._owned("tool", spec.name))

    @property
    def providers(self) -> tuple[ProviderSpec, ...]:
        """The model services of the packs in use, built-in ones first."""
        return tuple(spec for spec in self._index.providers if self._owned("provider", spec.name))

    @property
    def uis(self) -> tuple[UISpec, ...]:
        """The interfaces of the packs in use."""
        return tuple(spec for spec in self._index.uis if self._owned("ui", spec.name))

    @property
    def settings(self) -> tuple[DeclaredSettings, ...]:
        """What the packs in use are configured with."""
        return tuple(declared for declared in self._index.settings if self._owned("settings", declared.name))

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of all packs that are installed, those among them that this run leaves out."""
        return tuple(pack.name for pack in self._index.packs)

    def declared(self, pack: Pack) -> DeclaredSettings | None:
        """What a pack is configured with, if anything."""
        owner = self._owner("settings", pack.name)
        found = (declared for declared in self._index.settings if declared.name == pack.name)
        return next(found, None) if owner is not None and owner.key == pack.key else None

    def pack_of_tool(self, spec: ToolSpec) -> Pack:
        """The pack that brings a tool."""
        found = self._owner("tool", spec.name)
        return found or Pack(name=spec.source, distribution=spec.source, version="", module=spec.module)

    def pack_of_provider(self, name: str) -> Pack | None:
        """The pack that brings a provider; None where that is the core, or config.yaml."""
        found = self._owner("provider", name)
        return found if found is not None and found.name != BUILT_IN else None

    def pack_of_hook(self, hook: Hook) -> Pack:
        """The pack that registered a hook; the core where none did."""
        _, pack = self._hooks.get(id(hook), (hook, None))
        return pack or self.pack_named(BUILT_IN)

    def pack_named(self, name: str) -> Pack:
        """The first pack of this name.

        Raises:
            ConfigError: where none is in use; the text gives the nearest names.
        """
        found = next((pack for pack in self.packs if pack.name == name), None)
        if found is None:
            from ..util.text import unknown_name

            raise ConfigError(unknown_name("pack", name, [pack.name for pack in self.packs]))
        return found

    def _owned(self, kind: str, name: str) -> bool:
        return self._owner(kind, name) is not None

    def _owner(self, kind: str, name: str) -> Pack | None:
        return self._by_key.get(self._index.owners.get(f"{kind}:{name}", ""))

    def tools_of(self, pack: Pack) -> tuple[ToolSpec, ...]:
        """The tools that one pack brings."""
        return tuple(spec for spec in self._index.tools if self._index.owners[f"tool:{spec.name}"] == pack.key)

    def hooks(self) -> tuple[Hook, ...]:
        """The `Hook` objects of the packs that implement `marvin_register_hooks`; only those are imported."""
        from ..api.hooks import Hook

        found = list(self._collect("marvin_register_hooks", Hook))
        self._hooks.update((id(hook), (hook, pack)) for pack, hook in found)
        return tuple(hook for _, hook in found)

    def commands(self) -> tuple[Command, ...]:
        """The slash commands of all packs; of two with one name the first stays."""
        from .user_files import user_commands

        found: dict[str, Command] = {}
        for _, command in self._collect("marvin_register_commands", Command):
            found.setdefault(command.name, command)
        try:
            for command in user_commands(self._config.config_folder):
                found.setdefault(command.name, command)
        except ConfigError as error:
            self._warn(str(error))
        return tuple(found.values())

    def checked(self) -> tuple[Pack, ...]:
        """The packs, with what goes wrong also where a session asks them for their hooks and commands."""
        self.hooks()
        self.commands()
        return tuple(self._failed.get(pack.key, pack) for pack in self.packs)

    def cli_names(self) -> frozenset[str]:
        """The sub-commands that packs add."""
        return frozenset(name for pack in self.packs for name in pack.cli)

    def extend_cli(self, app: typer.Typer, name: str) -> Pack | None:
        """Let the pack that brings a sub-command add it; returns that pack. No other one is imported for it."""
        pack = self._owner("cli", name)
        if pack is None:
            return None
        for _ in self._calls("marvin_extend_cli", lambda answer: answer, [pack], app=app):
            pass
        return pack

    def _collect(self, hook: str, kind: type[T]) -> list[tuple[Pack, T]]:
        def checked(answer: Any) -> list[T]:
            from .hook_calls import items_of  # it brings pluggy, which a run without such packs does without

            return items_of(answer, kind)

        return [(pack, item) for pack, items in self._calls(hook, checked) for item in items]

    def _calls(
        self, hook: str, use: Callable[[Any], T], of: Sequence[Pack] | None = None, **arguments: Any
    ) -> Iterator[tuple[Pack, T]]:
        """What `use` makes of the answer of each pack; of all packs in use, where none are named."""
        packs = [pack for pack in (self.packs if of is None else of) if hook in pack.hooks]
        if not packs:
            return
        from .isolation import isolated, with_problem

        works = [partial(self._used, pack, hook, use, arguments) for pack in packs]
        for pack, outcome in zip(packs, isolated(works, self._config.timeouts.pack), strict=True):
            if isinstance(outcome, BaseException):  # a stranger's code: it is skipped alone, and named
                failed = self._failed[pack.key] = with_problem(pack, outcome)
                self._warn(f"pack {pack.name} of {pack.distribution} was skipped: {failed.problems[0]}")
            else:
                yield pack, outcome

    def _used(self, pack: Pack, hook: str, use: Callable[[Any], T], arguments: Mapping[str, Any]) -> T:
        begun = time.monotonic()
        used = use(self._answer(pack, hook, arguments))
        took = time.monotonic() - begun
        if took > self._config.timeouts.stall:
            self._warn(f"the pack {pack.name} of {pack.distribution} held up this start by {took:.1f} s ({hook})")
        return used

    def _answer(self, pack: Pack, hook: str, arguments: Mapping[str, Any]) -> Any:
        """What one pack returns for one hook."""
        if pack.distribution == USER:
            from ..util.imports import load_module
            from .user_files import hooks_of

            return hooks_of(load_module(pack.module))
        from .hook_calls import call_hook

        plugin = self._registered(pack)
        if self._config.trace_hooks:
            print(f"marvin: {pack.distribution} {hook}", file=sys.stderr)
        return call_hook(self._loaded_manager(), plugin, hook, **arguments)

    def _registered(self, pack: Pack) -> object:
        from importlib import import_module

        manager = self._loaded_manager()
        plugin = manager.get_plugin(pack.key)
        if plugin is None:
            plugin = import_module(pack.module)
            manager.register(plugin, name=pack.key)
            if "marvin_configure" in pack.hooks:
                from .hook_calls import call_hook

                try:
                    call_hook(manager, plugin, "marvin_configure", config=self._config)
                except BaseException:
                    manager.unregister(plugin)
                    raise
        return plugin

    def _loaded_manager(self) -> pluggy.PluginManager:
        if self._manager is None:
            from .hook_calls import plugin_manager

            self._manager = plugin_manager()
        return self._manager
