"""Finding and loading packs, one by one, so that a bad one cannot stop the next."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.metadata import Distribution, distributions
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_type_hints

from ..api import hookspecs
from ..api.errors import PluginError
from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..api.tools import Tool, ToolGroup, ToolSpec
from ..api.ui import UISpec
from ..tools.routing.phrases import with_phrases
from ..tools.schema import describe, validator
from ..util.imports import load_module
from ..util.text import unknown_name
from .hook_calls import call_hook, expect, items_of, plugin_manager
from .isolation import Hung, isolated, with_problem
from .model import USER, DeclaredSettings, Index, Pack
from .user_files import hooks_of, tools_of, user_packs

if TYPE_CHECKING:
    from pydantic import TypeAdapter

GROUP = "marvin"
_OURS = "marvin-core"
_OWN_PACKAGE = __name__.partition(".")[0]
_PHRASES = "phrases.toml"

_Brought: TypeAlias = "tuple[str, ToolSpec | ProviderSpec | UISpec | DeclaredSettings]"
S = TypeVar("S", bound=Record)
_Loaded: TypeAlias = "tuple[Pack, list[_Brought]]"


def discover(user_files: Path | None = None, limit: float = Timeouts().pack) -> Index:
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
        self.settings: dict[str, DeclaredSettings] = {}
        self.owners: dict[str, str] = {}
        self.sources: list[str] = []

    def run(self, packs: Sequence[Pack]) -> Index:
        outcomes = isolated([partial(self._loaded, pack) for pack in packs], self._limit)
        self.packs += [self._taken(pack, outcome) for pack, outcome in zip(packs, outcomes, strict=True)]
        return Index(
            packs=tuple(self.packs),
            tools=tuple(self.tools.values()),
            providers=tuple(self.providers.values()),
            uis=tuple(self.uis.values()),
            settings=tuple(self.settings.values()),
            owners=self.owners,
            sources=tuple(dict.fromkeys(self.sources)),
        )

    def _taken(self, pack: Pack, outcome: _Loaded | BaseException) -> Pack:
        """The pack with what it brings, taken over only now: one that fails half-way leaves nothing behind."""
        if isinstance(outcome, BaseException):  # whatever a stranger's module raises must stop only that module
            self._failed(outcome)
            return with_problem(pack, outcome)
        loaded, brought = outcome
        clashes = [name for name in loaded.cli if f"cli:{name}" in self.owners]
        if clashes:
            hooks = tuple(hook for hook in loaded.hooks if hook != "marvin_extend_cli")
            loaded = loaded.replace(hooks=hooks, cli=())
        self.owners.update((f"cli:{name}", pack.key) for name in loaded.cli)
        refused = [_refusal("sub-command", name, pack, self.owners[f"cli:{name}"]) for name in clashes]
        refused += [problem for kind, spec in brought for problem in self._take(kind, spec, pack)]
        return loaded.replace(problems=(*loaded.problems, *refused))

    def _loaded(self, pack: Pack) -> _Loaded:
        plugin = load_module(pack.module)
        self._source(plugin)
        if pack.distribution == USER:
            tools = [describe(tool, source=USER, module=pack.module, group="user") for tool in tools_of(plugin)]
            own_hooks = ("marvin_register_hooks",) if hooks_of(plugin) else ()
            return pack.replace(hooks=own_hooks), [("tool", _sound(spec)) for spec in tools]
        self.manager.register(plugin, name=pack.key)
        hooks = self._hooks(plugin)
        tools, problems = self._tools(plugin, pack)
        brought: list[_Brought] = [("tool", _sound(spec)) for spec in tools]
        brought += [(kind, _sound(spec)) for kind, spec in self._brought(plugin, pack)]
        brought += [("settings", declared) for declared in self._settings(plugin, pack)]
        cli = self._cli(plugin)
        self._helpers(plugin)
        return pack.replace(hooks=hooks, cli=cli, problems=tuple(problems)), brought

    def _hooks(self, plugin: ModuleType) -> tuple[str, ...]:
        """The names of the hooks that a plugin implements; one that does not exist is an error, not silence."""
        callers = self.manager.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                known = [name for name in vars(hookspecs) if name.startswith("marvin_")]
                raise PluginError(unknown_name("hook", caller.name, known))
        return tuple(caller.name for caller in callers)

    def _tools(self, plugin: ModuleType, pack: Pack) -> tuple[list[ToolSpec], list[str]]:
        """The tools that the pack registers, with their phrases, and what is wrong with those."""
        items = items_of(call_hook(self.manager, plugin, "marvin_register_tools"), object)
        items = [_found_from(plugin, item) if isinstance(item, ToolGroup) else item for item in items]
        specs = [spec for item in items for spec in self._specs(item, plugin, pack)]
        files = [self._phrases_file(item, plugin) for item in items if isinstance(item, ToolGroup)]
        problems: list[str] = []
        for file in filter(None, dict.fromkeys(files)):
            specs, wrong = with_phrases(specs, file, _check_call)
            problems += wrong
        return specs, problems

    def _phrases_file(self, group: ToolGroup, plugin: ModuleType) -> Path | None:
        """The file with a group's phrases, beside its module or beside the plugin, or None where it has none."""
        modules = [import_module(group.module), plugin]
        if not group.phrases:
            modules = [module for module in modules if module.__package__]
        places = [Path(str(module.__file__)).with_name(group.phrases or _PHRASES) for module in modules]
        file = next((place for place in places if place.is_file()), places[0] if group.phrases else None)
        if file is not None:
            self._depends_on(str(file))
        return file

    def _brought(self, plugin: ModuleType, pack: Pack) -> Iterator[tuple[str, ProviderSpec | UISpec]]:
        """What else the pack registers."""
        for provider in items_of(call_hook(self.manager, plugin, "marvin_register_providers"), ProviderSpec):
            yield "provider", provider.replace(source=pack.distribution)
        for ui in items_of(call_hook(self.manager, plugin, "marvin_register_uis"), UISpec):
            yield "ui", ui

    def _settings(self, plugin: ModuleType, pack: Pack) -> Iterator[DeclaredSettings]:
        """What the pack is configured with, if it says so."""
        answer = call_hook(self.manager, plugin, "marvin_register_settings")
        if answer is not None:
            from .pack_schema import declared_settings

            declared = declared_settings(answer, plugin, pack)
            if declared.file:
                self._depends_on(declared.file)
            yield declared

    def _take(self, kind: str, spec: Any, pack: Pack) -> Iterator[str]:
        """Keep it, where its name is free; yields why not, where it is not."""
        owner = self.owners.get(f"{kind}:{spec.name}")
        if owner is not None:
            yield _refusal(kind, spec.name, pack, owner)
            return
        taken: dict[str, dict[str, Any]]
        taken = {"tool": self.tools, "provider": self.providers, "ui": self.uis, "settings": self.settings}
        taken[kind][spec.name] = spec
        self.owners[f"{kind}:{spec.name}"] = pack.key

    def _specs(self, item: object, plugin: ModuleType, pack: Pack) -> Iterable[ToolSpec]:
        if isinstance(item, Tool):
            self._source(import_module(item.function.__module__))
            return [describe(item, source=pack.distribution, module=plugin.__name__)]
        group = expect(item, ToolGroup)
        module = import_module(group.module)
        self._source(module)
        return [
            describe(_tool_of(module, name), source=pack.distribution, module=group.module, group=group)
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

    def _helpers(self, plugin: ModuleType) -> None:
        """Depend on what was imported of the plugin's own package, where it has one."""
        package, dot, _ = plugin.__name__.partition(".")
        if dot and package != _OWN_PACKAGE:
            for name, module in sorted(sys.modules.items()):
                if name.startswith(f"{package}."):
                    self._source(module)

    def _source(self, module: ModuleType) -> None:
        if getattr(module, "__file__", None):
            self._depends_on(str(module.__file__))

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


def _found_from(plugin: ModuleType, group: ToolGroup) -> ToolGroup:
    """The group with the full name of its module."""
    group = _sound(group)
    if not group.module.startswith("."):
        return group
    if not plugin.__package__:
        raise PluginError(f"ToolGroup {group.name!r}: {plugin.__name__} is in no package for {group.module!r} to be in")
    return group.replace(module=resolve_name(group.module, plugin.__package__))


def _sound(spec: S) -> S:
    """The specification, each field of it of the type that it is declared with, so that the index can keep it.

    Raises:
        PluginError: where one is not, as a function where the name of one is expected.
    """
    from pydantic import ValidationError

    kinds = get_type_hints(type(spec))
    fields = {}
    for field, value in spec.as_dict().items():
        try:
            fields[field] = _check(kinds[field]).validate_python(value)
            json.dumps(fields[field], default=sorted)  # a set becomes a list
        except (ValidationError, TypeError, ValueError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise PluginError(f"{type(spec).__name__} {spec.as_dict()['name']!r}, {field}: {reason}") from error
    return spec.replace(**fields)


@cache
def _check(declared: Any) -> TypeAdapter[Any]:
    """The check of a field declared with this type; making one takes far longer than using it."""
    from pydantic import TypeAdapter

    return TypeAdapter(declared)


def _refusal(kind: str, name: str, pack: Pack, owner: str) -> str:
    earlier = owner.partition(":")[0]
    return f"{kind} {name} of {pack.distribution} was refused: {earlier} already brings one of that name."


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


def _check_call(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    validator(_tool_of(import_module(spec.module), spec.name))(arguments)


def _tool_of(module: ModuleType, name: str) -> Tool:
    found = getattr(module, name, None)
    if not isinstance(found, Tool):
        raise PluginError(f"{module.__name__} has no tool {name}: decorate an async function of that name with @tool")
    return found
