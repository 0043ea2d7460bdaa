"""The dependencies of a runner of programs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class WorkFolders(Protocol):
    """Where programs run and where logs go, asked anew each time."""

    @property
    def root(self) -> Path:
        """The folder programs run in where a call names none."""
        ...

    def folder(self, name: str) -> Path:
        """The folder of this name for what Marvin itself writes, such as `logs`."""
        ...


class Stoppable(Protocol):
    """A time-out that can stand still."""

    def stopped(self) -> AbstractContextManager[None]:
        """Have no time pass meanwhile."""
        ...
