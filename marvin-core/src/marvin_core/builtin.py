"""What marvin-core itself registers, through the same door as any pack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .hookspecs import hookimpl
from .providers.base import OFFLINE, ProviderSpec
from .tools import ToolGroup
from .ui.base import Command, UISpec

if TYPE_CHECKING:
    import typer


_OFFLINE = "marvin_core.providers.offline:create"


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """The services of models.toml."""
    import tomllib
    from importlib.resources import files

    from .providers.catalog import WIRES

    table = tomllib.loads(files("marvin_core").joinpath("models.toml").read_text(encoding="utf-8"))
    services = [_provider(name, WIRES[entry.pop("wire")], entry) for name, entry in table.items()]
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
    tools = ("get_usage", "compact_history", "search_history_backups", "end_elaborate", "end_play_mode", "exit_app")
    return [ToolGroup(name="session", module="marvin_core.session_tools", tools=tools, phrases="phrases.toml")]


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """The slash commands of the core."""
    from .commands import core_commands

    return core_commands()


@hookimpl
def marvin_register_uis() -> Iterable[UISpec]:
    """The interfaces of the core."""
    return [UISpec(name="plain", factory="marvin_core.ui.plain:PlainChat")]


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """The sub-commands of the core."""
    from . import (
        subcommands,
        subcommands_config,
        subcommands_doctor,
        subcommands_profiles,
        subcommands_providers,
        subcommands_sessions,
    )

    modules = (subcommands, subcommands_sessions, subcommands_profiles, subcommands_providers)
    for module in (*modules, subcommands_config, subcommands_doctor):
        module.extend(app)
