"""What marvin-core itself registers, through the same door as any pack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .hookspecs import hookimpl
from .providers.base import ProviderSpec
from .tools import ToolGroup
from .ui.base import Command, UISpec

if TYPE_CHECKING:
    import typer

_CHAT_COMPLETIONS = "marvin_core.providers.chat_completions:create"


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """The services of models.toml."""
    import tomllib
    from importlib.resources import files

    table = tomllib.loads(files("marvin_core").joinpath("models.toml").read_text(encoding="utf-8"))
    return [
        ProviderSpec(
            **{
                "name": name,
                "factory": _CHAT_COMPLETIONS,
                **entry,
                "key_variables": tuple(entry.get("key_variables", ())),
            }
        )
        for name, entry in table.items()
    ]


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The tools that belong to no pack."""
    return [ToolGroup(name="session", module="marvin_core.session_tools", tools=("get_usage", "exit_app"))]


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
    from . import subcommands, subcommands_config, subcommands_doctor, subcommands_profiles, subcommands_sessions

    for module in (subcommands, subcommands_sessions, subcommands_profiles, subcommands_config, subcommands_doctor):
        module.extend(app)
