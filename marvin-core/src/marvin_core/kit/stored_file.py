"""Data files of tools: shared by all running Marvins, and changed atomically."""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from ..api.errors import ToolError
from ..api.timeouts import Timeouts
from ..util.state_files import LockTimeout, locked, replace_file, set_aside
from ..util.text import one_line
from ..util.threads import in_thread
from ..util.untrusted_json import LARGEST

Data = TypeVar("Data")
T = TypeVar("T")

_WHY = 200


class StoredFile(Generic[Data]):
    """The data in a file, read and changed as a whole.

    Changes are atomic and made under a file lock: no change of another process is lost, and a process that is killed
    leaves the old content or the new. A damaged file is renamed, never overwritten, and the error of that call says so;
    the next call begins with an empty file.

    Args:
        path: the file; its folders are created, for this user alone, with the first change.
        check: raises a ValueError with the reason if the data is invalid, which counts as damage.
        timeouts: how long to wait for the lock: `PackContext.timeouts`. Otherwise the
            defaults.
    """

    _moves_when_read = True

    def __init__(
        self, path: Path, check: Callable[[Data], None] = lambda data: None, *, timeouts: Timeouts | None = None
    ) -> None:
        self.path = path
        self._check = check
        self._timeouts = timeouts or Timeouts()

    async def read(self) -> Data:
        """The data; empty if the file does not exist.

        Raises:
            ToolError: it is damaged, or cannot be read.
        """
        return await in_thread(self._read)

    async def change(self, work: Callable[[Data], T]) -> T:
        """Call `work` to change the data in place, while no other process does; returns its result.

        `work` runs in a thread. If it raises, nothing is changed. If it changes nothing, nothing is written.

        Raises:
            ToolError: the file is damaged, or cannot be read or written, or cannot hold the data, or another
                process holds the lock for too long; the content of the file is unchanged.
        """
        return await in_thread(lambda: self._change(work))

    @abstractmethod
    def _parsed(self, content: bytes | None) -> Data:
        """Parse the content of a file, None for no file. Raises ValueError."""

    @abstractmethod
    def _written(self, data: Data, content: bytes | None) -> bytes:
        """The new content of a file. Raises ValueError."""

    def _read(self) -> Data:
        with self._explained():
            content = self._content()
        try:
            return self._checked(content)
        except ValueError as error:
            if not self._moves_when_read:
                raise ToolError(
                    f"{self.path} is damaged: {_why(error)}. It was left unchanged. Ask the user to repair it."
                ) from error
        # Checked again under the lock: another process may have written a good file meanwhile.
        with ExitStack() as lock:
            return self._held(lock)[0]

    def _change(self, work: Callable[[Data], T]) -> T:
        with ExitStack() as lock:
            data, content = self._held(lock)
            before = self._fitting(data, content)
            result = work(data)
            after = self._fitting(data, content)
            if after != before:
                self._check_readable(after)
                with self._explained():
                    replace_file(self.path, after)
            return result

    def _held(self, lock: ExitStack) -> tuple[Data, bytes | None]:
        """The data and the content of the file, with its lock held; a damaged file is renamed."""
        with self._explained():
            lock.enter_context(locked(self.path, self._timeouts.lock, self._timeouts.lock_poll))
            content = self._content()
        try:
            return self._checked(content), content
        except ValueError as error:
            with self._explained():
                moved = set_aside(self.path)
            raise ToolError(
                f"{self.path} is damaged: {_why(error)}. It was moved to {moved.name}, and nothing else was done. "
                "Tell the user, who can repair it and move it back. The next call starts with an empty file."
            ) from error

    def _checked(self, content: bytes | None) -> Data:
        data = self._parsed(content)
        self._check(data)
        return data

    def _fitting(self, data: Data, content: bytes | None) -> bytes:
        try:
            return self._written(data, content)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError(f"{self.path} cannot store this: {_why(error)}. Nothing was changed.") from error

    def _check_readable(self, content: bytes) -> None:
        """Refuse to write data that would count as damage when it is read."""
        try:
            if len(content) > LARGEST:
                raise ValueError(f"it is larger than {LARGEST:,} bytes")
            self._checked(content)
        except ValueError as error:
            raise ToolError(f"{self.path} cannot store this: {_why(error)}. Nothing was changed.") from error

    def _content(self) -> bytes | None:
        """The content of the file; a pipe or a device, which may never end, is an error."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                what = "is not a file" if not stat.S_ISREG(status.st_mode) else f"is larger than {LARGEST:,} bytes"
                raise ToolError(f"{self.path} {what}. Ask the user to move it away.")
            return stream.read()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ToolError(
                f"{self.path} cannot be read or written: {error.strerror or error}. Tell the user."
            ) from error
        except LockTimeout as error:
            raise ToolError(str(error)) from error


def _why(error: Exception) -> str:
    return one_line(str(error), _WHY)
