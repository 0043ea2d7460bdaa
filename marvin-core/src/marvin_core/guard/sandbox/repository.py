"""Parts of a git repository that commands must not change: those that make git run programs or redirect it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..files.no_links import standing_for
from . import places

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GUARDED_FOLDERS = ("hooks",)
_GUARDED_FILES = ("config", "config.worktree", "info/attributes")
_GUARDED_IN_WORKTREE = ("commondir", "gitdir", "config.worktree")
_MOST = 64
"""The maximum number of modules, worktrees and neighbouring repositories to examine."""
_DEEP = 4
"""The maximum depth of module names, which may contain slashes."""
_GITLINK = "gitdir:"
_LONGEST_LINK = 16_384
_LARGEST_INDEX = 50_000_000


class Repositories:
    """The git folders that belong to a working directory.

    `writable` are the git folders, and every folder between them and a guarded path. Each becomes a mount point, since
    a path in an ordinary folder could be moved together with the folder. `guarded` paths are read-only. `kept` are
    paths that no mount can protect: a link with its target, or None for a path that must not be created. `closed` are
    git folders that are read-only as a whole, since a part of them could not be guarded alone. `listed` are the folders
    in which new ones would appear.
    """

    def __init__(self, root: Path, home: Path) -> None:
        self.writable: dict[Path, None] = {}
        self.guarded: dict[Path, None] = {}
        self.kept: dict[Path, str | None] = {}
        self.closed: list[Path] = []
        self.listed: list[Path] = []
        self._root = root
        dot = _dot_git(root, home)
        if dot is not None:
            self._add(dot)
        for neighbour in self._neighbours():
            self._writable_down_to(neighbour, root)
            self._add(neighbour)

    def _neighbours(self) -> list[Path]:
        """The `.git` entries of the folders directly below the root."""
        found: list[Path] = []
        try:
            with os.scandir(self._root) as entries:
                for entry in entries:
                    inner = os.path.join(entry.path, ".git")
                    if entry.is_dir(follow_symlinks=False) and os.path.lexists(inner):
                        found.append(Path(inner))
                        if len(found) == _MOST:
                            break
        except OSError:
            return []
        return sorted(found)

    def _add(self, dot: Path) -> None:
        if dot.is_symlink():
            self._add_link(dot)
            return
        if dot.is_dir():
            if _is_git_folder(dot):
                self._add_folder(dot)
            else:
                self._guard(dot)
            return
        if dot.is_relative_to(self._root):
            self._guard(dot)
        folder = linked_folder(dot)
        if folder is not None:
            self._add_folder(folder)

    def _add_link(self, dot: Path) -> None:
        """A `.git` that is a link: no mount prevents its replacement, and its target is read-only."""
        if dot.is_relative_to(self._root):
            self.kept[dot] = os.readlink(dot)
        self._close(Path(os.path.realpath(dot)))

    def _close(self, folder: Path) -> None:
        """Guard a git folder as a whole, with the targets of its links in the working directory."""
        self.closed.append(folder)
        linked = [Path(os.path.realpath(folder / name)) for name in (*_GUARDED_FOLDERS, *_GUARDED_FILES, "info")]
        for place in (folder, *(place for place in linked if not place.is_relative_to(folder))):
            if place != self._root and place.is_relative_to(self._root):
                self._guard_below(self._root, place)

    def _add_folder(self, folder: Path) -> None:
        if folder in self.writable or folder in self.guarded:
            return
        if not _made(folder):
            # A link could be replaced, and a missing path could be created, so nothing in this folder is writable.
            self._close(folder)
            return
        self.writable[folder] = None
        self.kept[folder / "commondir"] = None
        for name in (*_GUARDED_FOLDERS, *_GUARDED_FILES):
            self._guard_below(folder, folder / name)
        self.listed += [folder / "worktrees", folder / "modules"]
        for worktree in _folders(folder / "worktrees"):
            self._writable_down_to(worktree, folder)
            self.writable[worktree] = None
            for name in _GUARDED_IN_WORKTREE:
                if name != "config.worktree" or _touched(worktree / name):
                    self._guard_below(folder, worktree / name)
        for module in _modules(folder / "modules"):
            self._writable_down_to(module, folder)
            self._add_folder(module)
            self._guard_checkout_of(module)

    def _guard_checkout_of(self, module: Path) -> None:
        """Guard the `.git` file of a submodule: it determines whose hooks and settings git uses there."""
        for line in _text(module / "config").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "worktree":
                dot = Path(os.path.realpath(module / value.strip())) / ".git"
                if dot.is_file() and dot.is_relative_to(self._root):
                    self._guard_below(self._root, dot)

    def _guard_below(self, folder: Path, path: Path) -> None:
        if not path.is_symlink() and path.exists():
            self._writable_down_to(path, folder)
            self._guard(path)

    def _writable_down_to(self, path: Path, folder: Path) -> None:
        """Make the folders between them mount points."""
        for parent in reversed(path.relative_to(folder).parents[:-1]):
            self.writable[folder / parent] = None

    def _guard(self, path: Path) -> None:
        self.guarded[path] = None


def tickets_are_committed(root: Path, home: Path) -> bool:
    """Whether the index of the repository lists files in `.tickets`; True if that is unknown.

    An index may omit the prefix that an entry shares with the previous one, so only the end of the folder's name is
    searched.
    """
    dot = _dot_git(root, home)
    if dot is None:
        return False
    try:
        with (dot / "index").open("rb") as file:
            data = file.read(_LARGEST_INDEX + 1)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return len(data) > _LARGEST_INDEX or b"ckets/" in data


def _dot_git(root: Path, home: Path) -> Path | None:
    """The `.git` that git would find from the root upwards. That of a home folder does not apply to its subfolders."""
    for folder in (root, *root.parents):
        if folder != root and (folder == home or home.is_relative_to(folder)):
            return None
        if os.path.lexists(folder / ".git"):
            return folder / ".git"
    return None


def _is_git_folder(folder: Path) -> bool:
    return (folder / "HEAD").exists() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def linked_folder(dot: Path) -> Path | None:
    """The git folder that a `.git` file points to: of a worktree that of its repository, of a submodule its own.

    None if it points anywhere else: otherwise the author of the file could choose which folder becomes writable.
    """
    link = _line(dot, _GITLINK)
    if link is None:
        return None
    folder = Path(os.path.realpath(dot.parent / link))
    common = _line(folder / "commondir", "")
    if common is not None:
        shared = Path(os.path.realpath(folder / common))
        back = _line(folder / "gitdir", "")
        belongs = folder.parent == shared / "worktrees" and back is not None
        if belongs and os.path.realpath(folder / str(back)) == os.path.realpath(dot) and _is_git_folder(shared):
            return shared
        return None
    for above in dot.parent.parents:
        if folder.is_relative_to(os.path.realpath(above / ".git" / "modules")) and _is_git_folder(folder):
            return folder
    return None


def _line(path: Path, start: str) -> str | None:
    """The content of a small file after a prefix; None if it does not begin with the prefix."""
    content = _text(path)
    return content[len(start) :].strip() or None if content.startswith(start) else None


def _text(path: Path) -> str:
    """The beginning of a small file; empty if there is none."""
    return os.fsdecode(places.beginning(path, _LONGEST_LINK))


def _folders(parent: Path) -> Iterator[Path]:
    try:
        with os.scandir(parent) as entries:
            found = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    yield from map(Path, found[:_MOST])


def _modules(parent: Path, depth: int = _DEEP) -> Iterator[Path]:
    for folder in _folders(parent):
        if _is_git_folder(folder):
            yield folder
        elif depth:
            yield from _modules(folder, depth - 1)


def _made(folder: Path) -> bool:
    """Create missing guarded paths as empty ones: a missing path cannot be mounted read-only.

    False if that fails, or if a path is a link.
    """
    try:
        with standing_for(folder) as descriptor:
            for name in (*_GUARDED_FOLDERS, "info"):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=descriptor)
                os.close(os.open(name, _FOLDER, dir_fd=descriptor))
    except OSError:
        return False
    return all(_touched(folder / name) for name in _GUARDED_FILES)


def _touched(path: Path) -> bool:
    try:
        with standing_for(path.parent) as folder:
            os.close(os.open(path.name, _FILE, 0o644, dir_fd=folder))
    except OSError:
        return False
    return True


def put_right(path: Path, link: str | None) -> bool:
    """Restore a link, or the absence of a path that must not exist; returns whether it had changed.

    A folder in its place is moved aside, and not removed: it may contain work. Links in the path are not followed.

    Raises:
        OSError: if that fails.
    """
    with standing_for(path.parent) as folder:
        try:
            found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            if link is None:
                return False
        else:
            if stat.S_ISLNK(found.st_mode) and os.readlink(path.name, dir_fd=folder) == link:
                return False
            if stat.S_ISDIR(found.st_mode):
                os.rename(path.name, f"{path.name}.{time.time_ns()}", src_dir_fd=folder, dst_dir_fd=folder)
            else:
                os.unlink(path.name, dir_fd=folder)
        if link is not None:
            os.symlink(link, path.name, dir_fd=folder)
    return True
