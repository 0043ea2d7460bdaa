"""Opening, creating and deleting folders below a root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ...api.errors import PathRefused, ToolError
from .path_checks import PathChecks

if TYPE_CHECKING:
    from .folder_descriptors import Descent


class FolderPaths(PathChecks):
    """Folders below one root. Thread-safe; holds no descriptor between calls."""

    def make_folder(self, path: str) -> bool:
        """Create a folder and its missing parents; returns whether it was missing.

        Raises:
            PathRefused: the path, or its link target, is outside or protected.
            ToolError: it cannot be created, for example because a file has that name.
        """

        def guard(made: tuple[str, ...]) -> None:
            self._check(path, made, writing=True)
            self._check_writable(path, made)

        parts = self._parts(path)
        self._check(path, parts, writing=True)
        with self._failures(path, parts, "make"), self._descent(path) as descent:
            try:
                # Its content can be resolved only where all of its folders exist.
                self._check(path, descent.place((*parts, "x"), make=guard).parts[:-1], writing=True)
                return descent.has_made
            except BaseException:
                descent.remove_made_folders()
                raise

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder.

        Raises:
            PathRefused: the path is outside or protected.
            ToolError: it does not exist, is not empty, or is a link.
        """
        parts = self._parts(path)
        self._check(path, parts, writing=True)
        with self._failures(path, parts, "remove"), self._descent(path) as descent:
            place = descent.place(parts)
            self._check(path, place.parts, writing=True)
            self._check_writable(path, place.parts)
            os.rmdir(place.name, dir_fd=place.folder)

    def _descent(self, path: str) -> Descent:
        from .folder_descriptors import Descent

        def outside() -> PathRefused:
            return self._refused(f"{path!r} is refused: it contains a link that leads out of the working directory.")

        return Descent(self._root, outside)

    @contextmanager
    def _failures(self, path: str, parts: tuple[str, ...], action: str) -> Iterator[None]:
        """Turn errors of the system into errors that the model can act on."""
        try:
            yield
        except OSError as error:
            if not self._root.is_dir():
                text = f"The working directory {self._root} no longer exists. Choose another one."
                raise ToolError(text) from error
            if isinstance(error, FileNotFoundError):
                text = f"File not found: {path!r}.{self._nearest(parts)} List its folder, or search for the name."
                raise ToolError(f"{text}\n{self.overview()}") from error
            from .errors import describe_failure

            raise ToolError(describe_failure(error, path, action)) from error

    def _nearest(self, parts: tuple[str, ...]) -> str:
        if not parts:
            return ""
        with suppress(OSError, ToolError), self._descent(parts[-1]) as descent:
            folder = descent.folder(parts[:-1])
            names = [name for name in folder.list() if not self._is_hidden((*folder.parts, name))]
            from .errors import nearest_names

            return nearest_names(parts, names)
        return ""
