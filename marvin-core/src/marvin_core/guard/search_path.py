"""The PATH for programs. For programs outside of the sandbox it has no folder that commands can write to.

In an activated environment a folder of the project is the first one on PATH. Commands in the sandbox can write to that
folder. A `git` that they put there would be the one that Marvin runs next, outside of the sandbox.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ..api.errors import ToolError

_OF_PROJECTS = frozenset(["node_modules", ".venv", "venv", ".tox", ".nox", ".direnv"])
"""The names of folders in which projects keep their own programs."""


class ProgramSearch:
    """Finds programs on the search path of an environment; `root` returns the working directory."""

    def __init__(self, environment: Mapping[str, str], root: Callable[[], Path]) -> None:
        self._environment = environment
        self._root = root
        self._roots: frozenset[str] = frozenset()
        """All working directories of the session so far: commands could write to them."""

    def find(self, program: str, *, outside: bool) -> str | None:
        """The path of a program, as `Processes.which` says; with `outside` it will run outside of the sandbox."""
        if "/" in program:
            return _found(program)
        folders = (self.outside if outside else self._all).split(os.pathsep)
        programs = filter(None, (_found(os.path.join(folder, program)) for folder in folders))
        return next((found for found in programs if not (outside and lies_in(found, self._roots))), None)

    @property
    def _all(self) -> str:
        return self._environment.get("PATH", os.defpath)

    @property
    def outside(self) -> str:
        """The search path without folders of projects."""
        self._look()
        return without_projects(self._all, self._roots)

    def _look(self) -> None:
        self._roots |= {os.path.realpath(self._root())} - {"/"}  # with / as the project there would be no other folder

    def _is_of_a_project(self, program: str) -> bool:
        return not without_projects(os.path.dirname(program), self._roots) or lies_in(program, self._roots)

    def located(self, argv: Sequence[str]) -> Sequence[str]:
        """A command line for outside of the sandbox, with the full path of its program.

        Raises:
            ToolError: the program exists only in projects, or not at all.
        """
        self._look()
        program: str | None = argv[0] if "/" in argv[0] else None
        if program is None or (program != sys.executable and self._is_of_a_project(program)):
            program = self.find(os.path.basename(argv[0]), outside=True)
        if program is None:
            raise ToolError(
                f"{argv[0]!r} is not installed, or not in a PATH folder outside of projects. Install it or use "
                "another program."
            )
        return [program, *argv[1:]]


@lru_cache
def without_projects(search: str, roots: frozenset[str]) -> str:
    """A search path without folders in the working directories `roots` (links resolved) or in any environment."""
    folders = [folder for folder in search.split(os.pathsep) if os.path.isabs(folder)]
    return os.pathsep.join(folder for folder in folders if not (_is_of_project(folder) or lies_in(folder, roots)))


def _is_of_project(folder: str) -> bool:
    return not _OF_PROJECTS.isdisjoint(folder.split("/")) or os.path.lexists(f"{os.path.dirname(folder)}/pyvenv.cfg")


def lies_in(path: str, roots: Iterable[str]) -> bool:
    """Whether a path is one of these folders or is inside one, by its name or with links resolved."""
    named = (os.path.normpath(path), os.path.realpath(path))
    return any(one == root or one.startswith(f"{root.rstrip('/')}/") for one in named for root in roots)


def _found(candidate: str) -> str | None:
    """A program from the current folder would be whatever the project that Marvin works on put there."""
    # `access` comes before `isfile`: for what is not there, as in most folders of a PATH, it raises nothing.
    is_program = os.path.isabs(candidate) and os.access(candidate, os.X_OK) and os.path.isfile(candidate)
    return candidate if is_program else None
