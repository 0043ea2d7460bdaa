"""Taking the place of exactly the file that was checked, so that nothing that another program saves is lost.

Between a check and a rename another program can save the file. So the new file is exchanged with the old one, which
is then checked under a name that no other program knows. If it is not the checked one, it gets its place back.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO, TypeAlias

from .copies import state_of
from .folder_descriptors import Place
from .no_links import READ
from .writing import Prepared, discard, temporary_name

_MISSING_ONLY, _EXCHANGE = (1, 2) if sys.platform == "linux" else (4, 2)
"""The flags of the call: the new name must be missing, and both names exist and change places."""
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
"""Errors for which the usual calls are tried; if that is not the reason, they raise it again."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_IDENTITY = os.O_CLOEXEC | (
    os.O_PATH | os.O_NOFOLLOW if sys.platform == "linux" else os.O_RDONLY | getattr(os, "O_SYMLINK", os.O_NOFOLLOW)
)
"""The flags to open a file or link so that its inode is not reused. On Linux that needs no permission to read."""
_MOST = 200
"""How often files are exchanged with other programs that exchange the same ones."""

Flaw: TypeAlias = Callable[[str], str]
"""Tells why the file of a name in the folder is not the one that was checked; an empty text if it is."""

CHANGED = "was changed by another program in the meantime"


class NotTheChecked(Exception):
    """Another program was faster, and its file is in place. The text is the reason.

    Attributes:
        kept: the name of a file with what yet another program saved at the same moment; usually empty.
    """

    def __init__(self, reason: str, kept: str) -> None:
        super().__init__(reason)
        self.kept = kept


def displace(place: Place, new: str | None, flaw: Flaw) -> Displaced:
    """Replace, or remove, exactly the file that was checked.

    Args:
        new: the name of the new file, in the same folder; None to remove the old one.

    Raises:
        NotTheChecked: it is another one, which is left alone. The new file is removed.
        OSError: nothing was changed, and the new file has its name.
    """
    old = Displaced(place, new, flaw)
    try:
        reason = old.flaw(old.name)
    except FileNotFoundError:  # another program has removed it, as `git clean` does
        reason = ""
    except OSError as error:
        reason = f"cannot be checked ({error.strerror})"
    if reason:
        kept = old.give_back()
        old.close()
        raise NotTheChecked(reason, kept)
    return old


