"""The functions with which a pack registers what it provides.

The plugin module of a pack defines the ones it needs, each marked with `@hookimpl` of `marvin_core`. They return
plain objects and make no decisions: `Hook` objects do that. They are called pack by pack, so `tryfirst` and
`trylast` of `hookimpl` have no effect: the `Hook` objects declare their order themselves.
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
"""The first `marvin_core.API` version in which a hook is called."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def marvin_configure(config: Config) -> None:
    """Called once in a process, before any other hook of a pack loaded at start, with the frozen configuration.

    It is for packs that adapt to the configuration; they cannot change it. A pack with only tools or providers is not
    loaded at start; it gets what it needs in the context of its calls.
    """


@hookspec
def marvin_register_tools() -> Iterable[Tool | ToolGroup]:
    """Return the tools of the pack: `Tool` objects, or `ToolGroup`s whose module is imported on first use.

    Called when the index is built, not at every start.
    """
    raise NotImplementedError


@hookspec
def marvin_register_settings() -> PackSettings:
    """Return the configuration of the pack: the model of its section in config.yaml, variables, secrets.

    Called when the index is built, not at every start; the model is imported when the user has set something, or the
    pack asks for its settings.
    """
    raise NotImplementedError


@hookspec
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """Return the model providers of the pack, as data.

    Called when the index is built, not at every start; the factory is imported when the provider is chosen.
    """
    raise NotImplementedError


@hookspec
def marvin_register_hooks() -> Iterable[Hook]:
    """Return `Hook` objects that observe the agent, and may restrict it further.

    Called at every start, so keep the plugin module light. Also called when the index is built, in a separate process,
    so do nothing here that must happen once. If the registration of a pack fails, every call needs approval.
    """
    raise NotImplementedError


@hookspec
def marvin_register_uis() -> Iterable[UISpec]:
    """Return interfaces, as data; `ui:` in config.yaml selects one.

    Called when the index is built, not at every start.
    """
    raise NotImplementedError


@hookspec
def marvin_register_commands() -> Iterable[Command]:
    """Return slash commands for the interactive interfaces.

    Called when an interactive interface starts, and when the index is built. A command whose name is taken is offered
    with the name of the pack as a prefix.
    """
    raise NotImplementedError


@hookspec
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add sub-commands to the `marvin` command line.

    Called when the index is built, and when one of the pack's sub-commands runs. A sub-command whose name is taken is
    left out; other changes of the application have no effect.
    """
