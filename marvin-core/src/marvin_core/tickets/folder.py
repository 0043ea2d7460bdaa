"""The folder of the tickets: it is found from a working folder, read completely, and changed by one writer at a time.

All access goes through the folder's descriptor, and links among the tickets are ignored. So a link that somebody puts
there, or in the place of the folder, leads nowhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from .ticket import Ticket, TicketError, is_complete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..api.timeouts import Timeouts

NAME = ".tickets"
_SUFFIX = ".md"
_LOCK = ".lock"
_TEMPORARY = ".marvin-tmp"
"""The name of a file that will replace a ticket. Only the holder of the lock writes it."""
_HEAD = 65_536
"""The bytes of a file that are read for a list, if they contain the front matter and the title."""
_FURTHER = 1_000_000
"""The maximum bytes that are read for a list otherwise."""
_LARGEST = 50_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def find_ticket_folder(start: str, tickets_dir: str = "") -> str | None:
    """The folder of the tickets: that of TICKETS_DIR, otherwise the nearest `.tickets` in a folder or above it.

    Args:
        start: an absolute path.
        tickets_dir: the value of TICKETS_DIR, which may be relative to `start`.
    """
    if tickets_dir:
        return os.path.join(start, tickets_dir)
    while True:
        found = os.path.join(start, NAME)
        if os.path.isdir(found):
            return found
        above = os.path.dirname(start)
        if above == start:
            return None
        start = above


class TicketFolder:
    """The tickets in a folder. Use it as a context manager, which closes its descriptor at the end.

    Args:
        path: the folder, which exists.
        follow: whether the folder may be a link: if a person chose it, and not a repository.
        timeouts: the timeouts for other writers, if they differ from the default ones.

    Raises:
        TicketError: there is no such folder, or it cannot be read.
    """

    def __init__(self, path: str, *, follow: bool = True, timeouts: Timeouts | None = None) -> None:
        self.path = path
        self._timeouts = timeouts
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        try:
            self._descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise TicketError(_why_not_opened(path, error)) from None

    def __enter__(self) -> TicketFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    # --- reading ---------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all tickets, in order. Hidden files are ignored."""
        with os.scandir(self._descriptor) as entries:
            found = [entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.name[0] != "."]
        return sorted(name[: -len(_SUFFIX)] for name in found)

    def all(self) -> dict[str, Ticket]:
        """Every ticket with an id, by id, in the order of the files.

        Of large files only the necessary beginning is read; unreadable files are left out.
        """
        found: dict[str, Ticket] = {}
        for name in self.names():
            try:
                ticket = Ticket(name, self._read(name, whole=False))
            except (OSError, TicketError):
                continue
            if ticket.id:
                found.setdefault(ticket.id, ticket)
        return found

    def newest(self, most: int) -> Iterator[Ticket]:
        """The tickets with the latest changes, newest first."""
        found = []
        for name in self.names():
            try:
                status = os.stat(name + _SUFFIX, dir_fd=self._descriptor, follow_symlinks=False)
            except OSError:
                continue
            found.append((-status.st_mtime_ns, name))
        for _, name in sorted(found)[:most]:
            try:
                yield Ticket(name, self._read(name, whole=False))
            except (OSError, TicketError):
                continue

    def resolve(self, given: str) -> str:
        """The name of the ticket with this id, or with an id that contains this text.

        Raises:
            TicketError: no ticket matches, or several do.
        """
        given = given.strip()
        if given and "/" not in given and "\0" not in given and given[0] != ".":
            try:
                if stat.S_ISREG(os.lstat(given + _SUFFIX, dir_fd=self._descriptor).st_mode):
                    return given
            except (OSError, ValueError):
                pass
        found = [name for name in self.names() if given in name] if given else []
        if not found:
            raise TicketError(f"Error: ticket '{given}' not found")
        if len(found) > 1:
            raise TicketError(f"Error: ambiguous ID '{given}' matches multiple tickets")
        return found[0]

    def read(self, name: str) -> Ticket:
        """A ticket with its whole text.

        Raises:
            TicketError: the file cannot be read, is a link, or is too large for a ticket.
        """
        try:
            return Ticket(name, self._read(name, whole=True))
        except FileNotFoundError:
            raise TicketError(f"Error: ticket '{name}' not found") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise TicketError(f"Error: ticket '{name}' is a link, and links are not followed") from None
            raise TicketError(f"Error: ticket '{name}' cannot be read: {error.strerror}") from None

    def _read(self, name: str, *, whole: bool) -> str:
        descriptor = os.open(name + _SUFFIX, _READ, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise TicketError(f"Error: ticket '{name}' is not a regular file")
            if status.st_size > _LARGEST:
                raise TicketError(f"Error: ticket '{name}' has {status.st_size:,} bytes; the maximum is {_LARGEST:,}")
            pieces = bytearray(os.read(descriptor, _HEAD))
            if len(pieces) == _HEAD and (whole or not is_complete(_decoded(pieces))):
                most = _LARGEST if whole else _FURTHER
                while len(pieces) < most and (read := os.read(descriptor, _FURTHER)):
                    pieces += read
            return _decoded(pieces)
        finally:
            os.close(descriptor)

    # --- writing ---------------------------------------------------------------------------------------------------

    def locked(self) -> AbstractContextManager[None]:
        """A context that holds the lock for one read-modify-write. Every writer holds it, so no change is lost."""
        return Lock(self.path, self._descriptor, self._timeouts)

    def write(self, name: str, text: str) -> None:
        """Replace the text of a ticket in one step; call this under the lock. The mode of the file is kept.

        Raises:
            TicketError: the folder or the file cannot be written. The old text is then unchanged.
        """
        try:
            mode = os.stat(name + _SUFFIX, dir_fd=self._descriptor, follow_symlinks=False).st_mode
            self._write_temporary(text, stat.S_IMODE(mode))
            os.rename(_TEMPORARY, name + _SUFFIX, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError as error:
            raise TicketError(f"Error: ticket '{name}' cannot be written: {error.strerror}") from None

    def create(self, new_name: Callable[[], str], text: Callable[[str], str]) -> str:
        """Create a ticket with an unused name; returns the name. Call this under the lock.

        Args:
            new_name: returns a different name at each call.
            text: returns the text of the ticket for its name.

        Raises:
            TicketError: the folder or the file cannot be written.
        """
        name = new_name()
        try:
            while self._exists(name):
                name = new_name()
            self._write_temporary(text(name), None)
            os.rename(_TEMPORARY, name + _SUFFIX, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise TicketError(f"Error: the ticket cannot be written: {reason}") from None
        return name

    def _exists(self, name: str) -> bool:
        try:
            os.lstat(name + _SUFFIX, dir_fd=self._descriptor)
        except FileNotFoundError:
            return False
        return True

    def _write_temporary(self, text: str, mode: int | None) -> None:
        try:
            os.unlink(_TEMPORARY, dir_fd=self._descriptor)  # of a writer that was killed
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_TEMPORARY, flags, 0o666, dir_fd=self._descriptor)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            data = memoryview(text.encode("utf-8", "surrogateescape"))
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        except BaseException:
            os.unlink(_TEMPORARY, dir_fd=self._descriptor)
            raise
        finally:
            os.close(descriptor)


class Lock:
    """The lock of a folder, on the folder itself: it leaves no file that would be committed with the tickets."""

    def __init__(self, path: str, folder: int, timeouts: Timeouts | None) -> None:
        self._path = path
        self._folder = folder
        self._timeouts = timeouts
        self._own = -1

    def __enter__(self) -> None:
        try:
            self._take(self._folder)
        except OSError as error:
            # Network file systems lock only what is open for writing, which no folder can be.
            if error.errno not in (errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOLCK, errno.ENOTSUP):
                raise TicketError(f"Error: {self._path} cannot be locked: {error.strerror}") from None
            self._own = os.open(
                _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._folder
            )
            self._take(self._own)

    def __exit__(self, *_: object) -> None:
        if self._own >= 0:
            os.close(self._own)
        else:
            fcntl.flock(self._folder, fcntl.LOCK_UN)

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Only who has to wait pays for these imports.
            from ..api.timeouts import Timeouts
            from ..util.state_files import LockTimeout, acquire

            limits = self._timeouts or Timeouts()
            try:
                acquire(descriptor, limits.lock, limits.lock_poll, self._path)
            except LockTimeout as error:
                raise TicketError(f"Error: {error}") from None


def make_folder(path: str) -> None:
    """Create the folder of the tickets, and those above it.

    Raises:
        TicketError: it cannot be created.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TicketError(f"Error: {path} cannot be created: {reason}") from None


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "surrogateescape")


def _why_not_opened(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"Error: tickets directory '{path}' does not exist"
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.islink(path):
        return f"Error: '{path}' is a link. Set TICKETS_DIR to the intended folder"
    reason = error.strerror if isinstance(error, OSError) else error
    return f"Error: tickets directory '{path}' cannot be opened: {reason}"
