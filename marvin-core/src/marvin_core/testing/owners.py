"""Finds the pack of a tool, a hook or a module, installed or not, with its name and distribution in a real session."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from ..api.errors import ConfigError
from ..api.hooks import Hook
from ..api.tools import ToolSpec
from ..plugins.hook_calls import call_hook, plugin_manager
from ..plugins.model import DeclaredSettings, Pack
from ..plugins.pack_schema import declared_settings

_GROUP = "marvin"
_PROJECT = "pyproject.toml"


class Owners:
    """The `PackOwners` of the test kit: it finds the pack of an object by the object's module."""

    def __init__(self) -> None:
        self._tools: dict[str, Pack] = {}
        self._packs: dict[str, Pack] = {}
        self._declared: dict[str, DeclaredSettings | None] = {}

    def add_tool(self, spec: ToolSpec) -> DeclaredSettings | None:
        """Assign a tool to the pack of its module; returns the declared settings of that pack."""
        pack = self._tools[spec.name] = self.pack_of_module(spec.module)
        return self.declared(pack)

    def pack_of_module(self, module: str) -> Pack:
        """The pack of a module."""
        pack = pack_of_module(module)
        self._packs.setdefault(pack.name, pack)
        return pack

    def pack_of_tool(self, spec: ToolSpec) -> Pack:
        """The pack of a tool."""
        return self._tools.get(spec.name) or self.pack_of_module(spec.module)

    def pack_of_hook(self, hook: Hook) -> Pack:
        """The pack of a hook's class."""
        return self.pack_of_module(type(hook).__module__)

    def pack_of_provider(self, name: str) -> Pack | None:
        """None: the providers of tests are scripted."""
        return None

    def pack_named(self, name: str) -> Pack:
        """The pack of this name, from the packs that the test has used and the installed ones."""
        found = self._packs.get(name) or next((pack for pack in _installed() if pack.name == name), None)
        if found is None:
            there = ", ".join(sorted({*self._packs, *(pack.name for pack in _installed())}))
            raise ConfigError(f"No pack is called {name!r}. Available: {there}.")
        return found

    def declared(self, pack: Pack) -> DeclaredSettings | None:
        """The declared settings of a pack, if its plugin module declares any."""
        if pack.key not in self._declared:
            self._declared[pack.key] = self._asked(pack)
        return self._declared[pack.key]

    def _asked(self, pack: Pack) -> DeclaredSettings | None:
        plugin = sys.modules.get(pack.module) or import_module(pack.module)
        manager = plugin_manager()
        manager.register(plugin)
        answer = call_hook(manager, plugin, "marvin_register_settings")
        return None if answer is None else declared_settings(answer, plugin, pack)


@cache
def pack_of_module(module: str) -> Pack:
    """The pack that a module belongs to.

    This is the installed pack with an entry point in the same package, else the pack of a pyproject.toml above the
    module's file with such an entry point, else a pack with the name of the package.
    """
    package = module.partition(".")[0]
    candidates = [pack for pack in _installed() if pack.module.partition(".")[0] == package]
    candidates = candidates or [pack for pack in _of_project(module) if pack.module.partition(".")[0] == package]
    if not candidates:
        return Pack(name=package, distribution=package.replace("_", "-"), version="", module=module)
    return max(candidates, key=lambda pack: _shared(pack.module, module))


def _shared(one: str, other: str) -> int:
    """The number of common leading parts of two module names."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), len(one.split(".")))


@cache
def _installed() -> tuple[Pack, ...]:
    """The packs of the environment. They are read once, since installations do not change during tests."""
    return tuple(
        Pack(name=entry.name, distribution=entry.dist.name, version=entry.dist.version, module=entry.module)
        for entry in entry_points(group=_GROUP)
        if entry.dist is not None
    )


def _file(module: str) -> str:
    """The file of a module, whether it is imported or not."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__file__", None) or ""
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    return (found.origin if found is not None else None) or ""


def _of_project(module: str) -> Iterator[Pack]:
    """The packs of the nearest pyproject.toml above a module's file that names a project."""
    for folder in Path(_file(module)).resolve().parents:
        if (folder / _PROJECT).is_file():
            project = tomllib.loads((folder / _PROJECT).read_text(encoding="utf-8")).get("project", {})
            if isinstance(project, Mapping) and "name" in project:
                for name, target in project.get("entry-points", {}).get(_GROUP, {}).items():
                    plugin = str(target).partition(":")[0].strip()
                    version = str(project.get("version", ""))
                    yield Pack(name=name, distribution=project["name"], version=version, module=plugin)
                return
