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
"""The network for commands: none, each other, some hosts through a proxy, or all that Marvin reaches."""
MountKind: TypeAlias = Literal["writable", "read-only", "hidden", "bare", "empty", "cache", "private"]
"""The access of commands to a path.

`hidden` is a folder that cannot be entered, or a file that cannot be read. `bare` is a folder that looks empty, so that
programs that walk through a project skip it. `empty` is a file without content. `cache` is a copy that commands may
change. `private` is a folder of the session, whatever the path contains outside.
"""
_GUARDED_OF_MARVIN = ("upstream", "pipeline_state", "request.md", "logs", "report")
_REVIEWS = "review-history-*"
TICKETS = ".tickets"
"""Hidden from commands, below the working directory."""
_EMPTY = (".npmrc", ".yarnrc.yml", "pip.conf", ".netrc", ".pypirc", ".git-credentials", "credentials")
"""Files that programs insist on reading if they exist."""


class Mount(Record):
    """The access of commands to one path. `source` is the folder behind a `private` path."""

    kind: MountKind
    path: Path
    source: Path | None = None


class SandboxPolicy(Record):
    """The paths and the network that a sandbox grants to commands.

    Args:
        root: the working directory.
        home: the user's home folder.
        own: Marvin's own folders: configuration, data, cache, state.
        network: the network that commands reach.
        hosts: the reachable hosts if `network` is "hosts".
        environment: the environment of the commands; some variables name paths.
        private: a folder of the session, for /tmp and the like.
        key_files: key files in addition to the well-known ones.
        log: the log of an agent's calls, which commands must not change.
        root_kept: whether the working directory itself is read-only, since it was not chosen, and nobody can be asked.
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
        """Values that change if other paths would have to be mounted; this reads the status of some files."""
        root, home = str(self.root), str(self.home)  # Path objects would take three times as long
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
        """Values that change if other paths in that folder would have to be mounted."""
        try:
            names = os.listdir(folder)
        except OSError:
            return ()
        guarded = (_identity(f"{folder}/{name}") for name in _GUARDED_OF_MARVIN)
        return (tuple(sorted(fnmatch.filter(names, _REVIEWS))), *guarded)


class Layout:
    """The mounts of a policy for the current file system, and the access that they give to a path."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy
        self._mounts: dict[Path, Mount] = {}
        self.kept: dict[Path, str | None] = {}
        """Paths that no mount can protect: links with their targets, and None for paths that must not be created."""
        self.closed: list[Path] = []
        """Git folders that are read-only as a whole."""
        self.own_code: list[Path] = []
        """The path of Marvin itself in the working directory."""
        self._listed: list[Path] = []
        self.environment: dict[str, str] = {}
        """Additional variables for the environment of commands."""
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
        self._sockets()  # they come and go, and a new one does not require a new sandbox

    def is_current(self) -> bool:
        """Whether every mounted path is still the same file.

        If a program outside replaces a mounted file, as most programs do to write one, the system removes the mount,
        and the new file would be unprotected.
        """
        same = all(_identity(path) == identity for path, identity in self._identities)
        return same and tuple(map(_change, self._listed)) == self._changes

    @property
    def mounts(self) -> Sequence[Mount]:
        """The mounts, each after those that contain it."""
        return sorted(self._mounts.values(), key=lambda mount: len(mount.path.parts))

    def holds_others(self, path: Path) -> bool:
        """Whether there is a mount below a path."""
        return any(other != path and other.is_relative_to(path) for other in self._mounts)

    def kind_of(self, path: Path) -> MountKind:
        """The access to a path; without a mount it is read-only."""
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
        """Make required paths visible that a replaced folder contains."""
        policy = self.policy
        search = policy.environment.get("PATH", os.defpath).split(os.pathsep)
        # Programs of packs are modules beside their tools: they must find code wherever Marvin itself does.
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
            for name in ("skills", "lsp"):  # it contains programs
                programs = Path(os.path.realpath(own)) / name
                if _is_real(programs):
                    self._add("read-only", programs)

    def _sockets(self) -> None:
        """Hide the sockets of the machine's services: connecting to one needs no write permission for its folder."""
        for path in places.sockets():
            if not path.is_relative_to(self.policy.root) and self.kind_of(path) in ("read-only", "cache"):
                self._add("hidden", path)

    def _project(self) -> None:
        """Mount the paths of the working directory that commands must not change, or must not see."""
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
            # If they are committed, git would treat them as deleted.
            self._add("hidden" if tickets_are_committed(root, self.policy.home) else "bare", tickets)

    def _home(self) -> None:
        """Protect files that run automatically, if the working directory is a home folder."""
        root = self.policy.root
        for path in (root / name for name in places.RUN_BY_THEMSELVES):
            real = Path(os.path.realpath(path))
            if path.is_symlink():
                self.kept[path] = os.readlink(path)
            if real.exists() and real != root and real.is_relative_to(root):
                self._writable_above(real)
                self._add("read-only", real)

    def _writable_above(self, path: Path) -> None:
        """Mount the folders between it and the root too, so that it cannot be moved together with one of them."""
        for parent in path.relative_to(self.policy.root).parents[:-1]:
            folder = self.policy.root / parent
            self._mounts.setdefault(folder, Mount(kind="writable", path=folder))

    def _own_code(self) -> None:
        """Protect Marvin's own code if it is in the working directory: it runs outside of the sandbox."""
        root = self.policy.root
        for place in map(Path, map(os.path.realpath, (sys.prefix, sys.base_prefix))):
            if place != root and place.is_relative_to(root):
                self._writable_above(place)
                self._add("read-only", place)
                self.own_code.append(place)

    def _keep_log(self, log: Path) -> None:
        """Protect the log of calls; the folders above it are mount points, so that none can be moved."""
        if log.is_file() and self.kind_of(log) == "writable":
            for folder in log.parents:
                if folder == self.policy.root or self.kind_of(folder) != "writable":
                    break
                self._add("writable", folder)
            self._add("read-only", log)

    def _missing_caches(self) -> None:
        """Direct package managers to a folder of the session if theirs cannot be created."""
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
    """The last time at which an entry was added to a folder or removed; None if the folder is missing."""
    try:
        return folder.lstat().st_mtime_ns
    except OSError:
        return None
