"""Loads one pack: imports its module, calls its registration hooks, and validates the results."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from ..api import hookspecs
from ..api.config import Config
from ..api.errors import PluginError
from ..api.hooks import Hook
from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import Command, UISpec
from ..api.tools import Tool, ToolGroup, ToolSpec
from ..tools.routing.phrases import with_phrases
from ..tools.schema import describe, validator
from ..util.imports import load_module
from ..util.text import unknown_name
from .guards import source_file
from .hook_calls import call_hook, expect, items_of, plugin_manager
from .isolation import Died, Hung, with_problem
from .model import PROJECT, USER, DeclaredSettings, Loaded, Pack, has_data
from .sub_commands import SubCommand, sub_commands
from .user_files import hooks_of, is_for_hooks, tools_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_OWN_PACKAGE = __name__.partition(".")[0]
_PHRASES = "phrases.toml"
_HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("marvin_"))
_REGISTERS = "marvin_register_"
_AT_EVERY_START = frozenset({"marvin_register_hooks", "marvin_register_commands"})

S = TypeVar("S", bound=Record)


class Loader:
    """Loads packs one after the other."""

    def __init__(self) -> None:
        self.manager = plugin_manager()
        self._sources: list[str] = []

    def load(self, pack: Pack) -> Loaded:
        """Load a pack. Raises whatever its code raises, and `PluginError` for invalid registrations."""
        self._sources = []
        if pack.is_file and not pack.module.endswith(".py"):
            raise PluginError("the name of its file does not end in .py, so Python does not load it. Rename it")
        plugin = load_module(pack.module)
        self._source(plugin)
        if pack.distribution == PROJECT:
            return self._of_project(plugin, pack)
        if pack.distribution == USER:
            tools = [describe(tool, source=USER, module=pack.module, group="user") for tool in tools_of(plugin)]
            hooks = hooks_of(plugin)
            if not hooks and is_for_hooks(pack):
                raise PluginError(
                    "it defines no subclass of Hook, so it has no effect. Define a subclass of marvin_core.Hook in "
                    "this file, or begin the name of the file with an underscore"
                )
            pack = pack.replace(hooks=("marvin_register_hooks",) if hooks else ())
            return Loaded(pack=pack, tools=tuple(map(_sound, tools)), sources=self._all_sources())
        if pack.attribute:
            raise PluginError(
                f"its entry point names {pack.module}:{pack.attribute}; it must name only a module: {pack.module}"
            )
        self.manager.register(plugin, name=pack.key)
        pack = pack.replace(hooks=self._hooks(plugin, pack))
        tools, problems = self._tools(plugin, pack)
        providers = items_of(call_hook(self.manager, plugin, "marvin_register_providers"), ProviderSpec)
        uis = items_of(call_hook(self.manager, plugin, "marvin_register_uis"), UISpec)
        settings = tuple(self._settings(plugin, pack))
        cli = self._cli(plugin)
        problems += [f"the sub-command {name} cannot be used: {one.fault}" for name, one in cli.items() if one.fault]
        self._helpers(plugin)
        return Loaded(
            pack=pack.replace(cli=tuple(cli), problems=tuple(problems)),
            tools=tuple(map(_sound, tools)),
            providers=tuple(_sound(provider).replace(source=pack.distribution) for provider in providers),
            uis=tuple(map(_sound, uis)),
            settings=settings,
            sources=self._all_sources(),
        )

    def _of_project(self, plugin: ModuleType, pack: Pack) -> Loaded:
        """A file in the working directory: it may register tools only, and they get no secrets."""
        tools = [describe(tool, source=PROJECT, module=pack.module, group="project") for tool in tools_of(plugin)]
        wanted = next((f"{tool.name} declares {', '.join(tool.secrets)}" for tool in tools if tool.secrets), "")
        if wanted:
            raise PluginError(f"{wanted}, but a tool of a project gets no secrets. Make it a pack, or remove `secrets`")
        return Loaded(pack=pack, tools=tuple(map(_sound, tools)), sources=self._all_sources())

    def rehearse(self, loaded: Loaded, config: Config) -> Loaded:
        """Call the hooks that run at every start, so that a crash or a hang is found here.

        Exceptions are reported at the start as well, with the actual configuration. Returns the pack with
        the known properties of its hooks.
        """
        try:
            if loaded.pack.is_file:
                return loaded
            plugin = import_module(loaded.pack.module)
            if not _AT_EVERY_START & set(loaded.pack.hooks):
                return loaded
            call_hook(self.manager, plugin, "marvin_configure", config=config)
            hooks = items_of(call_hook(self.manager, plugin, "marvin_register_hooks"), Hook)
            items_of(call_hook(self.manager, plugin, "marvin_register_commands"), Command)
            chats_only = bool(hooks) and all(hook.chats_only is True for hook in hooks)
        except BaseException:  # any exception: the start reports it
            return loaded
        return loaded.replace(pack=loaded.pack.replace(chats_only=chats_only))

    def failed(self, pack: Pack, error: BaseException) -> Loaded:
        """The pack with its error. It depends on all files involved, so that a fix is noticed."""
        self._sources = []
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        known = error.files if isinstance(error, (Hung, Died)) else []
        own = source_file(pack.module)
        for name in [*frames, *known, str(own or ""), getattr(error, "filename", None)]:
            if isinstance(name, str) and os.path.isfile(name):
                self._depends_on(name)
        return Loaded(pack=with_problem(pack, error), sources=self._all_sources())

    def _hooks(self, plugin: ModuleType, pack: Pack) -> tuple[str, ...]:
        """The names of the hooks that a plugin implements; one that is never called is an error."""
        callers = self.manager.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                raise PluginError(unknown_name("hook", caller.name, _HOOKS))
        hooks = tuple(caller.name for caller in callers)
        for name, value in vars(plugin).items():
            if name in hooks or not callable(value) or value is getattr(hookspecs, name, None):
                continue
            if name in _HOOKS:
                raise PluginError(f"{name} has no @hookimpl, so it would not be called. Write @hookimpl above it")
            if name.startswith(_REGISTERS):
                raise PluginError(unknown_name("hook", name, _HOOKS))
        if not hooks and not has_data(pack):
            raise PluginError(
                f"{plugin.__name__} implements no hook, so it provides nothing. Check its entry point, and mark its "
                "hooks with @hookimpl"
            )
        return hooks

    def _tools(self, plugin: ModuleType, pack: Pack) -> tuple[list[ToolSpec], list[str]]:
        """The tools that the pack registers, with their phrases, and the errors in those."""
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
        """The file with a group's phrases, in the folder of its module or of the plugin; None if there is none."""
        modules = [import_module(group.module), plugin]
        if not group.phrases:
            modules = [module for module in modules if module.__package__]
        places = [Path(str(module.__file__)).with_name(group.phrases or _PHRASES) for module in modules]
        file = next((place for place in places if place.is_file()), places[0] if group.phrases else None)
        if file is not None:
            self._depends_on(str(file))
        return file

    def _specs(self, item: object, plugin: ModuleType, pack: Pack) -> Iterable[ToolSpec]:
        if isinstance(item, Tool):
            home = import_module(item.function.__module__)
            self._source(home)
            return [describe(item, source=pack.distribution, module=_holder(item, plugin, home), group=pack.name)]
        group = expect(item, ToolGroup)
        module = import_module(group.module)
        self._source(module)
        return [
            describe(_tool_of(module, name), source=pack.distribution, module=group.module, group=group)
            for name in group.tools
        ]

    def _settings(self, plugin: ModuleType, pack: Pack) -> Iterator[DeclaredSettings]:
        """The settings and secrets that the pack declares, if any."""
        answer = call_hook(self.manager, plugin, "marvin_register_settings")
        if answer is not None:
            from .pack_schema import declared_settings

            declared = declared_settings(answer, plugin, pack)
            if declared.file:
                self._depends_on(declared.file)
            yield declared

    def _cli(self, plugin: ModuleType) -> dict[str, SubCommand]:
        """The sub-commands that the pack adds, found by letting it extend an empty application."""
        if not hasattr(plugin, "marvin_extend_cli"):
            return {}
        import typer

        app = typer.Typer()
        call_hook(self.manager, plugin, "marvin_extend_cli", app=app)
        return sub_commands(app)

    def _helpers(self, plugin: ModuleType) -> None:
        """Add the imported modules of the plugin's own package to the dependencies."""
        package, dot, _ = plugin.__name__.partition(".")
        if dot and package != _OWN_PACKAGE:
            for name, module in sorted(sys.modules.items()):
                if name.startswith(f"{package}."):
                    self._source(module)

    def _source(self, module: ModuleType) -> None:
        if getattr(module, "__file__", None):
            self._depends_on(str(module.__file__))

    def _depends_on(self, file: str) -> None:
        # The folder as well: files that are added or deleted there change what can be imported.
        self._sources += [file, os.path.dirname(file)]

    def _all_sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._sources))


