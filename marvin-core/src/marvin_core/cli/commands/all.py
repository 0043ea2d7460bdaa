"""All sub-commands of the core."""

from __future__ import annotations

import typer

from ..recorded import demo, replay
from . import (
    acp,
    agents,
    config,
    doctor,
    login,
    mcp,
    models,
    packs,
    permissions,
    profiles,
    providers,
    sessions,
    tools,
    undo,
)


def extend(app: typer.Typer) -> None:
    """Add all sub-commands, in the order in which the help lists them."""
    for module in (
        tools,
        agents,
        packs,
        sessions,
        undo,
        profiles,
        providers,
        login,
        models,
        permissions,
        mcp,
        acp,
        config,
        doctor,
        replay,
        demo,
    ):
        module.extend(app)
