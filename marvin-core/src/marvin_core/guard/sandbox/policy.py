"""The file policy of a sandbox: the working directory, and which other paths are writable, read-only or hidden."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ...api.record import Record
from . import places
from .repository import Repositories, tickets_are_committed

Network: TypeAlias = Literal["none", "loopback", "hosts", "all"]
"""What commands reach: nothing, each other, some hosts through a proxy, or everything that Marvin reaches."""
MountKind: TypeAlias = Literal["writable", "read-only", "hidden", "bare", "empty", "cache", "private"]
"""How a place looks from inside.

`hidden` is a folder that cannot be entered, or a file that cannot be read; `bare` a folder that looks empty, which
programs that walk through all of a project pass over; `empty` a file without content. `cache` is
a copy that commands may change. `private` is a folder of the session, whatever is at that place outside.
"""
_GUARDED_OF_MARVIN = ("upstream", "pipeline_state", "request.md", "logs", "report")
_REVIEWS = "review-history-*"
TICKETS = ".tickets"
"""Below the working directory; commands do not see it."""
_EMPTY = (".npmrc", ".yarnrc.yml", "pip.conf", ".netrc", ".pypirc", ".git-credentials", "credentials")
"""Files that programs insist on reading where they are there."""


class Mount(Record):
    """How one place looks from inside. `source` is what stands there, for a `private` one."""

    kind: MountKind
    path: Path
    source: Path | None = None


class SandboxPolicy(Record):
    """What one sandbox lets commands reach.

    Args:
        root: the working directory.
        home: the user's home folder.
        own: Marvin's own folders: configuration, data, cache, state.
        network: what commands reach.
        hosts: the hosts that they reach where `network` is "hosts".
        environment: of the commands; some variables name places.
        private: a folder of the session, for /tmp and the like.
        key_files: files of keys, beside the well-known ones.
        log: the log of an agent's calls, which they do not change.
        root_kept: whether the working directory itself is read-only, since nobody chose it or is there to ask.
    """

    root: Path
    home: Path
    own: tuple[Path, ...]
    network: Network
    hosts: tuple[str, ...] = ()
    environment: Mapping[str, str]
    private: Path
    key_files: tuple[Path, ...] = ()
    log: Path | None = None
    root_kept: bool = False

    def signs(self) -> tuple[object, ...]:
        """What tells whether other places would be mounted by now; it costs some looks at files."""
        root, home = str(self.root), str(self.home)  # each command asks: as Paths it would take three times as long
        looked = [
            f"{root}/.git",
            f"{root}/.marvin",
            f"{root}/{TICKETS}",
            *([] if self.log is None else [str(self.log)]),
        ]
        keys = tuple(name for name in places.KEYS if os.path.lexists(f"{home}/{name}"))
        committed = os.path.isdir(f"{root}/{TICKETS}") and tickets_are_committed(self.root, self.home)
        now = (*map(_identity, looked), *self._of_marvin(f"{root}/.marvin"))
        return (self.root, self.private, self.network, self.hosts, keys, committed, *now)

    def _of_marvin(self, folder: str) -> tuple[object, ...]:
        """What tells whether other places in that folder would be mounted by now."""
        try:
            names = os.listdir(folder)
        except OSError:
            return ()
        guarded = (_identity(f"{folder}/{name}") for name in _GUARDED_OF_MARVIN)
        return (tuple(sorted(fnmatch.filter(names, _REVIEWS))), *guarded)


class Layout:
    """The mounts of a policy, as the file system is now, and what they say of a place."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy
        self._mounts: dict[Path, Mount] = {}
        self.kept: dict[Path, str | None] = {}
        """What no mount can hold: links with where they lead, and None for what must not come to be."""
        self.closed: list[Path] = []
        """Git folders that are read-only as a whole."""
        self.own_code: list[Path] = []
        """Where Marvin itself lies in the working directory."""
        self._listed: list[Path] = []
        self.environment: dict[str, str] = {}
        """What the environment of commands needs beside the usual."""
        self._homes = [Path(os.path.realpath(home)) for home in places.homes(policy.home)]
        for home in self._homes:
            if policy.root in home.parents:
                self._add("read-only", home)
        self._private()
        self._visible()
        self._caches()
        self._hidden()
        self._add("read-only" if policy.root_kept else "writable", policy.root)
        self._project()
        if policy.root in self._homes and not policy.root_kept:
            self._home()
        self._own_code()
        self._missing_caches()
        kinds = ("read-only", "hidden", "bare", "empty")
        mounted = [str(mount.path) for mount in self.mounts if mount.kind in kinds]
        self._identities = [(path, _identity(path)) for path in mounted]
        self._changes = tuple(map(_change, self._listed))
        self._sockets()  # they come and go, and a new one is no reason for another sandbox

    def is_current(self) -> bool:
        """Whether everything that is mounted is still what it was.

        Where somebody outside puts another file in the place of one, as most programs do to write it, the system takes
        what was mounted there off, and the new file would be open.
        """
        same = all(_identity(path) == identity for path, identity in self._identities)
        return same and tuple(map(_change, self._listed)) == self._changes

    @property
    def mounts(self) -> Sequence[Mount]:
        """The mounts, each after those that it lies in."""
        return sorted(self._mounts.values(), key=lambda mount: len(mount.path.parts))

    def holds_others(self, path: Path) -> bool:
        """Whether a mount lies below a place."""
        return any(other != path and other.is_relative_to(path) for other in self._mounts)

    def kind_of(self, path: Path) -> MountKind:
        """How a place looks from inside; what is mounted nowhere is read-only."""
        for folder in (path, *path.parents):
            mount = self._mounts.get(folder)
            if mount is not None:
                return mount.kind
        return "read-only"

    def _add(self, kind: MountKind, path: Path, source: Path | None = None) -> None:
        self._mounts[path] = Mount(kind=kind, path=path, source=source)

    def _private(self) -> None:
        for place in places.TEMPORARY[:2]:
            if os.path.isdir(place) and not os.path.islink(place):
                self._add("private", Path(place), self.policy.private / place[1:].replace("/", "-"))

    def _visible(self) -> None:
        """Let what lies in a replaced folder, and is needed, be seen all the same."""
        policy = self.policy
        search = policy.environment.get("PATH", os.defpath).split(os.pathsep)
        # Programs of packs are modules beside their tools: wherever Marvin itself finds its code, they do.
        code = [sys.prefix, sys.base_prefix, os.path.dirname(__file__), *sys.path]
        needed = [policy.home, *code, *search, *places.RUN_KEPT]
        for place in map(os.path.realpath, filter(os.path.isabs, map(str, needed))):
            if place.startswith(tuple(f"{replaced}/" for replaced in places.TEMPORARY)) and os.path.exists(place):
                self._add("read-only", Path(place))

    def _caches(self) -> None:
        environment = self.policy.environment
        for name in places.CACHES:
            path = Path(os.path.realpath(self.policy.home / name))
            if path.is_dir():
                self._add("cache", path)
        for variable in places.CACHE_VARIABLES:
            named = environment.get(variable, "")
            if os.path.isabs(named) and os.path.isdir(named):
                self._add("cache", Path(os.path.realpath(named)))

    def _hidden(self) -> None:
        policy = self.policy
        found = [path for home in places.homes(policy.home) for path in places.hidden_in(home)]
        found += [*policy.own, *policy.key_files, *map(Path, places.OF_MACHINE)]
        found += Path("/etc/ssh").glob("ssh_host_*_key")
        for path in found:
            real = Path(os.path.realpath(path))
            if os.path.isfile(real) and path.name in _EMPTY:
                self._add("empty", real)
            elif os.path.exists(real) and real != Path("/"):
                self._add("hidden", real)
        for own in policy.own:
            for name in ("skills", "lsp"):  # there are programs in them
                programs = Path(os.path.realpath(own)) / name
                if _is_real(programs):
                    self._add("read-only", programs)

    def _sockets(self) -> None:
        """Hide the sockets of the machine's services: to connect to one takes no right to write where it lies."""
        for path in places.sockets():
            if not path.is_relative_to(self.policy.root) and self.kind_of(path) in ("read-only", "cache"):
                self._add("hidden", path)

    def _project(self) -> None:
        """What of the working directory commands may not change, or see."""
        root = self.policy.root
        found = Repositories(root, self.policy.home)
        self._add_all("writable", found.writable)
        self._add_all("read-only", found.guarded)
        self.kept, self.closed, self._listed = found.kept, found.closed, found.listed
        own = root / ".marvin"
        if own.is_dir() and not own.is_symlink():
            self._add("writable", own)
            guarded = [own / name for name in _GUARDED_OF_MARVIN]
            self._add_all("read-only", (path for path in [*guarded, *own.glob(_REVIEWS)] if _is_real(path)))
        if self.policy.log is not None:
            self._keep_log(Path(os.path.realpath(self.policy.log)))
        tickets = root / TICKETS
        if _is_real(tickets):
            # Where they are committed, git would take them for removed.
            self._add("hidden" if tickets_are_committed(root, self.policy.home) else "bare", tickets)

    def _home(self) -> None:
        """Keep what runs by itself as it is where the working directory is a home folder."""
        root = self.policy.root
        for path in (root / name for name in places.RUN_BY_THEMSELVES):
            real = Path(os.path.realpath(path))
            if path.is_symlink():
                self.kept[path] = os.readlink(path)
            if real.exists() and real != root and real.is_relative_to(root):
                self._writable_above(real)
                self._add("read-only", real)

    def _writable_above(self, path: Path) -> None:
        """Make mount points of the folders between it and the root, so that none can be moved away with it."""
        for parent in path.relative_to(self.policy.root).parents[:-1]:
            folder = self.policy.root / parent
            self._mounts.setdefault(folder, Mount(kind="writable", path=folder))

    def _own_code(self) -> None:
        """Keep Marvin's own code as it is where it lies in the working directory: it runs outside of the sandbox."""
        root = self.policy.root
        for place in map(Path, map(os.path.realpath, (sys.prefix, sys.base_prefix))):
            if place != root and place.is_relative_to(root):
                self._writable_above(place)
                self._add("read-only", place)
                self.own_code.append(place)

    def _keep_log(self, log: Path) -> None:
        """Let nobody change the log of calls; the folders above it are mount points, so that none can be moved."""
        if log.is_file() and self.kind_of(log) == "writable":
            for folder in log.parents:
                if folder == self.policy.root or self.kind_of(folder) != "writable":
                    break
                self._add("writable", folder)
            self._add("read-only", log)

    def _missing_caches(self) -> None:
        """Lead package managers to a folder of the session where theirs cannot be made."""
        for variable, usual in places.CACHE_VARIABLES.items():
            named = self.policy.environment.get(variable, "")
            if not named and not usual:
                continue
            path = Path(os.path.realpath(self.policy.home / (named or usual)))
            if self.kind_of(path) not in ("cache", "writable", "private"):
                self.environment[variable] = f"/tmp/.cache-{variable.lower()}"

    def _add_all(self, kind: MountKind, paths: Iterable[Path]) -> None:
        for path in paths:
            self._add(kind, path)


def _is_real(path: Path) -> bool:
    return os.path.exists(path) and not os.path.islink(path)


def _identity(path: str) -> object:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _change(folder: Path) -> int | None:
    """When something was last added to a folder, or taken away; None where there is none."""
    try:
        return folder.lstat().st_mtime_ns
    except OSError:
        return None
