"""placeholder"""

from __future__ import annotations

import typer


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
