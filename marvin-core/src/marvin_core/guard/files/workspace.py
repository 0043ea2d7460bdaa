"""The folder that a session works in, and where its logs and dumps go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...api.config import Config
from ...api.errors import ToolError
from ...api.tools import Mode
from .sandbox import SandboxPaths

_IGNORED = "logs/\nmemories/\nundo/\n"
_LARGEST_DOCUMENT = 1_000_000


class Workspace:
    """The sandbox root, which may be moved, and the mode of the work that is done in it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.mode: Mode = "coding" if config.coding else "chat"
        self._rooted = config.rooted
        self.paths = self._sandbox(config.working_dir)

    def _sandbox(self, root: Path) -> SandboxPaths:
        files = self._config.writable_files
        copies = self._config.cache_folder / "copies"
        return SandboxPaths(root, writable=None if files is None else frozenset(files), copies=copies)

    @property
    def root(self) -> Path:
        """The sandbox root."""
        return self.paths.root

    def move(self, root: Path) -> None:
        """Make another folder the sandbox root."""
        self.paths = self._sandbox(root)
        self._rooted = True

    @contextmanager
    def visiting(self, root: Path) -> Iterator[None]:
        """Make another folder the sandbox root for as long as the context lasts."""
        before, rooted = self.paths, self._rooted
        self.move(root)
        try:
            yield
        finally:
            self.paths, self._rooted = before, rooted

    def read(self, path: str) -> str | None:
        """The text of a document below the root; None where there is none that can be read."""
        if not (self.root / path).is_file():
            return None  # the usual case, at every start: not worth an error that tells what is there instead
        try:
            with self.paths.open(path) as stream:
                return stream.read(_LARGEST_DOCUMENT).decode("utf-8", "replace")
        except ToolError:
            return None

    def folder(self, name: str) -> Path:
        """The folder `.marvin/NAME` of a project or in coding mode, else the one in the data folder."""
        project = self.root / ".marvin"
        # A link that a repository brings could lead anywhere.
        linked = project.is_symlink() or (project / name).is_symlink()
        if linked or not (self.mode == "coding" or self._rooted or project.is_dir()):
            return self._config.data_folder / name
        project.mkdir(exist_ok=True)
        try:
            with (project / ".gitignore").open("x", encoding="utf-8") as stream:
                stream.write(_IGNORED)
        except FileExistsError:
            pass
        return project / name
