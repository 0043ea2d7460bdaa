"""A home and a project in which calls are undone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner
from tests.support.command_tools import shell


class Desk:
    """A home and a project, and sessions in it one after the other."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.runner = ToolRunner(self.home, self.project, **options)

    def again(self, **options: Any) -> ToolRunner:
        """Another Marvin, after this one has ended."""
        self.runner.close()
        self.runner = ToolRunner(self.home, self.project, **options)
        return self.runner

    def refused(self, count: int = 1) -> str:
        """The message where calls cannot be undone."""
        with pytest.raises(MarvinError) as caught:
            self.runner.take_back(count)
        return str(caught.value)


class Commands(Desk):
    """Commands in a project, and what lies in it."""

    def write(self, **files: str | bytes) -> None:
        for name, content in files.items():
            self.at(name, content)

    def at(self, name: str, content: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def git(self, *words: str) -> str:
        settings = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *settings, *words], cwd=self.project, check=True, capture_output=True, text=True)
        return done.stdout

    @property
    def store(self) -> Path:
        """The folder of its snapshots."""
        (found,) = (self.home / ".local/share/marvin/snapshots").iterdir()
        return found

    def sh(self, command: str) -> None:
        outcome = self.runner.call(shell, command=command)
        assert outcome.text.endswith("[0]"), outcome.text

    @property
    def tree(self) -> dict[str, tuple[str, bytes]]:
        """What lies in the project, repositories aside."""
        found = {}
        for folder, folders, names in os.walk(self.project):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = Path(folder, name)
                mode = "link" if path.is_symlink() else oct(path.stat().st_mode & 0o777)
                content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
                found[str(path.relative_to(self.project))] = (mode, content)
        return found
