"""The pipeline's own files of a project, all below `.marvin`. No link on the way to one is followed."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from marvin_core import MarvinError, own_folder

_FOLDER = ".marvin"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
LARGEST = 2_000_000
"""Bytes of a document that are read."""


class FileFault(MarvinError):
    """A file of the pipeline cannot be read or written."""


class ProjectFiles:
    """The files below `.marvin` of one project; a name is relative to that, as `spec.md` or `logs/pipeline.jsonl`.

    Args:
        root: the project's folder, links resolved.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str, most: int = LARGEST) -> bytes | None:
        """The first bytes of a file; None where there is none, or a link or something else in its place.

        Raises:
            FileFault: it is there and cannot be read.
        """
        folder, base = self._place(name)
        if not folder.is_dir():
            return None
        try:
            with own_folder(self.root, folder) as opened, os.fdopen(os.open(base, _READ, dir_fd=opened), "rb") as file:
                return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link, perhaps one that leads nowhere
                return None
            raise self._fault(name, "read", error) from error

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder; none where there is no such folder, or a link in its place.

        Raises:
            FileFault: it is there and cannot be read.
        """
        path = self.root / _FOLDER / folder
        if path.is_symlink() or not path.is_dir():
            return []
        try:
            with own_folder(self.root, path) as opened:
                return sorted(os.listdir(opened))
        except OSError as error:
            raise self._fault(folder, "read", error) from error

    def text(self, name: str, most: int = LARGEST) -> str:
        """The same as text; empty where there is no such file."""
        return (self.read(name, most) or b"").decode("utf-8", "replace")

    def size(self, name: str) -> int | None:
        """The bytes of a file; None where there is no such file, a link or something else in its place included."""
        folder, base = self._place(name)
        if not folder.is_dir():
            return None
        try:
            with own_folder(self.root, folder) as opened:
                found = os.stat(base, dir_fd=opened, follow_symlinks=False)
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def write(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Put a file in its place as a whole: nobody sees a part of it.

        Raises:
            FileFault: it cannot be written.
        """
        folder, base = self._place(name)
        temporary = f".{base}.{os.urandom(6).hex()}.tmp"
        try:
            with own_folder(self.root, folder, 0o777) as opened:
                try:
                    with os.fdopen(os.open(temporary, _NEW, mode, dir_fd=opened), "wb") as file:
                        file.write(data)
                        file.flush()
                        os.fsync(file.fileno())
                    os.replace(temporary, base, src_dir_fd=opened, dst_dir_fd=opened)
                except OSError:
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=opened)
                    raise
        except OSError as error:
            raise self._fault(name, "written", error) from error

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, in one step.

        Raises:
            FileFault: it cannot be written.
        """
        folder, base = self._place(name)
        try:
            with own_folder(self.root, folder, 0o777) as opened:
                with os.fdopen(os.open(base, _APPEND, 0o666, dir_fd=opened), "wb", buffering=0) as file:
                    file.write(data)
        except OSError as error:
            raise self._fault(name, "written", error) from error

    def remove(self, name: str) -> None:
        """Remove a file, or a link in its place; nothing happens where there is none.

        Raises:
            FileFault: it cannot be removed.
        """
        folder, base = self._place(name)
        if not folder.is_dir():
            return
        try:
            with own_folder(self.root, folder) as opened, suppress(FileNotFoundError):
                os.unlink(base, dir_fd=opened)
        except OSError as error:
            raise self._fault(name, "removed", error) from error

    def _place(self, name: str) -> tuple[Path, str]:
        path = self.root / _FOLDER / name
        return path.parent, path.name

    def _fault(self, name: str, what: str, error: OSError) -> FileFault:
        why = "there is a link or a file in the way" if error.strerror is None else error.strerror
        return FileFault(f"{_FOLDER}/{name} cannot be {what}: {why}. Mend that, and run the pipeline again.")
