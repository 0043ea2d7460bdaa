"""Finding and loading packs, one by one, so that a bad one cannot stop the next."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions
from types import ModuleType
from typing import Any, TypeVar

from .errors import PluginError
from .hookcalls import call_hook, plugin_manager
from .index import Index, Pack
from .providers.base import ProviderSpec
from .schema import describe
from .tools import Tool, ToolGroup, ToolSpec
from .ui.base import UISpec

T = TypeVar("T")

GROUP = "marvin"
_OURS = "marvin-core"


def discover() -> Index:
    """Load every installed pack and write down what it brings."""
    return _Discovery().run()


class _Discovery:
    def __init__(self) -> None:
        self.manager = plugin_manager()
        self.packs: list[Pack] = []
        self.tools: dict[str, ToolSpec] = {}
        self.providers: dict[str, ProviderSpec] = {}
        self.uis: dict[str, UISpec] = {}
        self.owners: dict[str, str] = {}
        self.sources: list[str] = []

    def run(self) -> Index:
        for distribution, entry_point in _entry_points():
            self.packs.append(self._load(distribution, entry_point))
        return Index(
            packs=tuple(self.packs),
            tools=tuple(self.tools.values()),
            providers=tuple(self.providers.values()),
            uis=tuple(self.uis.values()),
            owners=self.owners,
            sources=tuple(dict.fromkeys(self.sources)),
        )

    def _load(self, distribution: Distribution, entry_point: EntryPoint) -> Pack:
        pack = Pack(
            name=entry_point.name,
            distribution=distribution.metadata["Name"],
            version=distribution.version,
            module=entry_point.module,
        )
        plugin: ModuleType | None = None
        try:
            plugin = import_module(entry_point.module)
            self._source(plugin)
            self.manager.register(plugin, name=f"{pack.distribution}:{pack.name}")
            hooks = tuple(caller.name for caller in self.manager.get_hookcallers(plugin) or ())
            problems = [*self._register(plugin, pack)]
            return pack.replace(hooks=hooks, cli=self._cli(plugin), problems=tuple(problems))
        except Exception as error:  # whatever a stranger's module raises must stop only that module
            if plugin is not None and self.manager.is_registered(plugin):
                self.manager.unregister(plugin)
            return pack.replace(problems=(f"{type(error).__name__}: {error}",), traceback=traceback.format_exc())

    def _register(self, plugin: ModuleType, pack: Pack) -> Iterator[str]:
        """Take what the pack registers; yields what had to be refused."""
        for item in call_hook(self.manager, plugin, "marvin_register_tools") or ():
            for spec in self._specs(item, plugin, pack):
                yield from self._take(self.tools, "tool", spec, spec.source)
        for provider in call_hook(self.manager, plugin, "marvin_register_providers") or ():
            yield from self._take(self.providers, "provider", _expect(provider, ProviderSpec), pack.distribution)
        for ui in call_hook(self.manager, plugin, "marvin_register_uis") or ():
            yield from self._take(self.uis, "ui", _expect(ui, UISpec), pack.distribution)

    def _take(self, taken: dict[str, Any], kind: str, spec: Any, distribution: str) -> Iterator[str]:
        owner = self.owners.get(f"{kind}:{spec.name}")
        if owner is not None:
            yield f"{kind} {spec.name} of {distribution} was refused: {owner} already brings one of that name."
            return
        taken[spec.name] = spec
        self.owners[f"{kind}:{spec.name}"] = distribution

    def _specs(self, item: object, plugin: ModuleType, pack: Pack) -> Iterable[ToolSpec]:
        if isinstance(item, Tool):
            return [describe(item, source=pack.distribution, module=plugin.__name__)]
        group = _expect(item, ToolGroup)
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
        call_hook(self.manager, plugin, "marvin_extend_cli", app=app)
        commands = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
        return tuple(filter(None, [*commands, *(group.name for group in app.registered_groups)]))

    def _source(self, module: ModuleType) -> None:
        if module.__file__:
            # The folder as well: a file that comes or goes there changes what can be imported.
            self.sources += [module.__file__, os.path.dirname(module.__file__)]


def _entry_points() -> list[tuple[Distribution, EntryPoint]]:
    """The entry points of all distributions: ours first, then by distribution and name."""
    found = {
        (distribution.metadata["Name"], entry_point.name): (distribution, entry_point)
        for distribution in reversed(list(distributions(path=sys.path)))
        for entry_point in distribution.entry_points
        if entry_point.group == GROUP
    }
    return [found[key] for key in sorted(found, key=lambda key: (key[0] != _OURS, key))]


def _expect(item: object, kind: type[T]) -> T:
    if not isinstance(item, kind):
        raise PluginError(f"registered {item!r} where a {kind.__name__} was expected")
    return item


def _tool_of(module: ModuleType, name: str) -> Tool:
    found = getattr(module, name, None)
    if not isinstance(found, Tool):
        raise PluginError(f"{module.__name__} has no tool {name}: decorate an async function of that name with @tool")
    return found
