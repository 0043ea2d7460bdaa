"""A dry run of the changes of a call: planned files in memory, without writing to disk."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from ...api.errors import ToolError
from .sandbox import SandboxPaths

if TYPE_CHECKING:
    from ...api.tool_context import FileInfo, FileWrite

_LARGEST = 4_000_000
"""Bytes of a file above which no preview is made: the diff would be too long to read."""


class NoPreviewError(Exception):
    """The effect of a call cannot be known without running it."""


class PreviewPaths(SandboxPaths):
    """Files as they are, and as a call would leave them. It refuses what the real sandbox refuses.

    Several calls may be tried in sequence: each sees the planned files of those before it.
    """

    def __init__(self, paths: SandboxPaths) -> None:
        super().__init__(paths.root)
        vars(self).update(vars(paths))
        self._written: dict[str, bytes | None] = {}
        self.changes: dict[str, tuple[bytes, bytes]] = {}
        """The planned changes: the content before and after, by path; none is empty."""

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Try one call; its changes are dropped if it fails."""
        before, self.changes = dict(self._written), {}
        try:
            yield
        except BaseException:
            self._written = before
            raise

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading, with its planned content."""
        place = self._place(path)
        if place not in self._written:
            return super().open(path)
        data = self._written[place]
        with self._failures(path, self._parts(path), "read"):
            if data is None:
                raise FileNotFoundError
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # whoever asked for it closes it
            file.name = place
            stream = BufferedRandom(file)
            stream.write(data)
            stream.seek(0)
        return stream

    def replace(self, path: str, data: bytes, *, create_only: bool = False) -> None:
        """Record the planned content of a file."""
        place = self._place_to_change(path)
        before = self._content(path, place)
        if create_only and before is not None:
            with self._failures(path, self._parts(path), "write"):
                raise FileExistsError
        self._note(place, before, data)

    def write_together(self, changes: Sequence[FileWrite]) -> None:
        """Record the planned content of several files."""
        for change in changes:
            if change.data is None:
                self.remove(change.path)
            else:
                self.replace(change.path, change.data, create_only=change.create_only)

    def append(self, path: str, data: bytes) -> None:
        """Record text planned for the end of a file."""
        place = self._place_to_change(path)
        before = self._content(path, place)
        self._note(place, before, (before or b"") + data)

    def remove(self, path: str) -> None:
        """Record a planned deletion."""
        place = self._place_to_change(path)
        before = self._content(path, place)
        with self._failures(path, self._parts(path), "remove"):
            if before is None:
                raise FileNotFoundError
        self._note(place, before, None)

    def make_folder(self, path: str) -> NoReturn:
        """Folders have no text to preview."""
        raise NoPreviewError

    def remove_folder(self, path: str) -> NoReturn:
        """The same."""
        raise NoPreviewError

    def exists(self, path: str) -> bool:
        """Whether the path would exist."""
        place = self._place(path)
        return self._written[place] is not None if place in self._written else super().exists(path)

    def stat(self, path: str) -> FileInfo:
        """The status of a file. Raises `NoPreviewError` for a planned file, whose status is unknown."""
        if self._place(path) in self._written:
            raise NoPreviewError
        return super().stat(path)

    def list(self, path: str = ".", most: int = 10_000) -> tuple[FileInfo, ...]:
        """The entries of a folder, as long as no change is planned."""
        self._nothing_written()
        return super().list(path, most)

    def glob(self, pattern: str, most: int = 1_000) -> tuple[str, ...]:
        """The matches of a pattern, as long as no change is planned."""
        self._nothing_written()
        return super().glob(pattern, most)

    @contextmanager
    def real_file(self, path: str, *, writing: bool = False) -> Iterator[Path]:
        """A copy for reading; the changes of a library cannot be previewed."""
        self._nothing_written()
        if writing:
            raise NoPreviewError
        with super().real_file(path) as copy:
            yield copy

    def _nothing_written(self) -> None:
        if self._written:
            raise NoPreviewError

    def _note(self, place: str, before: bytes | None, after: bytes | None) -> None:
        first = self.changes.get(place, (before or b"", b""))[0]
        self._written[place] = after
        self.changes[place] = (first, after or b"")

    def _content(self, path: str, place: str) -> bytes | None:
        """The current or planned content of a file; None if there is none."""
        if place in self._written:
            return self._written[place]
        try:
            with super().open(path) as stream:
                data = stream.read(_LARGEST + 1)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        if len(data) > _LARGEST:
            raise NoPreviewError
        return data

    def _place(self, path: str, *, writing: bool = False) -> str:
        """The path with links followed; the file may be missing."""
        parts = self._parts(path)
        with self._failures(path, parts, "write" if writing else "read"), self._descent(path) as descent:
            existing = descent.deepest(parts)
            place = descent.follow(descent.place(parts[: existing + 1]))
            found = (*place.parts, *parts[existing + 1 :])
            self._check(path, found, writing=writing)
            if writing:
                self._check_writable(path, found)
                if existing == len(parts) - 1:
                    self._writable_status(path, place)
                elif place.exists():
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return "/".join(found)

    def _place_to_change(self, path: str) -> str:
        if path.endswith("/"):
            raise ToolError(f"{path!r} is a folder. Give a file, without a slash at the end.")
        return self._place(path, writing=True)
