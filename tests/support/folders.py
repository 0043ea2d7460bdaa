"""Folders of a test's own: for a process runner that belongs to no session, and for a pytest that a test starts."""

from __future__ import annotations

from pathlib import Path

from marvin_core import Record


class Folders(Record):
    """Programs run in `root`; what Marvin writes goes below `base`."""

    root: Path
    base: Path
    playing: bool = False

    def folder(self, name: str) -> Path:
        """The folder of this name."""
        return self.base / name


def own_temproot(folder: Path) -> dict[str, str]:
    """The variable that gives a pytest its temporary files here.

    In the folder that all runs share, it would at its end remove what earlier runs left there: many thousand files.
    """
    return {"PYTEST_DEBUG_TEMPROOT": str(folder)}
