"""The functions by which a pack says what it brings.

The plugin module of a pack defines those that it needs, and marks each with `@hookimpl` of `marvin_core`. They return
plain objects. Nothing is decided in them: decisions are made by `Hook` objects. They are
called pack by pack, so `tryfirst` and `trylast` of `hookimpl` change nothing: the order of `Hook` objects is said by
the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import typer

    from .config import Config, PackSettings
    from .hooks import Hook
    from .providers import ProviderSpec
    from .session import Command, UISpec
    from .tools import Tool, ToolGroup

PROJECT = "marvin"

SINCE: Mapping[str, int] = {
    "marvin_configure": 1,
    "marvin_register_settings": 1,
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
    "Hook.on_stop": 1,
    "Hook.on_event": 1,
}
"""The `marvin_core.API` from which on a hook is called."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def marvin_configure(config: Config) -> None:
    """Called once in a process, before any other hook of a pack that is loaded at start, with the frozen configuration.

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
def marvin_register_settings() -> PackSettings:
    """Return what the pack is configured with: the model of its section in config.yaml, variables, secrets.

    Called when the index is built, not at every start; the model is imported when a person set something, or the pack
    asks for its settings.
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

    Called at every start, so keep the plugin module light; and when the index is built, in a process of its own, so
    do nothing here that must happen once. A pack whose registration fails holds all calls of tools until it is mended.
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

    Called when an interactive interface starts, and when the index is built. One whose name is taken is offered with
    the name of the pack before it.
    """
    raise NotImplementedError


@hookspec
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add sub-commands to the `marvin` command line.

    Called when the index is built, and when one of the pack's sub-commands is run. One whose name is taken is left out;
    what else is changed on the application has no effect.
    """
