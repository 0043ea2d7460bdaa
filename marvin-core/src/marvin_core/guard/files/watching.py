"""The sandboxed files of a call whose changes are recorded for undo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from .sandbox import SandboxPaths

if TYPE_CHECKING:
    from .folder_descriptors import Place

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class Watcher(Protocol):
    """Sees the files that are about to be changed."""

    def check(self) -> None:
        """Raise `ToolError` where nothing is to be changed any more."""
        ...

    def wants(self, root: Path, path: str) -> bool:
        """Whether it has not seen this file yet."""
        ...

    def opened(self, root: Path, path: str) -> None:
        """A file was opened for reading."""
        ...

    def before(self, paths: SandboxPaths, path: str, stream: BinaryIO | None, lacks: str = "") -> None:
        """A file as it is before the change, None where there is none; or why it cannot be seen, as `lacks`."""
        ...


class WatchedPaths(SandboxPaths):
    """The same files as other paths, of which a watcher sees what is read, and each before it is written or removed."""

    def __init__(self, paths: SandboxPaths, watcher: Watcher) -> None:
        self.__dict__.update(vars(paths))
        self._unwatched = paths
        self._watcher = watcher

    def _opened(self, place: Place) -> None:
        self._watcher.opened(self.root, "/".join(place.parts))

    @contextmanager
    def _writing(self, path: str) -> Iterator[tuple[Place, os.stat_result | None]]:
        with super()._writing(path) as (place, old):
            self._show(place)
            yield place, old

    def make_folder(self, path: str) -> bool:
        """Make a folder, unless the call was given up."""
        self._watcher.check()
        return super().make_folder(path)

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder, unless the call was given up."""
        self._watcher.check()
        super().remove_folder(path)

    def _before_removal(self, place: Place, *, is_link: bool) -> None:
        self._show(place, "it was a link" if is_link else "")

    def _show(self, place: Place, lacks: str = "") -> None:
        self._watcher.check()
        path = "/".join(place.parts)
        if not self._watcher.wants(self.root, path):
            return
        if lacks or not place.exists():
            self._watcher.before(self._unwatched, path, None, lacks)
            return
        try:
            with os.fdopen(os.open(place.name, _READ, dir_fd=place.folder), "rb") as stream:
                self._watcher.before(self._unwatched, path, stream)
        except OSError as error:  # it does not hold up the change
            self._watcher.before(self._unwatched, path, None, f"it could not be read: {error.strerror}")
