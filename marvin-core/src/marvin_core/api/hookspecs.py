"""The hooks that a pack can implement.

A pack's plugin module marks its implementations with `marvin_core.hookimpl`. Registration hooks
return plain objects; nothing is decided in them. They are called pack by pack, so `tryfirst` and
`trylast` of `hookimpl` change nothing: the order of `Hook` objects is said by the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import typer

    from .config import Config
    from .hooks import Hook
    from .providers import ProviderSpec
    from .session import Command
    from .tools import Tool, ToolGroup
    from .ui import UISpec

PROJECT = "marvin"

SINCE: Mapping[str, int] = {
    "marvin_configure": 1,
    "marvin_register_tools": 1,
    "marvin_register_providers": 1,
    "marvin_register_hooks": 1,
    "marvin_register_uis": 1,
    "marvin_register_commands": 1,
    "marvin_extend_cli": 1,
    "Hook.on_prompt": 1,
    "Hook.system_prompt": 1,
    "Hook.before_request": 1,
    "Hook.before_tool": 1,
    "Hook.after_tool": 1,
    "Hook.on_event": 1,
}
"""The `marvin_core.API` from which on a hook is called."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def marvin_configure(config: Config) -> None:
    """Called once, before any other hook of a pack that is loaded at start, with the frozen configuration.

    For a pack that adapts to it; the configuration itself cannot be changed. A pack that brings only
    tools or providers is not loaded at start, and gets what it needs in the context of its calls.
    """


@hookspec
def marvin_register_tools() -> Iterable[Tool | ToolGroup]:
    """Return the tools of the pack: `Tool` objects, or `ToolGroup`s whose module is imported on first use.

    Called when the index is built, not at every start.
    """
    raise NotImplementedError


@hookspec
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """Return the model services that the pack can talk to, as data.

    Called when the index is built, not at every start; the factory is imported when chosen.
    """
    raise NotImplementedError


@hookspec
def marvin_register_hooks() -> Iterable[Hook]:
    """Return `Hook` objects that watch, and may tighten, what the agent does.

    Called at every start, so keep the plugin module light.
    """
    raise NotImplementedError


@hookspec
def marvin_register_uis() -> Iterable[UISpec]:
    """Return interfaces, as data; `ui:` in config.yaml chooses one.

    Called when the index is built, not at every start.
    """
    raise NotImplementedError


@hookspec
def marvin_register_commands() -> Iterable[Command]:
    """Return slash commands for the interactive interfaces.

    Called when an interactive interface starts.
    """
    raise NotImplementedError


@hookspec
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add sub-commands to the `marvin` command line.

    Called only when a sub-command is run, and only for packs that the index lists for it.
    """
