"""Measures the registration of a pack: its duration, its imports and its side effects."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import pluggy
import typer

from ...api.config import Config
from ...api.tools import ToolSpec
from ...plugins.hook_calls import call_hook, plugin_manager
from ...plugins.model import Pack
from ...tools.routing.words import words
from ..tool_runner import installed_tools
from .findings import Finding, found
from .place import PackPlace
from .schemas import schema_findings
from .sources import source_findings
from .watch import Watch

_MOST = 0.1
"""The maximum CPU time for the import of a plugin module, in seconds."""
_CORE = "marvin_core"
_PLAIN = ("tools", "providers", "hooks", "uis", "commands")


def registration_findings(pack: Pack, place: PackPlace, watch: Watch, config: Config) -> list[Finding]:
    """The findings about the first import of a pack, and about everything that is read of it afterwards."""
    core = import_module(_CORE)
    for name in core.__all__:
        getattr(core, name)  # their cost is Marvin's, not the pack's
    before = set(sys.modules)
    watch.begin()
    begun = time.process_time()
    failure = _failure(lambda: import_module(pack.module))
    seconds = time.process_time() - begun
    problems = [failure] if failure else list(_registered(pack, config))
    watch.end()
    foreign = _foreign(set(sys.modules) - before, pack)
    problems += pack.problems
    tools = [spec for spec in installed_tools() if spec.source == pack.distribution]
    slow = [f"importing {pack.module} takes {seconds * 1000:.0f} ms; it should take at most {_MOST * 1000:.0f} ms"]
    deeds = [f"{deed}: {place}" for deed, places in watch.deeds.items() if deed != "read" for place in places]
    return [
        found("loads", problems, note=f"{len(tools)} tools"),
        found("quiet start", deeds),
        found("quick start", slow if seconds > _MOST else [], note=f"{seconds * 1000:.0f} ms"),
        found("light start", [f"{pack.module} imports {name}" for name in foreign]),
        found("phrases", phrase_problems(tools)),
        *schema_findings(tools),
        *source_findings(place, tools),
    ]


def phrase_problems(tools: Sequence[ToolSpec]) -> list[str]:
    """The problems of the tools' phrases: a tool has none, or two tools have the same one."""
    problems = [f"{spec.name} has no phrase" for spec in tools if not spec.phrases]
    owners: dict[str, str] = {}
    for spec in tools:
        for entry in spec.phrases:
            said = " ".join(words(entry["say"].format(**{slot: f" {kind} " for slot, kind in entry["slots"].items()})))
            owner = owners.setdefault(said, spec.name)
            if owner != spec.name:
                problems.append(f"{owner} and {spec.name} both have the phrase {entry['say']!r}: neither is called")
    return problems


def _registered(pack: Pack, config: Config) -> Iterator[str]:
    """Call every registration hook, and yield the errors."""
    manager = plugin_manager()
    plugin = sys.modules[pack.module]
    manager.register(plugin, name=pack.key)
    calls: dict[str, dict[str, Any]] = {"marvin_configure": {"config": config}}
    calls.update({f"marvin_register_{kind}": {} for kind in _PLAIN})
    calls["marvin_extend_cli"] = {"app": typer.Typer()}
    for hook, arguments in calls.items():
        failure = _failure(partial(_answered, manager, plugin, hook, arguments))
        if failure:
            yield f"{hook}: {failure}"


def _answered(manager: pluggy.PluginManager, plugin: object, hook: str, arguments: dict[str, Any]) -> None:
    list(call_hook(manager, plugin, hook, **arguments) or ())  # it may be a generator, which runs only now


def _failure(work: Callable[[], Any]) -> str:
    """The exception of third-party code in one line; empty if there is none."""
    try:
        work()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _foreign(modules: set[str], pack: Pack) -> list[str]:
    """The packages among these modules that are not of Python, Marvin or the pack."""
    own = pack.module.partition(".")[0]
    known = {own, _CORE, *sys.stdlib_module_names}
    return sorted({name.partition(".")[0] for name in modules} - known)
