"""The sandboxed files that a call can use. What it changes there is recorded for undo."""

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
    """Observes files before they are changed."""

    def check(self) -> None:
        """Raise `ToolError` if no file may be changed any more."""
        ...

    def wants(self, root: Path, path: str) -> bool:
        """Whether this file was not seen before."""
        ...

    def opened(self, root: Path, path: str) -> None:
        """Called for each file that is opened for reading."""
        ...

    def before(self, paths: SandboxPaths, path: str, stream: BinaryIO | None, lacks: str = "") -> None:
        """Records a file before its change: None if it is missing, `lacks` says why it cannot be read."""
        ...


class WatchedPaths(SandboxPaths):
    """The same files as other paths, with a watcher that sees each read, and each file before its change."""

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
        """Create a folder, unless the call was abandoned."""
        self._watcher.check()
        return super().make_folder(path)

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder, unless the call was abandoned."""
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
        except OSError as error:  # it does not prevent the change
            self._watcher.before(self._unwatched, path, None, f"it could not be read: {error.strerror}")
