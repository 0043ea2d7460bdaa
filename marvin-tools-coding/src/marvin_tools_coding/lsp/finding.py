"""Where a language server is: installed by Marvin, or by somebody else on PATH."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .known import ServerKind

FOLDER = "lsp"
"""Below the configuration folder; in it, one folder for each server."""
WHOLE = ".whole"
"""What stands in the folder of a server whose installation came to its end."""


def found(kind: ServerKind, config_folder: Path, which: Callable[..., str | None]) -> str | None:
    """The path of its program, or None. What Marvin installed comes first; no folder of a project counts."""
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
