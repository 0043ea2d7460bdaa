"""Every sub-command of the core."""

from __future__ import annotations

import typer

from . import config, doctor, models, packs, profiles, providers, sessions, tools


def extend(app: typer.Typer) -> None:
    """Add them, in the order in which help lists them."""
    for module in (tools, packs, sessions, profiles, providers, models, config, doctor):
        module.extend(app)
