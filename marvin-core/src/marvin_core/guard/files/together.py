"""Writing and deleting several files: all of them, or none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import BinaryIO

from ...api.errors import FileChanged, ToolError
from ...api.tool_context import FileWrite
from .copies import state_of
from .displacing import CHANGED, Displaced, NotTheChecked, displace, flaw_of, put_new
from .errors import describe_failure
from .folder_descriptors import Place
from .writing import Prepared


class Step:
    """One file: the planned operation, its place, and its status."""

    def __init__(self, change: FileWrite, place: Place, old: os.stat_result | None) -> None:
        self.change = change
        is_link = old is not None and stat.S_ISLNK(old.st_mode)  # it is removed itself, and what it leads to stays
        self.before = old if change.expected is None or is_link else change.expected
        self._content = None if is_link else change.content
        self._place = place
        self._is_new = old is None
        self._prepared: Prepared | None = None
        self._old: Displaced | None = None
        self._made: os.stat_result | None = None

    def prepare(self) -> None:
        """Write the new content beside the file."""
        if self.change.data is not None:
            with self._failures():
                self._prepared = Prepared(self._place, self._write, self.before)

    def _write(self, stream: BinaryIO) -> None:
        if self._is_new and self.change.mode is not None:
            os.fchmod(stream.fileno(), self.change.mode & 0o700)  # before anyone could read its content
        stream.write(self.change.data or b"")
        if self._is_new and self.change.mode is not None:
            stream.flush()
            os.fchmod(stream.fileno(), self.change.mode)

    def check(self) -> None:
        """Check the file again; raises `FileChanged`."""
        with self._failures():
            now = self._place.status() if self._place.exists() else None
            if now is not None and self.change.create_only:
                raise FileExistsError
            if state_of(now) != state_of(self.before):
                raise NotTheChecked(CHANGED, "")

    def put(self) -> None:
        """Put the new file in place, or take away the file that is to be removed, unless it was changed."""
        with self._failures():
            if self._prepared is not None and self.before is None:
                put_new(self._place, self._prepared.name)
                self._made = self._prepared.status
            else:
                self._displace()

    def _displace(self) -> None:
        new = None if self._prepared is None else self._prepared.name
        try:
            self._old = displace(self._place, new, self._flaw)
        except NotTheChecked:
            self._prepared = None  # it is removed already
            raise
        self._prepared = None  # its name is that of the old file now

    def _flaw(self, name: str) -> str:
        return flaw_of(name, self._place.folder, self.before, self._content)

    def take_back(self) -> None:
        """Restore the old file if it was replaced or moved, unless another program has changed the new one."""
        with self._failures():
            if self._old is not None:
                kept = self._old.give_back()
                if kept:
                    raise NotTheChecked(CHANGED, kept)
            elif self._made is not None:
                made = self._made
                with suppress(FileNotFoundError):
                    displace(self._place, None, lambda name: flaw_of(name, self._place.folder, made, None)).close()

    def finish(self) -> None:
        """Remove the temporary files."""
        if self._prepared is not None:
            self._prepared.discard()
        if self._old is not None:
            self._old.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        path = self.change.path
        try:
            yield
        except NotTheChecked as error:
            if error.kept:
                raise ToolError(
                    f"{path!r} {error}, several times at once. What has no place any more was saved as {error.kept!r}, "
                    "in the same folder. Compare the two files, and tell the user."
                ) from error
            raise FileChanged(f"{path!r} {error}, so this change was not made. Read it again.") from error
        except FileExistsError as error:
            raise FileChanged(
                f"{path!r} was created by another program in the meantime; nothing was changed."
            ) from error
        except OSError as error:
            action = "write" if self.change.data is not None else "remove"
            raise ToolError(describe_failure(error, path, action)) from error


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
                step.check()
            for step in steps:
                undo.callback(step.take_back)
                step.put()
            undo.pop_all()
    finally:
        for step in steps:
            step.finish()
