"""The working directory of a session, and the folders of its logs and dumps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.config import Config
from ...api.errors import ToolError
from ...api.tools import Mode

if TYPE_CHECKING:
    from .sandbox import SandboxPaths

_IGNORED = "logs/\nmemories/\nreport/\nundo/\n"
_LARGEST_DOCUMENT = 1_000_000


class Workspace:
    """The sandbox root, which may change, and the mode of the session."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.mode: Mode = "coding" if config.coding else "chat"
        self._rooted = config.rooted
        self._given = config.working_dir
        self.root = _resolved(config.working_dir)
        """The sandbox root, links resolved."""
        self._paths: SandboxPaths | None = None
        self.playing = False
        """Whether an agent works here unattended, as in play mode."""

    def paths_of(self, root: Path, *, reading: bool = False) -> SandboxPaths:
        """The files below another root, with the same checks as the sandbox root; with `reading`, none is written."""
        from .locks import ProjectLocks
        from .path_checks import PROTECTED
        from .sandbox import SandboxPaths

        config = self._config
        log = () if config.subagent_log is None else (config.subagent_log,)
        return SandboxPaths(
            root,
            hidden=self.own_places(root),
            protected=(*PROTECTED, *_below(root, log)),
            writable=() if reading else self._writable(root),
            copies=config.cache_folder / "copies",
            locks=ProjectLocks(config.state_folder / "locks", config.timeouts),
        )

    def own_places(self, root: Path) -> list[str]:
        """Marvin's own folders that are below a root, as `/PATH`."""
        config = self._config
        return _below(root, (config.config_folder, config.data_folder, config.cache_folder, config.state_folder))

    def _writable(self, root: Path) -> frozenset[str] | None:
        """The only files that may be written, relative to a root; another root than the first has others.

        A name counts as it is spelled. A link leads to a file that was not named, so it is not written through.
        """
        if self._config.writable_files is None:
            return None
        start, real = os.path.realpath(self._config.working_dir), os.path.realpath(root)
        named = [os.path.normpath(os.path.join(start, file)) for file in self._config.writable_files]
        return frozenset(os.path.relpath(file, real) for file in named if file.startswith(real.rstrip("/") + "/"))

    @property
    def paths(self) -> SandboxPaths:
        """The files below the root; created when a call first needs them."""
        if self._paths is None:
            self._paths = self.paths_of(self._given)
        return self._paths

    def move(self, root: Path) -> None:
        """Make another folder the sandbox root."""
        self._given, self.root, self._paths = root, _resolved(root), None
        self._rooted = True

    @contextmanager
    def playing_in(self, root: Path) -> Iterator[None]:
        """Let an agent work unattended in another folder, which is the sandbox root while the context lasts."""
        before = self._given, self.root, self._paths, self._rooted
        self.move(root)
        self.playing = True
        try:
            yield
        finally:
            self._given, self.root, self._paths, self._rooted = before
            self.playing = False

    def read(self, path: str) -> str | None:
        """The text of a document below the root; None if it cannot be read."""
        if not (self.root / path).is_file():
            return None  # the usual case at every start: an error that lists the folder would be wasted
        try:
            with self.paths.open(path) as stream:
                return stream.read(_LARGEST_DOCUMENT).decode("utf-8", "replace")
        except ToolError:
            return None

    def folder(self, name: str) -> Path:
        """The folder `.marvin/NAME` of a project or in coding mode, else the one in the data folder."""
        project = self.root / ".marvin"
        # A link in a repository could lead anywhere.
        linked = project.is_symlink() or (project / name).is_symlink()
        if linked or not (self.mode == "coding" or self._rooted or project.is_dir()):
            return self._config.data_folder / name
        from .no_links import own_folder

        with suppress(FileExistsError), own_folder(self.root, project, 0o777) as opened:
            descriptor = os.open(
                ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=opened
            )
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                    stream.write(_IGNORED)
            except OSError:  # an empty file would stay, and logs would be committed
                os.unlink(".gitignore", dir_fd=opened)
                raise
        return project / name


def _below(root: Path, places: Iterable[Path]) -> list[str]:
    """The given paths that are below the root, as patterns: as named, and with links resolved."""
    real = os.path.realpath(root).rstrip("/") + "/"
    spelled = {found for place in places for found in (os.path.realpath(place), _named(place))}
    return sorted(found.removeprefix(real[:-1]) for found in spelled if found.startswith(real))


def _named(place: Path) -> str:
    """A path with its folder resolved and its own name kept, even if it is a link."""
    return os.path.join(os.path.realpath(place.parent), place.name)


def _resolved(root: Path) -> Path:
    return Path(os.path.realpath(root))
