"""Installs language servers into folders of their own, with the package managers of the registries."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from marvin_core import ToolError

from .catalog import ServerKind
from .lookup import FOLDER, WHOLE

# Programs of environments are not run by name outside of the sandbox, where another one of that name would run.
_BY_PIP = """
import subprocess, sys, venv
folder, *packages = sys.argv[1:]
venv.main([folder])
pip = [f"{folder}/bin/python", "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
sys.exit(subprocess.run([*pip, *packages]).returncode)
"""


def steps(kind: ServerKind, config_folder: Path, which: Callable[[str], str | None]) -> Sequence[Sequence[str]]:
    """The commands that install a server, in order.

    Raises:
        ToolError: it is in no registry, or its package manager is missing; the text says what to do.
    """
    folder = str(_folder_of(kind, config_folder))
    if not kind.source:
        raise ToolError(f"{kind.name} is not in a package registry. Install it yourself: {kind.how}")
    if kind.source == "npm":
        if (npm := which("npm")) is None:
            raise ToolError(f"{kind.name} needs npm, which is not installed, or not in PATH. Install Node.js first.")
        quiet = ("--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error")
        return [[npm, "install", *quiet, "--prefix", folder, *kind.packages]]
    if (uv := which("uv")) is not None:
        return [
            [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, folder],
            [uv, "pip", "install", "--quiet", "--python", f"{folder}/bin/python", *kind.packages],
        ]
    return [[sys.executable, "-I", "-c", _BY_PIP, folder, *kind.packages]]


class Installation:
    """The folder of a server during its installation, locked against other Marvins.

    An earlier installation is moved aside, and restored if the new one does not complete. All methods block.
    """

    def __init__(self, kind: ServerKind, config_folder: Path) -> None:
        self._kind = kind
        self._folder = _folder_of(kind, config_folder)
        self._before = self._folder.with_name(f".{kind.name}.before")
        self._lock = -1
        self._is_whole = False

    def begin(self) -> None:
        """Lock the folder and move an earlier installation aside.

        Raises:
            ToolError: the folder cannot be made, or another Marvin installs this server.
        """
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = self._folder.with_name(f".{self._kind.name}.lock")
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._unlock()
            raise ToolError(f"Another Marvin is installing {self._kind.name}. Wait until it is done.") from error
        except OSError as error:
            self._unlock()
            raise ToolError(f"{self._folder} cannot be made: {error.strerror}.") from error
        try:
            self._put_aside()
        except OSError as error:
            self.end()
            raise ToolError(f"{self._folder} cannot be made: {error.strerror}.") from error

    def finish(self) -> None:
        """Mark the installation as complete; only complete ones are used."""
        (self._folder / WHOLE).touch()
        self._is_whole = True

    def end(self) -> None:
        """Keep the new installation if it is complete, else restore the old one; without `begin` nothing happens."""
        if self._lock < 0:
            return
        try:
            if self._is_whole:
                _remove(self._before)
            elif self._before.exists():
                _remove(self._folder)
                self._before.rename(self._folder)
            else:
                _remove(self._folder)
        except OSError:  # an incomplete installation is not used, and the next one removes it
            pass
        finally:
            self._unlock()

    def _put_aside(self) -> None:
        if (self._folder / WHOLE).is_file() and not self._folder.is_symlink():
            _remove(self._before)
            self._folder.rename(self._before)
        _remove(self._folder)
        if self._kind.source == "npm":
            self._folder.mkdir()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.end()


def _folder_of(kind: ServerKind, config_folder: Path) -> Path:
    return config_folder / FOLDER / kind.name


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
