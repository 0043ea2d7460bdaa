"""Starts a program that can change files below some folders only, whatever links lead elsewhere.

git opens files by their names, and a folder may become a link at any moment. Landlock, a part of Linux, goes by the
folders themselves: https://docs.kernel.org/userspace-api/landlock.html

It is a separate script, so it imports the standard library only. The arguments are the folders, `--`, and the command.
Besides these folders, the program may write to devices, and to a private folder for temporary files. Two programs run
without all this: one in Marvin's sandbox, where what lies around the first folder is read-only, and one where Linux has
no Landlock of version 2 (Linux 5.19).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import sys
import time
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_OLDEST = 2
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_IN_FOLDERS = sum(1 << right for right in range(4, 14))
"""To remove, make, link and move files and folders."""
_DEVICES = "/dev"
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FAILED = 126
_BEGIN = "marvin-git-"
_LEFT_AFTER = 86_400


def main() -> int:
    """Run the command; returns its exit code."""
    end = sys.argv.index("--")
    folders, command = sys.argv[1:end], sys.argv[end + 1 :]
    if os.statvfs(os.path.dirname(folders[0])).f_flag & os.ST_RDONLY:
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder is removed
    temporary = _temporary()
    try:
        child = os.fork()
        if not child:
            _become(command, [*folders, *filter(None, [temporary])], temporary)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    if code < 0:  # end as the command did
        with suppress(OSError):  # some signals cannot be handled otherwise
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _temporary() -> str:
    """A new private folder; empty if none can be made, which git itself does not need."""
    for base in (os.environ.get("TMPDIR") or "/tmp", "/tmp"):
        folder = os.path.join(os.path.abspath(base), f"{_BEGIN}{os.urandom(12).hex()}")
        with suppress(OSError):
            os.mkdir(folder, 0o700)
            _remove_left(os.path.dirname(folder))
            return folder
    return ""


def _remove_left(base: str) -> None:
    """Remove the folders that killed launchers have left: no checkout takes that long."""
    oldest = time.time() - _LEFT_AFTER
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(_BEGIN) and entry.is_dir(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid() and status.st_mtime < oldest:
                    shutil.rmtree(entry.path, ignore_errors=True)


def _become(command: list[str], folders: list[str], temporary: str) -> None:
    try:
        _restrict([*folders, _DEVICES])
        os.execvpe(command[0], command, {**os.environ, **({"TMPDIR": temporary} if temporary else {})})
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(_FAILED)


def _restrict(folders: list[str]) -> None:
    """Let this process, and those that it starts, write below these folders only. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    if version < _OLDEST:
        return
    rights = _WRITE_FILE | _IN_FOLDERS | (_TRUNCATE if version > _OLDEST else 0)
    asked = struct.pack("=Q", rights)
    rules = _checked(libc.syscall(_CREATE, asked, ctypes.c_size_t(len(asked)), ctypes.c_uint32(0)))
    for folder in folders:
        opened = os.open(folder, _FOLDER)
        rule = struct.pack("=Qi", rights, opened)
        _checked(libc.syscall(_ADD, rules, ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0)))
        os.close(opened)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT, rules, ctypes.c_uint32(0)))
    os.close(rules)


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "Landlock")
    return returned


if __name__ == "__main__":
    sys.exit(main())
