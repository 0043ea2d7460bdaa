"""Finds language servers: those that Marvin installed, and others on PATH."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .catalog import ServerKind

FOLDER = "lsp"
"""The folder below the configuration folder with one folder for each server."""
WHOLE = ".whole"
"""The marker file of a complete installation."""


def found(kind: ServerKind, config_folder: Path, which: Callable[..., str | None]) -> str | None:
    """The path of a server's program, or None. Marvin's own installations come first; folders of projects do not
    count."""
    own = installed(kind, config_folder)
    return own if own is not None else which(kind.program, outside=True)


def installed(kind: ServerKind, config_folder: Path) -> str | None:
    """The path of the program that Marvin installed, or None."""
    folder = config_folder / FOLDER / kind.name
    if not (folder / WHOLE).is_file():
        return None
    for place in ("bin", "node_modules/.bin"):
        program = folder / place / kind.program
        if os.access(program, os.X_OK):
            return str(program)
    return None
