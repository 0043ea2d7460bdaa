"""The tools, providers, hooks, commands and interfaces of the installed packs, behind one typed interface."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.config import Config
from ..api.errors import ConfigError, PluginError
from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import Command, UISpec
from ..api.tools import ToolSpec
from .index import load_index
from .model import USER, DeclaredSettings, Index, Owned, Pack, Selection, data_counts
from .names import Names

if TYPE_CHECKING:
    import pluggy
    import typer

    from ..api.hooks import Hook

T = TypeVar("T")

BUILT_IN = "core"

_WORDS = ("help", "exit", "quit")
"""Slash commands of the interfaces themselves."""


class Census(Record):
    """A pack of this run and what it registers, as far as known without loading it."""

    pack: Pack
    counts: Mapping[str, int]
    """The numbers of registered objects, by kind: tool, hook, ..."""
    notes: tuple[str, ...] = ()
    """The names that it lost because of the user's preference."""
    start: float = 0.0
    """The seconds that it adds to a start; 0 if no start loads it."""


class Plugins:
    """The packs of this run: all installed ones, or those in MARVIN_PACKS, without the disabled ones.

    `warn` is called with one line for each error in them; `report` calls it for those a start has to show.
    """

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        self._config = config
        self._warn = warn
        selection = Selection(chosen=config.packs, off=config.packs_off)
        theirs = config.project.tools if config.project is not None else None
        self._index: Index = load_index(
            config.cache_folder, config.config_folder, config.timeouts, selection, project_tools=theirs
        )
        self._manager: pluggy.PluginManager | None = None
        self.packs: tuple[Pack, ...] = self._index.packs
        self._failed: dict[str, Pack] = {pack.key: pack for pack in self.packs if pack.left_out}
        self._by_key = {pack.key: pack for pack in self.packs}
        self._hooked: set[str] = set()
        self._hook_owners: dict[int, tuple[Hook, str]] = {}
        self._took: dict[str, float] = {}
        self._told: set[str] = set()
        self._names = Names(self.packs, config.packs_prefer)
        self._tools = self._names.tools(self._index.tools)
        self._providers = self._winning("provider", self._index.providers)
        self._uis = self._winning("interface", self._index.uis)
        self._settings = self._winning("settings", self._index.settings)
        self._tool_owners = {spec.name: key for key, spec in self._tools}
        wanted = [(pack.key, name) for pack in self.packs for name in pack.cli]
        self._sub_commands = self._names.winners("sub-command", wanted)
        self._check_chosen()

    def _check_chosen(self) -> None:
        """Warn about packs in MARVIN_PACKS that are not installed."""
        there = [*self.packs, *self._index.others]
        chosen = sorted(self._config.packs or ())
        missing = [name for name in chosen if not any(pack.is_named((name,)) for pack in there)]
        if missing:
            names = ", ".join(pack.name for pack in there)
            self._warn(f"MARVIN_PACKS names {', '.join(missing)}, which is not installed. Installed: {names}.")

    def _winning(self, kind: str, brought: Sequence[Owned[Any]]) -> tuple[Owned[Any], ...]:
        owners = self._names.winners(kind, [(key, spec.name) for key, spec in brought])
        return tuple((key, spec) for key, spec in brought if owners[spec.name] == key)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the packs in use, in the index's order, by the names under which they are offered."""
        return tuple(spec for _, spec in self._tools)

    @property
    def lost_tools(self) -> Mapping[str, str]:
        """Tools of packs that could not be loaded: by their name, the pack and the reason."""
        lost = [pack for pack in self._failed.values() if pack.tools]
        if not lost:
            return {}
        from .left_out import why_left_out

        return {name: why_left_out(pack) for pack in lost for name in pack.tools if name not in self._tool_owners}

    @property
    def foreign_tools(self) -> frozenset[str]:
        """The names of third-party tools: neither Marvin's nor the user's own."""
        known = {pack.key for pack in self.packs if pack.own or pack.distribution == USER}
        return frozenset(spec.name for key, spec in self._tools if key not in known)

    @property
    def providers(self) -> tuple[ProviderSpec, ...]:
        """The model providers of the packs in use, built-in ones first."""
        return tuple(spec for _, spec in self._providers)

    @property
    def uis(self) -> tuple[UISpec, ...]:
        """The interfaces of the packs in use."""
        return tuple(spec for _, spec in self._uis)

    @property
    def settings(self) -> tuple[DeclaredSettings, ...]:
        """The declared settings of the packs in use."""
        return tuple(declared for _, declared in self._settings)

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of all installed packs, including those not in use."""
        return tuple(pack.name for pack in (*self.packs, *self._index.others))

    @property
    def secrets(self) -> Iterator[str]:
        """The secrets that installed packs declare, including packs that are not in use or not loaded."""
        yield from self._index.secrets
        for _, spec in self._index.tools:
            yield from spec.secrets
        for _, provider in self._index.providers:
            yield from (*provider.key_variables, *provider.home_key_variables, *provider.handed_on)
        for _, declared in self._index.settings:
            yield from declared.secrets

    @property
    def data_folders(self) -> Mapping[str, str]:
        """The folders of the packs in use, by name: data files there are read without loading the packs."""
        return {pack.name: pack.folder for pack in self.packs if pack.folder and not pack.left_out}

    def declared(self, pack: Pack) -> DeclaredSettings | None:
        """The declared settings of a pack, if any."""
        return next((declared for key, declared in self._settings if key == pack.key), None)

    def pack_of_tool(self, spec: ToolSpec) -> Pack:
        """The pack of a tool."""
        found = self._by_key.get(self._tool_owners.get(spec.name, ""))
        return found or Pack(name=spec.source, distribution=spec.source, version="", module=spec.module)

    def pack_of_provider(self, name: str) -> Pack | None:
        """The pack of a provider; None for one of the core or of config.yaml."""
        found = next((self._by_key[key] for key, spec in self._providers if spec.name == name), None)
        return found if found is not None and found.name != BUILT_IN else None

    def pack_of_hook(self, hook: Hook) -> Pack:
        """The pack of a hook; the core for all others."""
        _, key = self._hook_owners.get(id(hook), (hook, ""))
        return self._by_key.get(key) or self.pack_named(BUILT_IN)

    def pack_named(self, name: str) -> Pack:
        """The first pack of this name.

        Raises:
            ConfigError: no such pack is in use; the text gives similar names.
        """
        found = next((pack for pack in self.packs if pack.name == name), None)
        if found is None:
            from ..util.text import unknown_name

            raise ConfigError(unknown_name("pack", name, [pack.name for pack in self.packs]))
        return found

    @property
    def switched_off(self) -> tuple[Pack, ...]:
        """The installed packs that config.yaml disables."""
        return tuple(pack for pack in self._index.others if pack.is_named(self._config.packs_off))

    def hooks(self, *, attended: bool) -> tuple[Hook, ...]:
        """The `Hook` objects of the packs that implement `marvin_register_hooks`; only those are imported.

        If a pack that may have some could not be loaded, a hook replaces it for which each call needs approval.

        Args:
            attended: whether a user is there to answer questions.
        """
        found = [hook for _, hook in self._hooks(attended=attended)]
        missing = [pack for pack in self._failed.values() if pack.guards]
        if missing:
            from .left_out import Missing

            found.append(Missing(missing, attended))
        return tuple(found)

    def _hooks(self, *, attended: bool = True) -> list[Owned[Hook]]:
        def checked(answer: Any) -> list[Hook]:
            from .hook_calls import hooks_in  # it imports pluggy, which a run without such packs does not need

            return hooks_in(answer)

        # Importing a pack whose hooks are only for chats would delay every non-interactive run.
        unused = frozenset[str]() if attended else frozenset(pack.key for pack in self.packs if pack.chats_only)
        found = self._collect("marvin_register_hooks", checked, unused)
        self._hooked.update(pack.key for pack in self.packs if pack.key not in self._failed)
        self._hook_owners.update((id(hook), (hook, key)) for key, hook in found)
        return found

    def commands(self) -> tuple[Command, ...]:
        """The slash commands of all packs, then the user's own; one whose name is taken gets its pack's as a prefix."""
        return self._named(self._commands())

    def _commands(self) -> list[Owned[Command]]:
        def checked(answer: Any) -> list[Command]:
            from .hook_calls import items_of

            return items_of(answer, Command)

        return self._collect("marvin_register_commands", checked)

    def _named(self, commands: Sequence[Owned[Command]]) -> tuple[Command, ...]:
        from .user_files import project_commands, user_commands

        own = {pack.key for pack in self.packs if pack.own}
        words = {*_WORDS, *(command.name for key, command in commands if key in own)}
        words.update(spec.name for key, spec in self._tools if key in own)
        offered = {command.name: command for command in self._names.commands(commands, words)}
        project = self._config.project
        for whose, found in (
            ("Your commands", user_commands(self._config.config_folder)),
            (".marvin/commands", project_commands(project.commands if project is not None else {})),
        ):
            try:
                for command in found:
                    if offered.setdefault(command.name, command) is not command:
                        self._warn(f"{whose}/{command.name}.md is not used: there is another /{command.name}.")
            except ConfigError as error:
                self._warn(str(error))
        return tuple(offered.values())

    def report(self, *, attended: bool) -> None:
        """Warn once about each pack that is left out, and about each name that several packs use."""
        for pack in self._failed.values():
            if pack.key not in self._told:
                from .left_out import line_about

                self._told.add(pack.key)
                there = (*self.packs, *self._index.others)
                self._warn(line_about(pack, attended, self._config.packs_off, there))
        for line in self._names.contests():
            if line not in self._told:
                self._told.add(line)
                self._warn(line)

    def census(self) -> tuple[Census, ...]:
        """The packs with their registered objects and errors, including errors that only a session would find."""
        hooks, commands = self._hooks(), self._commands()
        self._named(commands)
        brought = [("tool", key) for key, _ in self._tools]
        brought += [("hook", key) for key, _ in hooks]
        brought += [("provider", key) for key, _ in self._providers]
        brought += [("interface", key) for key, _ in self._uis]
        brought += [("command", key) for key, _ in commands]
        brought += [("sub-command", key) for key in self._sub_commands.values()]
        counts: dict[str, dict[str, int]] = {pack.key: {} for pack in self.packs}
        for kind, key in brought:
            counts[key][kind] = counts[key].get(kind, 0) + 1
        for pack in self.packs:
            counts[pack.key].update(data_counts(pack) if pack.key not in self._failed else {})
        return tuple(self._counted(pack, counts[pack.key]) for pack in self.packs)

    def _counted(self, pack: Pack, counts: Mapping[str, int]) -> Census:
        failed = self._failed.get(pack.key, pack)
        return Census(
            pack=failed.replace(problems=(*failed.problems, *self._names.refused.get(pack.key, ()))),
            counts=counts,
            notes=tuple(self._names.settled.get(pack.key, ())),
            start=self._took.get(pack.key, 0.0) if "marvin_register_hooks" in pack.hooks else 0.0,
        )

    def cli_names(self) -> frozenset[str]:
        """The sub-commands that packs add."""
        return frozenset(self._sub_commands)

    def extend_cli(self, app: typer.Typer, name: str) -> Pack:
        """Add the sub-command of its pack to an application; no other pack is loaded. Returns the pack."""
        import typer

        from .sub_commands import take_over

        owner = self._sub_commands[name]
        added = typer.Typer()
        faults: dict[str, str] = {}
        for _ in self._calls("marvin_extend_cli", lambda answer: answer, only=owner, app=added):
            faults = take_over(added, [name for name, key in self._sub_commands.items() if key == owner], app)
        if owner in self._failed:
            from .left_out import why_left_out

            raise PluginError(f"There is no sub-command {name}: {why_left_out(self._failed[owner])}.")
        pack = self._by_key[owner]
        if name in faults:
            raise PluginError(f"The sub-command {name} of {pack.distribution} cannot be used: {faults[name]}")
        return pack

    def _collect(
        self, hook: str, use: Callable[[Any], list[T]], without: frozenset[str] = frozenset()
    ) -> list[Owned[T]]:
        return [(key, item) for key, items in self._calls(hook, use, without=without) for item in items]

    def _calls(
        self,
        hook: str,
        use: Callable[[Any], T],
        only: str = "",
        *,
        without: frozenset[str] = frozenset(),
        **arguments: Any,
    ) -> Iterator[Owned[T]]:
        """The result of `use` for each pack's registration, by key; with `only`, for that pack alone."""
        packs = [pack for pack in self.packs if hook in pack.hooks and (not only or pack.key == only)]
        packs = [pack for pack in packs if pack.key not in self._failed and pack.key not in without]
        if not packs:
            return
        from .isolation import isolated, with_problem

        works = [partial(self._used, pack, hook, use, arguments) for pack in packs]
        for pack, outcome in zip(packs, isolated(works, self._config.timeouts.pack), strict=True):
            if isinstance(outcome, BaseException):  # third-party code: skip this pack alone, and name it
                guards = "marvin_register_hooks" in pack.hooks and pack.key not in self._hooked
                self._failed[pack.key] = with_problem(pack, outcome).replace(guards=guards)
            else:
                yield pack.key, outcome

    def _used(self, pack: Pack, hook: str, use: Callable[[Any], T], arguments: Mapping[str, Any]) -> T:
        begun = perf_counter()
        try:
            return use(self._answer(pack, hook, arguments))
        finally:
            took = perf_counter() - begun
            self._took[pack.key] = self._took.get(pack.key, 0.0) + took
            if took > self._config.timeouts.stall:
                self._warn(f"the pack {pack.name} of {pack.distribution} delayed this start by {took:.1f} s ({hook})")

    def _answer(self, pack: Pack, hook: str, arguments: Mapping[str, Any]) -> Any:
        """The result of a hook of one pack."""
        if pack.is_file:
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
