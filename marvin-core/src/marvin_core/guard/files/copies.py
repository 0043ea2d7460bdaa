"""A private copy of a file with a real path, for libraries that open files by name.

Whoever opens a path by its name again can be led elsewhere by a link that was swapped meanwhile. So what such a library
gets is a copy in a private folder, which is put back in one step.
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
"""The age, in seconds, of a copy whose program was killed."""
_PREFIX = "copy-"


@contextmanager
def private_folder(base: Path | None) -> Iterator[Path]:
    """A new folder that only this user can look into, below `base`; removed with all that is in it."""
    import tempfile

    if base is not None:
        make_private_folder(base)
        for name in forgotten(base, lambda name: name.startswith(_PREFIX), _FORGOTTEN):
            shutil.rmtree(base / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def state_of(status: os.stat_result | None) -> tuple[int, ...]:
    """What is another one after a file was changed or replaced."""
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def content_of(source: BinaryIO) -> Callable[[BinaryIO], None]:
    """Copies the source to what it is called with, in pieces."""
    return partial(shutil.copyfileobj, source)


class Copy:
    """The copy of one file, which may be missing. `path` is where it is."""

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
        """Whether it was written to, or made."""
        now = self._state()
        return bool(now) and now != self._before

    def check_closed(self, shown: str) -> None:
        """Raise `ToolError` where files beside the copy hold a part of its content, as those of an open database do."""
        others = [each.name for each in self.path.parent.iterdir() if each != self.path and each.stat().st_size]
        if others:
            raise ToolError(
                f"{shown!r} was not written: {', '.join(sorted(others))} is still open beside it. Close what was "
                "opened before the block ends."
            )
