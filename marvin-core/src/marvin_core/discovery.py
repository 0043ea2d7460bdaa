"""Finding and loading packs, one by one, so that a bad one cannot stop the next."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from . import hookspecs
from .arguments import unknown_name
from .errors import PluginError
from .hookcalls import call_hook, expect, items_of, plugin_manager
from .index import USER, Index, Pack
from .loading import load_module
from .providers.base import ProviderSpec
from .schema import describe
from .strangers import Hung, isolated
from .tools import Tool, ToolGroup, ToolSpec
from .ui.base import UISpec
from .userfiles import hooks_of, tools_of, user_packs
from .waits import Waits

GROUP = "marvin"
_OURS = "marvin-core"

_Brought: TypeAlias = "tuple[str, ToolSpec | ProviderSpec | UISpec]"


def discover(user_files: Path | None = None, limit: float = Waits().pack) -> Index:
    """Load every installed pack, then the user's own files, and write down what each brings.

    Args: as for `load_index`.
    """
    return _Discovery(limit).run([*_packs(), *(user_packs(user_files) if user_files else ())])


class _Discovery:
    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.manager = plugin_manager()
        self.packs: list[Pack] = []
        self.tools: dict[str, ToolSpec] = {}
        self.providers: dict[str, ProviderSpec] = {}
        self.uis: dict[str, UISpec] = {}
        self.owners: dict[str, str] = {}
        self.sources: list[str] = []

    def run(self, packs: Iterable[Pack]) -> Index:
        self.packs += [self._load(pack) for pack in packs]
        return Index(
            packs=tuple(self.packs),
            tools=tuple(self.tools.values()),
            providers=tuple(self.providers.values()),
            uis=tuple(self.uis.values()),
            owners=self.owners,
            sources=tuple(dict.fromkeys(self.sources)),
        )

    def _load(self, pack: Pack) -> Pack:
        try:
            loaded, brought = isolated(lambda: self._loaded(pack), self._limit)
        except (Exception, SystemExit) as error:  # whatever a stranger's module raises must stop only that module
            self._forget(pack)
            self._failed(error)
            stack = error.stack if isinstance(error, Hung) else "".join(traceback.format_exception(error))
            return pack.replace(problems=(f"{type(error).__name__}: {error}",), traceback=stack)
        # Only now, so that a pack that fails half-way leaves nothing behind.
        clashes = [name for name in loaded.cli if f"cli:{name}" in self.owners]
        if clashes:
            hooks = tuple(hook for hook in loaded.hooks if hook != "marvin_extend_cli")
            loaded = loaded.replace(hooks=hooks, cli=())
        self.owners.update((f"cli:{name}", pack.distribution) for name in loaded.cli)
        refused = [_taken("sub-command", name, pack.distribution, self.owners[f"cli:{name}"]) for name in clashes]
        refused += [problem for kind, spec in brought for problem in self._take(kind, spec, pack.distribution)]
        return loaded.replace(problems=tuple(refused))

    def _loaded(self, pack: Pack) -> tuple[Pack, list[_Brought]]:
        plugin = load_module(pack.module)
        self._source(plugin)
        if pack.distribution == USER:
            tools = [describe(tool, source=USER, module=pack.module, group="user") for tool in tools_of(plugin)]
            own_hooks = ("marvin_register_hooks",) if hooks_of(plugin) else ()
            return pack.replace(hooks=own_hooks), [("tool", spec) for spec in tools]
        self.manager.register(plugin, name=_name(pack))
        hooks = self._hooks(plugin)
        brought = [*self._brought(plugin, pack)]
        return pack.replace(hooks=hooks, cli=self._cli(plugin)), brought

    def _hooks(self, plugin: ModuleType) -> tuple[str, ...]:
        """The names of the hooks that a plugin implements; one that does not exist is an error, not silence."""
        callers = self.manager.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                known = [name for name in vars(hookspecs) if name.startswith("marvin_")]
                raise PluginError(unknown_name("hook", caller.name, known))
        return tuple(caller.name for caller in callers)

    def _forget(self, pack: Pack) -> None:
        plugin = self.manager.get_plugin(_name(pack))
        if plugin is not None:
            self.manager.unregister(plugin)

    def _brought(self, plugin: ModuleType, pack: Pack) -> Iterator[_Brought]:
        """What the pack registers."""
        for item in items_of(call_hook(self.manager, plugin, "marvin_register_tools"), object):
            yield from (("tool", spec) for spec in self._specs(item, plugin, pack))
        for provider in items_of(call_hook(self.manager, plugin, "marvin_register_providers"), ProviderSpec):
            yield "provider", provider
        for ui in items_of(call_hook(self.manager, plugin, "marvin_register_uis"), UISpec):
            yield "ui", ui

    def _take(self, kind: str, spec: Any, distribution: str) -> Iterator[str]:
        """Keep it, where its name is free; yields why not, where it is not."""
        owner = self.owners.get(f"{kind}:{spec.name}")
        if owner is not None:
            yield _taken(kind, spec.name, distribution, owner)
            return
        taken: dict[str, dict[str, Any]] = {"tool": self.tools, "provider": self.providers, "ui": self.uis}
        taken[kind][spec.name] = spec
        self.owners[f"{kind}:{spec.name}"] = distribution

    def _specs(self, item: object, plugin: ModuleType, pack: Pack) -> Iterable[ToolSpec]:
        if isinstance(item, Tool):
            return [describe(item, source=pack.distribution, module=plugin.__name__)]
        group = expect(item, ToolGroup)
        module = import_module(group.module)
        self._source(module)
        return [
            describe(_tool_of(module, name), source=pack.distribution, module=group.module, group=group.name)
            for name in group.tools
        ]

    def _cli(self, plugin: ModuleType) -> tuple[str, ...]:
        """The sub-commands that the pack adds, learnt by letting it extend an empty application."""
        if not hasattr(plugin, "marvin_extend_cli"):
            return ()
        import typer

        app = typer.Typer()
        app.callback()(lambda: None)
        call_hook(self.manager, plugin, "marvin_extend_cli", app=app)
        return tuple(getattr(typer.main.get_command(app), "commands", ()))

    def _source(self, module: ModuleType) -> None:
        if module.__file__:
            self._depends_on(module.__file__)

    def _failed(self, error: BaseException) -> None:
        """Depend on every file that had a part in a failure, so that mending one is noticed."""
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        hung = error.files if isinstance(error, Hung) else []
        for name in [*frames, *hung, getattr(error, "filename", None) or ""]:
            if os.path.isfile(name):
                self._depends_on(name)

    def _depends_on(self, file: str) -> None:
        # The folder as well: a file that comes or goes there changes what can be imported.
        self.sources += [file, os.path.dirname(file)]


def _taken(kind: str, name: str, distribution: str, owner: str) -> str:
    return f"{kind} {name} of {distribution} was refused: {owner} already brings one of that name."


def _name(pack: Pack) -> str:
    return f"{pack.distribution}:{pack.name}"


def _packs() -> list[Pack]:
    """The entry points of all distributions, not loaded yet: ours first, then by distribution and name."""
    found: dict[tuple[str, str], Pack] = {}
    for distribution in reversed(list(distributions(path=sys.path))):
        found.update({(pack.distribution, pack.name): pack for pack in _packs_of(distribution)})
    return [found[key] for key in sorted(found, key=lambda key: (key[0] != _OURS, key))]


def _packs_of(distribution: Distribution) -> list[Pack]:
    try:
        entries = [entry_point for entry_point in distribution.entry_points if entry_point.group == GROUP]
        if not entries:
            return []
        # Checked, as a distribution without metadata has no name on newer Pythons and raises on older ones.
        name, version = expect(distribution.metadata["Name"], str), expect(distribution.version, str)
        return [Pack(name=entry.name, distribution=name, version=version, module=entry.module) for entry in entries]
    except Exception:  # an installation that was left half-way; what is not ours says nothing about Marvin's packs
        return []


def _tool_of(module: ModuleType, name: str) -> Tool:
    found = getattr(module, name, None)
    if not isinstance(found, Tool):
        raise PluginError(f"{module.__name__} has no tool {name}: decorate an async function of that name with @tool")
    return found
