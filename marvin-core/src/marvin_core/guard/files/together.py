"""Writing and deleting several files: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import BinaryIO

from ...api.errors import FileChanged, ToolError
from ...api.tool_context import FileWrite
from .copies import state_of
from .errors import describe_failure
from .folder_descriptors import Place
from .writing import Prepared, discard, temporary_name


class Step:
    """One file: the planned operation, its place, and its status."""

    def __init__(self, change: FileWrite, place: Place, old: os.stat_result | None) -> None:
        self.change = change
        self.before = change.expected if change.expected is not None else old
        self._place = place
        self._there = old is not None
        self._data = change.data
        self._prepared: Prepared | None = None
        self._backup = ""

    def prepare(self) -> None:
        """Write the new content beside the file."""
        if self._data is not None:
            with self._failures():
                self._prepared = Prepared(self._place, self._write, self.before)

    def _write(self, stream: BinaryIO) -> None:
        if not self._there and self.change.mode is not None:
            os.fchmod(stream.fileno(), self.change.mode & 0o700)  # before anyone could read its content
        stream.write(self._data or b"")
        if not self._there and self.change.mode is not None:
            stream.flush()
            os.fchmod(stream.fileno(), self.change.mode)

    def check(self) -> None:
        """Check the file again; raises `FileChanged`."""
        try:
            now: os.stat_result | None = self._place.status()
        except FileNotFoundError:
            now = None
        path = self.change.path
        if self.change.create_only and now is not None:
            raise FileChanged(f"{path!r} was created by another program in the meantime; nothing was changed.")
        if not self.change.create_only and state_of(now) != state_of(self.before):
            raise FileChanged(
                f"{path!r} was changed by another program in the meantime, so this change was not made. Read it again."
            )

    def keep(self) -> None:
        """Keep the old file under another name, until `finish`."""
        if not self._there:
            return
        place, self._backup = self._place, temporary_name()
        with self._failures():
            try:
                os.link(
                    place.name,
                    self._backup,
                    src_dir_fd=place.folder,
                    dst_dir_fd=place.folder,
                    follow_symlinks=False,
                )
            except OSError:  # the file system has no hard links
                os.rename(place.name, self._backup, src_dir_fd=place.folder, dst_dir_fd=place.folder)

    def put(self) -> None:
        """Put the new file in place, or remove the file."""
        with self._failures():
            if self._prepared is not None:
                self._prepared.put(create_only=self.change.create_only)
            else:
                with suppress(FileNotFoundError):  # it has only the other name by now
                    os.unlink(self._place.name, dir_fd=self._place.folder)

    def take_back(self) -> None:
        """Restore the old file."""
        place = self._place
        if self._backup:
            with suppress(OSError):
                os.replace(self._backup, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        elif self._prepared is not None:
            discard(place.name, place.folder)

    def finish(self) -> None:
        """Remove the temporary files."""
        if self._prepared is not None:
            self._prepared.discard()
        if self._backup:
            discard(self._backup, self._place.folder)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            action = "write" if self._data is not None else "remove"
            raise ToolError(describe_failure(error, self.change.path, action)) from error


def write_together(steps: Sequence[Step], lock: AbstractContextManager[None]) -> None:
    """Write and remove files; all new content is written beside them before the first is put in place.

    Args:
        lock: held from the second check to the end.

    Raises:
        FileChanged: the content of a file is not what its change expects; nothing was changed.
        ToolError: the system refuses something; nothing was changed.
    """
    try:
        for step in steps:
            step.prepare()
        with lock:
            for step in steps:
                step.check()
            with ExitStack() as undo:
                for step in steps:
                    if len(steps) > 1:
                        undo.callback(step.take_back)
                        step.keep()
                    step.put()
                undo.pop_all()
    finally:
        for step in steps:
            step.finish()
