"""Folders for a process runner that belongs to no session."""

from __future__ import annotations

from pathlib import Path

from marvin_core import Record


class Folders(Record):
    """Programs run in `root`; what Marvin writes goes below `base`."""

    root: Path
    base: Path

    def folder(self, name: str) -> Path:
        """The folder of this name."""
        return self.base / name
