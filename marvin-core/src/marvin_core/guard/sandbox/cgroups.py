"""Memory and process limits for a whole sandbox, by Linux control groups, version 2 or 1.

https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

_PREFIX = "marvin-sandbox-"
_FILES: Mapping[str, Mapping[str, str]] = {
    "2": {"memory": "memory.max", "pids": "pids.max"},
    "1": {"memory": "memory.limit_in_bytes", "pids": "pids.max"},
}
_numbers = count(1)


class ControlGroup:
    """The control groups of one sandbox: one, or one for each of memory and processes.

    `limited` names the limited resources: memory, pids.
    """

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self.limited: set[str] = set()

    def add(self, parent: Path, limits: Mapping[str, int], version: str) -> None:
        """Create a group below another one, with these limits; none if that is not allowed."""
        folder = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        _sweep(parent)
        try:
            folder.mkdir()
        except OSError:
            return
        self._folders.append(folder)
        for kind, limit in limits.items():
            with suppress(OSError):
                (folder / _FILES[version][kind]).write_text(str(limit), encoding="ascii")
                self.limited.add(kind)
        if "memory" in limits and version == "2":
            with suppress(OSError):  # otherwise the process could use all the swap space in addition
                (folder / "memory.swap.max").write_text("0", encoding="ascii")

    def take(self, pid: int) -> None:
        """Limit a process, and all processes that it starts from now on."""
        for folder in self._folders:
            try:
                (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
            except OSError:
                self.limited.clear()

    def remove(self) -> bool:
        """Remove the groups, and return whether they are gone. Groups with live processes stay."""
        for folder in tuple(self._folders):
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return False
            self._folders.remove(folder)
        return True


def control_group(memory: int, processes: int) -> ControlGroup:
    """Groups with these limits, as far as this user may make them.

    Args:
        memory: bytes.
        processes: the maximum number of processes at a time.
    """
    limits = {"memory": memory, "pids": processes}
    made = ControlGroup()
    for controllers, path in _own_groups():
        if not controllers:
            _add_unified(made, path, limits)
            continue
        wanted = {kind: limit for kind, limit in limits.items() if kind in controllers and kind not in made.limited}
        mounted = _mounted(",".join(controllers))
        if wanted and mounted is not None:
            made.add(mounted / path, wanted, "1")
    return made


def _add_unified(made: ControlGroup, path: str, limits: Mapping[str, int]) -> None:
    root = Path("/sys/fs/cgroup")
    own = root / path
    # A group that contains Marvin may not limit groups below it; groups beside it may be limited.
    for parent in (own.parent, own) if path else (own,):
        try:
            passed_on = (parent / "cgroup.subtree_control").read_text(encoding="ascii").split()
        except OSError:
            continue
        wanted = {kind: limit for kind, limit in limits.items() if kind in passed_on}
        if wanted:
            made.add(parent, wanted, "2")
        if made.limited:
            return


def _own_groups() -> list[tuple[list[str], str]]:
    """The groups of this process: the controllers of each (none for version 2), and its path."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found.append(([name for name in controllers.split(",") if name], path.strip("/")))
    return found


def _mounted(controllers: str) -> Path | None:
    folder = Path("/sys/fs/cgroup") / controllers
    return folder if folder.is_dir() else None


def _sweep(parent: Path) -> None:
    """Remove groups of sandboxes whose Marvin was killed; the system refuses to remove those with live processes."""
    with suppress(OSError):
        for old in parent.glob(f"{_PREFIX}*"):
            owner = old.name.removeprefix(_PREFIX).partition("-")[0]
            # That of another Marvin is empty too, until its sandbox has started.
            if not Path(f"/proc/{owner}").exists():
                with suppress(OSError):
                    old.rmdir()
