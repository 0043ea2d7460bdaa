"""Registers Marvin's own parts, through the same hooks as any pack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .api.hookspecs import hookimpl
from .api.providers import OFFLINE, ProviderSpec
from .api.session import Command, UISpec
from .api.tools import ToolGroup

if TYPE_CHECKING:
    import typer


_OFFLINE = "marvin_core.providers.offline:create"


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """The services of services.toml."""
    from .config.services import service_table
    from .providers.selection.catalog import WIRES

    services = [_provider(name, WIRES[entry.pop("wire")], entry) for name, entry in service_table().items()]
    return [
        *services,
        ProviderSpec(name=OFFLINE, factory=_OFFLINE, base_url="", default_model=OFFLINE, in_process=True),
    ]


def _provider(name: str, factory: str, entry: dict[str, Any]) -> ProviderSpec:
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return ProviderSpec(**{**entry, **lists, "name": name, "factory": factory})


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The tools that belong to no pack."""
    own = ("get_usage", "compact_history", "search_history_backups", "end_elaborate", "end_play_mode", "exit_app")
    return [
        ToolGroup(
            name="session",
            module=".tools.session_tools",
            tools=(*own, "read_skill", "tool_search"),
            in_code=("read_skill",),
            in_chat=("read_skill",),
        ),
        ToolGroup(
            name="session", module=".tools.asking", tools=("ask_user",), in_code=("ask_user",), in_chat=("ask_user",)
        ),
    ]


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """The slash commands of the core."""
    from .ui.commands.core import core_commands

    return core_commands()


@hookimpl
def marvin_register_uis() -> Iterable[UISpec]:
    """The interfaces of the core."""
    return [UISpec(name="plain", factory="marvin_core.ui.plain.chat:PlainChat")]


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """The sub-commands of the core."""
    from .cli.commands import all as subcommands

    subcommands.extend(app)
