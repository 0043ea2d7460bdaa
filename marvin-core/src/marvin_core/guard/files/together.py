"""Writing and deleting several files: all of them, or none."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import BinaryIO

from ...api.errors import FileChanged, ToolError
from ...api.tool_context import FileWrite
from .copies import state_of
from .errors import describe_failure
from .folder_descriptors import Place
from .no_links import READ
from .writing import Prepared, discard, temporary_name


class Step:
    """One file: the planned operation, its place, and its status."""

    def __init__(self, change: FileWrite, place: Place, old: os.stat_result | None) -> None:
        self.change = change
        is_link = old is not None and stat.S_ISLNK(old.st_mode)  # it is removed itself, and what it leads to stays
        self.before = old if change.expected is None or is_link else change.expected
        self._place = place
        self._there = old is not None
        self._data = change.data
        self._prepared: Prepared | None = None
        self._backup = ""
        self._copy: Prepared | None = None
        self._new: os.stat_result | None = None

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
        self._compare(self._status(self._place.name))

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._place.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _compare(self, now: os.stat_result | None) -> None:
        path = self.change.path
        if self.change.create_only and now is not None:
            raise FileChanged(f"{path!r} was created by another program in the meantime; nothing was changed.")
        if not self.change.create_only and state_of(now) != state_of(self.before):
            raise FileChanged(
                f"{path!r} was changed by another program in the meantime, so this change was not made. Read it again."
            )

    def keep(self, *, is_alone: bool) -> None:
        """Keep a file that will be replaced under a second name, until `finish`.

        Without hard links there is a copy instead; none for a file that is written alone, as nothing after it can fail.
        """
        if not self._there or self._data is None:
            return
        place, kept = self._place, temporary_name()
        with self._failures():
            try:
                os.link(place.name, kept, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
                self._backup = kept
            except FileNotFoundError:
                pass  # `put` tells
            except OSError:  # the file system has none, or the file is another user's
                if not is_alone:
                    self._copy = Prepared(place, self._copied, self.before)

    def _copied(self, stream: BinaryIO) -> None:
        with os.fdopen(os.open(self._place.name, READ, dir_fd=self._place.folder), "rb") as old:
            shutil.copyfileobj(old, stream)

    def put(self) -> None:
        """Put the new file in place, or move the file aside that is to be removed, unless it was changed."""
        place = self._place
        with self._failures():
            self.check()
            if self._prepared is not None:
                self._prepared.put(create_only=self.change.create_only)
                self._new = self._prepared.status
            else:
                kept = temporary_name()
                os.rename(place.name, kept, src_dir_fd=place.folder, dst_dir_fd=place.folder)
                self._backup = kept

    def check_kept(self) -> None:
        """Check the old file after it was replaced or moved: a program may have saved it in that moment."""
        now = self._status(self._backup) if self._backup else None
        if now is not None:  # another program may have removed it, as `git clean` does
            self._compare(now)

    def take_back(self) -> None:
        """Restore the old file if it was replaced or moved, unless another program has changed the new one."""
        place = self._place
        if self._data is not None and self._new is None:
            return
        with suppress(OSError):
            if state_of(self._status(place.name)) != state_of(self._new):
                return
            if self._backup:
                os.replace(self._backup, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            elif self._copy is not None:
                self._copy.put()
            elif not self._there:
                os.unlink(place.name, dir_fd=place.folder)

    def finish(self) -> None:
        """Remove the temporary files."""
        for prepared in (self._prepared, self._copy):
            if prepared is not None:
                prepared.discard()
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
        with lock, ExitStack() as undo:
            for step in steps:
                undo.callback(step.take_back)
                step.keep(is_alone=len(steps) == 1)
            for step in steps:
                step.check()
            for step in steps:
                step.put()
            for step in steps:
                step.check_kept()
            undo.pop_all()
    finally:
        for step in steps:
            step.finish()