def _holder(tool: Tool, *modules: ModuleType) -> str:
    """The first of these modules with the tool as a global, from which calls import it."""
    for module in modules:
        if any(isinstance(value, Tool) and value.name == tool.name for value in vars(module).values()):
            return module.__name__
    raise PluginError(
        f"the tool {tool.name} is not a global of {modules[0].__name__}. Make it a global, so that calls find it"
    )


def _found_from(plugin: ModuleType, group: ToolGroup) -> ToolGroup:
    """The group with the full name of its module."""
    group = _sound(group)
    if not group.module.startswith("."):
        return group
    if not plugin.__package__:
        raise PluginError(
            f"ToolGroup {group.name!r}: {group.module!r} is relative, but {plugin.__name__} is not in a package"
        )
    return group.replace(module=resolve_name(group.module, plugin.__package__))


def _sound(spec: S) -> S:
    """The specification, with the type of each field checked, so that the index can store it.

    Raises:
        PluginError: a field has the wrong type, such as a function instead of its name.
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
    """A validator for the type of a field; creating one takes far longer than using it."""
    from pydantic import TypeAdapter

    return TypeAdapter(declared)


def _check_call(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    validator(_tool_of(import_module(spec.module), spec.name))(arguments)


def _tool_of(module: ModuleType, name: str) -> Tool:
    found = getattr(module, name, None)
    if not isinstance(found, Tool):
        raise PluginError(f"{module.__name__} has no tool {name}: decorate an async function of that name with @tool")
    return found
