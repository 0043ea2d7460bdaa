"""A private copy of a file with a real path, for libraries that open files by name.

Opening a path by its name again may follow a link that was swapped meanwhile. So such a library gets a copy in a
private folder, and the copy replaces the file in one step.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...api.errors import ToolError
from ...util.state_files import forgotten, make_private_folder

_FORGOTTEN = 86_400
"""The age, in seconds, after which a copy counts as left by a killed program."""
_PREFIX = "copy-"


@contextmanager
def private_folder(base: Path | None) -> Iterator[Path]:
    """A new folder below `base` that only this user can access; removed with its content."""
    import tempfile

    if base is not None:
        make_private_folder(base)
        for name in forgotten(base, lambda name: name.startswith(_PREFIX), _FORGOTTEN):
            shutil.rmtree(base / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def state_of(status: os.stat_result | None) -> tuple[int, ...]:
    """The values that differ once a file was changed or replaced."""
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def content_of(source: BinaryIO) -> Callable[[BinaryIO], None]:
    """Copies the source into the target that it is called with, in chunks."""
    return partial(shutil.copyfileobj, source)


class Copy:
    """The copy of one file, which may be missing. `path` is the path of the copy."""

    def __init__(self, folder: Path, name: str, content: BinaryIO | None = None) -> None:
        self.path = folder / name
        if content is not None:
            with self.path.open("xb") as stream:
                shutil.copyfileobj(content, stream)
        self._before = self._state()

    def _state(self) -> tuple[int, ...]:
        try:
            return state_of(self.path.stat())
        except FileNotFoundError:
            return state_of(None)

    @property
    def is_changed(self) -> bool:
        """Whether the copy was changed or created."""
        now = self._state()
        return bool(now) and now != self._before

    def check_closed(self, shown: str) -> None:
        """Raise `ToolError` if files beside the copy hold part of its content, as for an open database."""
        others = [each.name for each in self.path.parent.iterdir() if each != self.path and each.stat().st_size]
        if others:
            raise ToolError(
                f"{shown!r} was not written: {', '.join(sorted(others))} is still open beside it. Close what was "
                "opened before the block ends."
            )
