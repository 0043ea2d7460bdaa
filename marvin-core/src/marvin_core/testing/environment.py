"""The environment of the test process. Only this module of the test kit reads and changes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_KEYS = ("_KEY", "_TOKEN", "_SECRET")
"""The endings of the names of variables with keys."""


def search_path() -> str:
    """The search path for programs, from PATH."""
    return os.environ.get("PATH", os.defpath)


def environment() -> dict[str, str]:
    """A copy of the current environment."""
    return dict(os.environ)


@contextmanager
def own_home(folder: Path) -> Iterator[Path]:
    """Make this the home folder, and unset all variables with keys or other folders."""
    from ..config.environment import ENVIRONMENT

    folder.mkdir()
    replaced = {
        name: value
        for name, value in environment().items()
        if name == "HOME" or name in ENVIRONMENT or name.startswith("MARVIN_URL_") or name.endswith(_OF_KEYS)
    }
    for name in replaced:
        del os.environ[name]
    os.environ["HOME"] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop("HOME", None)
        os.environ.update(replaced)


@contextmanager
def own_working_dir(folder: Path) -> Iterator[Path]:
    """Create this folder, and make it the current one."""
    before = Path.cwd()
    folder.mkdir()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def start_repository(folder: Path) -> None:
    """Make the folder a git repository with an author and one empty commit, independent of the user's git settings."""
    from ..util.git_calls import GIT_ALONE, git_command

    git = git_command("init.defaultBranch=main")
    env = {**GIT_ALONE, "PATH": search_path(), "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        ["init", "--quiet"],
        ["config", "user.name", "Marvin Test"],
        ["config", "user.email", "test@example.org"],
        ["commit", "--quiet", "--allow-empty", "--message", "Begin"],
    ):
        subprocess.run([*git, *words], cwd=folder, env=env, check=True, capture_output=True)