def put(
    place: Place,
    write: Callable[[BinaryIO], object],
    old: os.stat_result | None,
    *,
    create_only: bool = False,
    flaw: Flaw | None = None,
) -> None:
    """Replace a file by the output of `write`, with `flaw` only the one that was checked.

    Raises:
        NotTheChecked, FileExistsError: another program was faster; its file stays.
        OSError: nothing was changed. In each case no other file is left behind.
    """
    prepared = Prepared(place, write, old)
    try:
        if create_only or (flaw is not None and old is None):
            put_new(place, prepared.name)
        elif flaw is not None:
            displace(place, prepared.name, flaw).close()
        else:
            # Not synced, unlike Marvin's own state: the sync would take ten times as long as all the rest.
            os.replace(prepared.name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except OSError:
        prepared.discard()
        raise


def put_new(place: Place, new: str) -> None:
    """Give a new file the name of the place. Raises `FileExistsError` if that exists, even just now."""
    if not _rename(place.folder, new, place.name, _MISSING_ONLY):
        # The first to create the name wins; the finished file then replaces the empty one.
        os.close(os.open(place.name, _CREATE, 0o666, dir_fd=place.folder))
        try:
            os.replace(new, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            discard(place.name, place.folder)
            raise


class Displaced:
    """An old file that has another name until it is closed, which removes it. Its place is free, or a new file has it.

    Raises:
        OSError: nothing was changed.
    """

    def __init__(self, place: Place, new: str | None, flaw: Flaw) -> None:
        self._place, self.flaw = place, flaw
        self._new = None if new is None else os.open(new, _IDENTITY, dir_fd=place.folder)
        try:
            self._status = None if self._new is None else os.fstat(self._new)
            self.name = self._taken(new)
        except BaseException:
            self.name = ""
            self.close()
            raise

    def _taken(self, new: str | None) -> str:
        """Take the place; returns the name that the old file has now."""
        folder, name, kept = self._place.folder, self._place.name, temporary_name()
        if new is None:
            os.rename(name, kept, src_dir_fd=folder, dst_dir_fd=folder)
            return kept
        if _rename(folder, new, name, _EXCHANGE):
            return new
        if not _link(self._place, kept):
            kept = _copy(self._place)
            self.flaw = lambda name: ""  # a copy is another file
        try:
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            discard(kept, folder)
            raise
        return kept

    def give_back(self) -> str:
        """Give the old file its place again, unless another program has saved a file there since.

        Returns:
            the name of a file with what another program saved and what has no place; usually an empty text.
        """
        held, self.name = self.name, ""  # whatever fails, it is not removed
        with suppress(FileNotFoundError):  # another program has removed it, as `git clean` does
            try:
                if self._new is None:
                    with suppress(FileExistsError):
                        put_new(self._place, held)
                else:
                    self._exchange_until_own(held)
                if self._is_intact(_status(held, self._place.folder)) or not self.flaw(held):
                    self.name = held
                    return ""
                return self._kept(held)
            except FileNotFoundError:
                raise
            except OSError:
                return held
        return ""

    def _kept(self, held: str) -> str:
        """Give a file a name that no sweep removes."""
        name = os.fsencode(self._place.name)[:200].decode(errors="ignore")
        kept = f"{name}.saved-{os.urandom(4).hex()}"
        os.rename(held, kept, src_dir_fd=self._place.folder, dst_dir_fd=self._place.folder)
        return kept

    def _exchange_until_own(self, held: str) -> None:
        """Exchange files until `held` is the new one. If that is gone, the latest file keeps the place."""
        folder, name = self._place.folder, self._place.name
        last: os.stat_result | None = None
        for _ in range(_MOST):
            given = _status(held, folder)
            try:
                if not _rename(folder, held, name, _EXCHANGE):
                    if self._is_intact(self._place.status()):
                        os.replace(held, name, src_dir_fd=folder, dst_dir_fd=folder)
                    return
            except FileNotFoundError:  # another program has removed the new file
                with suppress(FileExistsError):
                    put_new(self._place, held)
                    return
                continue
            got = _status(held, folder)
            if self._is_intact(got):
                return
            if last is not None and os.path.samestat(got, last) and not self._is_intact(None):
                return
            last = given

    def _is_intact(self, found: os.stat_result | None) -> bool:
        """Whether the new file exists as it was written; if given, whether it is the found one."""
        if self._new is None or self._status is None:
            return False
        now = os.fstat(self._new)
        is_found = found is None or os.path.samestat(found, now)
        return is_found and now.st_nlink > 0 and state_of(now) == state_of(self._status)

    def close(self) -> None:
        """Remove the old file. Only then can its inode be reused."""
        if self.name:
            discard(self.name, self._place.folder)
        if self._new is not None:
            os.close(self._new)
            self._new = None


def flaw_of(name: str, folder: int, checked: os.stat_result | None, content: bytes | None) -> str:
    """Why a displaced file is not the checked one; an empty text if it is.

    Args:
        content: what it had, if that is at hand: two changes can have the same time.
    """
    if state_of(_status(name, folder)) != state_of(checked):
        return CHANGED
    if content is None:
        return ""
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:  # it is a link, or this user may not read it
        return ""
    with os.fdopen(descriptor, "rb") as stream:
        return CHANGED if stream.read(len(content) + 1) != content else ""


def _status(name: str, folder: int) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _link(place: Place, other: str) -> bool:
    """Give a file a second name. Returns False if it can have none, or none that this user could remove again."""
    is_sticky = os.fstat(place.folder).st_mode & stat.S_ISVTX
    if is_sticky and place.status().st_uid != os.geteuid():
        return False
    try:
        os.link(place.name, other, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # the file system has no hard links, or the file is another user's
        return False
    return True


def _copy(place: Place) -> str:
    """A copy of a file beside it; returns its name."""
    with os.fdopen(os.open(place.name, READ, dir_fd=place.folder), "rb") as old:
        return Prepared(place, lambda stream: shutil.copyfileobj(old, stream), os.fstat(old.fileno())).name


def _rename(folder: int, old: str, new: str, flag: int) -> bool:
    """Rename in one step with a condition. Returns False if the system or the file system does not support that."""
    import ctypes

    call = _system_call()
    if call is None:
        return False
    if call(folder, os.fsencode(old), folder, os.fsencode(new), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), new)


@cache
def _system_call() -> Any:
    import ctypes

    names = {"linux": "renameat2", "darwin": "renameatx_np"}
    return getattr(ctypes.CDLL(None, use_errno=True), names.get(sys.platform, ""), None)
