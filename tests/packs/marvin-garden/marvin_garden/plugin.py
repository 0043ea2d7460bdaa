"""The entry point: everything that a pack can register."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from marvin_core import Command, Hook, PackSettings, ProviderSpec, ToolGroup, UISpec, hookimpl

if TYPE_CHECKING:
    import typer

    from marvin_core import Config


@hookimpl
def marvin_configure(config: Config) -> None:
    """Refuse to work in a garden that is on fire."""
    if config.working_dir.name == "fire":
        raise OSError("the garden is on fire")


@hookimpl
def marvin_register_settings() -> PackSettings:
    """The section `garden`, two of its keys with a variable, and the key of the pump."""
    return PackSettings(
        model=".settings:GardenSettings",
        variables={"litres": "GARDEN_LITRES", "pump.hours": "GARDEN_HOURS"},
        secrets={"GARDEN_KEY": "the key of the pump, which is on its back"},
    )


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """One tool, by its name."""
    return [ToolGroup(name="garden", module=".tools", tools=("water",))]


@hookimpl
def marvin_register_hooks() -> Iterable[Hook]:
    """One hook."""
    from .hooks import Gardener

    return [Gardener()]


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """One slash command."""
    from .command import plants

    return [Command(name="plants", help="What grows here.", run=plants)]


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """One model service."""
    return [
        ProviderSpec(
            name="scarecrow",
            factory="marvin_garden.scarecrow:create",
            base_url="https://scarecrow.example/v1",
            default_model="straw",
        )
    ]


@hookimpl
def marvin_register_uis() -> Iterable[UISpec]:
    """One interface."""
    return [UISpec(name="fence", factory="marvin_garden.fence:Fence")]


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """One sub-command."""
    from .cli import garden

    app.command("garden")(garden)
