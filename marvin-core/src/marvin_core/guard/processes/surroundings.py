"""The dependencies of a runner of programs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class WorkFolders(Protocol):
    """The folders of programs and logs, evaluated again each time."""

    @property
    def root(self) -> Path:
        """The folder in which programs run if a call names none."""
        ...

    def folder(self, name: str) -> Path:
        """The folder of this name for Marvin's own files, such as `logs`."""
        ...


class Stoppable(Protocol):
    """A time-out that can be paused."""

    def stopped(self) -> AbstractContextManager[None]:
        """Pause it while the context lasts."""
        ...
