"""Marvin's own folders, and the working directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError, UsageError


def current_folder() -> Path:
    """The folder in which Marvin was started. Raises `ConfigError` if it does not exist or cannot be read."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"The current folder cannot be used: {error.strerror}. Change to another one.") from error


def own_folders(env: Mapping[str, str], home: Path, cwd: Path) -> dict[str, Any]:
    """The paths of Marvin's own folders, by field of `Config`."""
    if env.get("MARVIN_HOME"):
        root = cwd / env["MARVIN_HOME"]
        return {
            "config_folder": root,
            "data_folder": root / "data",
            "cache_folder": root / "cache",
            "state_folder": root / "state",
        }
    base = _xdg(env, "XDG_CONFIG_HOME", home / ".config")
    older = base / "local-finder"
    return {
        "config_folder": older if older.is_dir() else base / "marvin",
        "data_folder": _xdg(env, "XDG_DATA_HOME", home / ".local" / "share") / "marvin",
        "cache_folder": _xdg(env, "XDG_CACHE_HOME", home / ".cache") / "marvin",
        "state_folder": _xdg(env, "XDG_STATE_HOME", home / ".local" / "state") / "marvin",
    }


def _xdg(env: Mapping[str, str], name: str, default: Path) -> Path:
    given = Path(env.get(name) or default)
    return given if given.is_absolute() else default  # the XDG specification says to ignore relative paths


def chosen_folder(given: str | None, cwd: Path, home: Path) -> Path:
    """The working directory with resolved links: the value of --working-dir, else the current folder.

    Raises:
        UsageError: the path is not a folder, or cannot be read.
    """
    if given is None:
        return cwd.resolve()
    if not given:
        raise UsageError("--working-dir is empty. Give a folder, or leave the flag out to work in the current one.")
    folder = home / given[2:] if given == "~" or given.startswith("~/") else cwd / given
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        reason = "there is no such folder" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(f"--working-dir {given}: {reason}. Create it, or name another one.") from error
    if not stat.S_ISDIR(mode):
        raise UsageError(f"--working-dir {given} is a file. Give the folder that contains it.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UsageError(f"--working-dir {given} cannot be read. Change its permissions, or name another folder.")
    return folder.resolve()
