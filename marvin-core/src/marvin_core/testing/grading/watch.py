"""Watches the actions of a pack in this process, and rejects those that are not allowed in a check."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TypeAlias

Deed: TypeAlias = Literal["read", "write", "net", "exec"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The events of audit hooks: https://docs.python.org/3/library/audit_events.html. For each, the indexes of arguments
# with paths, and of the folder descriptors to which these are relative.
_WRITES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((1, 3),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
    "shutil.rmtree": ((0, 1),),
    "sqlite3.connect": ((0, None),),
}
_IN_MEMORY = (":memory:", b":memory:", "")
_SIGNALS = frozenset({"os.kill", "os.killpg"})
_CONNECTS = frozenset(
    {"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}
)
_STARTS = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen"}
)
_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_HARMLESS = ("/dev/null", "/dev/tty", "/proc/self/")
_OWN_FILE = __file__
_CORE = str(Path(__file__).parents[2]) + os.sep
_GUARD = os.path.join(_CORE, "guard", "processes", "")
_FOR_PACKS = (os.path.join(_CORE, "config", ""), os.path.join(_CORE, "plugins", "pack_access.py"))
"""Marvin's code that provides secrets, settings and folders to packs."""


class Watch:
    """Records the actions of a pack while `active`, and confines it to its temporary folders.

    There is one per process, since an audit hook cannot be removed. Files that a C library opens by itself are not
    seen.

    Args:
        places: the temporary folders; only these may be written to.
        code: the files and folders of the pack, to distinguish its actions from Marvin's own.
        scratch: the folder for temporary files, which do not count.
        programs: whether programs may be started. The pack's own Python code may always run in a child process.
    """

    def __init__(self, places: Sequence[Path], code: Sequence[str], scratch: Path, programs: bool) -> None:
        self._places = tuple(os.path.realpath(place) + os.sep for place in places)
        self._harmless = (*_HARMLESS, os.path.realpath(scratch) + os.sep)
        self._code = tuple(code)
        self._module = Path(code[0]).stem
        self._own: tuple[str, ...] = ()
        self._programs = programs
        self.active = False
        self.deeds: dict[Deed, dict[str, None]] = {}
        """The actions by kind, each with its paths."""
        self.refused: dict[str, None] = {}
        """The rejected actions."""
        self.held_back: dict[str, None] = {}
        """The programs that were not started."""
        sys.addaudithook(self._heard)

    def begin(self, own: Sequence[Path] = ()) -> None:
        """Clear the records, and start to watch. Writes to the folders `own` do not count."""
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in own)
        self.deeds, self.refused, self.held_back, self.active = {}, {}, {}, True

    def end(self) -> None:
        """Stop watching."""
        self.active = False

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            self._opened(arguments)
        elif event in _WRITES:
            for place, folder in _WRITES[event]:
                self._write(arguments[place], _folder(arguments, folder))
        elif event in _SIGNALS:
            self._signal(arguments)
        elif event in _CONNECTS:
            self._connect(event, arguments)
        elif event in _STARTS:
            self._start(event, arguments)

    def _opened(self, arguments: tuple[Any, ...]) -> None:
        path, _, flags = arguments
        if not _is_path(path) or not isinstance(flags, int):
            return
        if flags & _WRITING and not os.path.isdir(path):
            self._write(path)
        elif not flags & getattr(os, "O_DIRECTORY", 0) and _real(path).startswith(self._places) and self._is_packs():
            if self._is_for_pack():
                return
            self._note("read", _real(path))

    def _write(self, path: Any, folder: str = "") -> None:
        if not _is_path(path) or path in _IN_MEMORY:
            return
        real = _real(os.path.join(folder, os.fsdecode(path)))
        if real.startswith((*self._harmless, *self._own)) or not self._is_packs():
            return
        if self._is_for_pack():
            return
        self._note("write", real)
        if not f"{real}{os.sep}".startswith(self._places):
            self._refuse(f"wrote outside of its folders: {real}")

    def _signal(self, arguments: tuple[Any, ...]) -> None:
        # Numbers in test arguments may be the IDs of other processes.
        if self._is_packs() and not self._is_guarded():
            self._note("exec", f"a signal to {arguments[0]}")
            self._refuse(f"sent a signal to process {arguments[0]}")

    def _connect(self, event: str, arguments: tuple[Any, ...]) -> None:
        address = next((word for word in arguments if isinstance(word, (str, bytes, tuple))), "")
        local_pair = event == "socket.bind" and address in ("", b"", ("", 0), ("127.0.0.1", 0))
        if not local_pair and self._is_packs():
            self._note("net", f"{address!r}")
            self._refuse(f"connected to {address!r} without context.http")

    def _start(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_packs() and not self._is_own(arguments):
            program = next((os.fsdecode(word) for word in arguments if isinstance(word, (str, bytes))), event)
            name = os.path.basename(program)
            # A program that the tool chooses, and that the guard starts, is part of the tool. A shell runs what the
            # model wrote.
            if name in _SHELLS or not self._is_guarded():
                self._note("exec", name)
            if not self._programs:
                self.held_back[name] = None
                raise PermissionError(f"The check of a pack may not start programs: {program}")

    def _is_own(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the program is this Python interpreter with code of the pack."""
        words = [os.fsdecode(word) for word in arguments[1]] if len(arguments) > 1 and _is_list(arguments[1]) else []
        if not words or os.path.realpath(words[0]) != os.path.realpath(sys.executable):
            return False
        return any(word.partition(".")[0] == self._module or word.startswith(self._code) for word in words[1:])

    def _refuse(self, what: str) -> None:
        self.refused[what] = None
        raise PermissionError(f"The check of a pack does not allow a tool to do this: it {what}")

    def _note(self, deed: Deed, place: str) -> None:
        self.deeds.setdefault(deed, {})[place] = None

    def _is_packs(self) -> bool:
        """Whether the pack acts: its code is on the stack, or the code of a library's own thread."""
        files = list(_running())
        return any(file.startswith(self._code) for file in files) or not any(file.startswith(_CORE) for file in files)

    def _is_for_pack(self) -> bool:
        """Whether Marvin acts for the pack, because it requested a secret, its settings or a folder."""
        nearest = next((file for file in _running() if file.startswith((*_FOR_PACKS, *self._code))), "")
        return nearest.startswith(_FOR_PACKS)

    def _is_guarded(self) -> bool:
        """Whether the call comes from `context.processes`."""
        return any(file.startswith(_GUARD) for file in _running())


def _running() -> Iterator[str]:
    """The files on the call stack, innermost first, without this file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != _OWN_FILE:
            yield frame.f_code.co_filename
        frame = frame.f_back


def _folder(arguments: tuple[Any, ...], index: int | None) -> str:
    """The path of the folder descriptor to which a path is relative; empty if there is none."""
    if index is None or len(arguments) <= index or not isinstance(arguments[index], int) or arguments[index] < 0:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{arguments[index]}")
    except OSError:
        return ""  # not on Linux; the path counts as relative to the current folder, a temporary one


def _is_path(value: object) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(word, (str, bytes)) for word in value)


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))
