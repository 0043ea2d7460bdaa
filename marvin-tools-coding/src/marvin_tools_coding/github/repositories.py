"""Which repository a model means, and the path of its clone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError, did_you_mean, near_names, one_line

HOST = "github.com"
FOLDER = "github-clones"
"""In the user's home folder."""
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/\s]*@)?([a-z0-9.-]+\.[a-z]{2,})(?::\d+)?[/:](.*)", re.I | re.S)
_SHORT = re.compile(r"(?:gh|github):(?!//)(.*)", re.I | re.S)
_ENTRIES = 10_000
"""Names in a folder of clones that are examined."""
_SHOWN = 100
_LONGEST = 2_000


class Repository(Record):
    """A repository by owner and name. Case is ignored in both."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"


def named(text: str, host: str = HOST) -> Repository:
    """The repository that a name or a URL means.

    Args:
        host: the host whose URLs are accepted.

    Raises:
        ToolError: it is not a repository of that host.
    """
    given = text[:_LONGEST].strip().strip("<>'\"`").strip()
    path, is_address = _path(given, host, text)
    parts = [part for part in re.split(r"[?#]", path, maxsplit=1)[0].split("/") if part]
    if len(parts) < 2 or (not is_address and (len(parts) > 2 or path.startswith("/"))):
        raise _no_repository(text)
    owner, name = parts[0], parts[1].removesuffix(".git")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in ("", ".", ".."):
        raise _no_repository(text)
    return Repository(owner=owner, name=name)


def _path(given: str, host: str, text: str) -> tuple[str, bool]:
    """The path after the host, and whether there was a host."""
    found = _ADDRESS.fullmatch(given)
    if found is None:
        short = _SHORT.fullmatch(given)
        return (short[1] if short else given), False
    where, path = found[1].lower().removeprefix("www."), found[2]
    if where == f"api.{host}":
        return path.removeprefix("repos/"), True
    if where not in (host, "raw.githubusercontent.com"):
        raise ToolError(f"{one_line(text, _SHOWN)!r} is on {where}, but these tools work only with {host}.")
    return path, True


def _no_repository(text: str) -> ToolError:
    return ToolError(
        f"{one_line(text, _SHOWN)!r} is not a repository. Give OWNER/REPO, as in 'pallets/flask', or its address; "
        "github_search finds repositories."
    )


def host_of(context: ToolContext) -> str:
    """The host that gh works with."""
    return (context.setting("GH_HOST") or HOST).lower()


class Clones:
    """The clones in a home folder. All methods block briefly.

    Symbolic links on the way to a clone are not followed: a program could have pointed one at protected files.
    """

    def __init__(self, home: Path) -> None:
        self.root = Path(os.path.realpath(home / FOLDER))

    def find(self, repository: Repository) -> Path | None:
        """The folder of a clone; None if there is none."""
        for owner in self._alike(self.root, repository.owner):
            for name in self._alike(self.root / owner, repository.name):
                if _is_clone(self.root / owner / name):
                    return self.root / owner / name
        return None

    def place(self, repository: Repository) -> Path:
        """The path for a new clone.

        Raises:
            ToolError: something other than a clone is there, or a symbolic link.
        """
        place = self.root / repository.owner / repository.name
        for folder in (self.root, place.parent, place):
            if os.path.lexists(folder) and not _is_folder(folder):
                raise ToolError(
                    f"{folder} is not a folder, so nothing can be cloned there. Ask the user to move it away."
                )
        if os.path.lexists(place) and os.listdir(place):
            raise ToolError(f"{place} exists and is not a git clone. Ask the user to move it away.")
        return place

    def open(self, context: ToolContext, repository: Repository) -> tuple[ToolContext, Repository]:
        """A context that reads in the clone, and the repository as its folder is spelled.

        Raises:
            ToolError: there is none.
        """
        folder = self.find(repository)
        if folder is None:
            raise ToolError(self._missing(repository))
        reading = context.reading(folder)
        if reading.paths.root != folder:
            raise ToolError(f"{folder} was just replaced by a link. Ask the user about it.")
        return reading, Repository(owner=folder.parent.name, name=folder.name)

    def _missing(self, repository: Repository) -> str:
        known = list(islice(self._all(), _ENTRIES))
        hint = did_you_mean(near_names(str(repository), known))
        told = f"There is no clone of {repository}. Create one with github_clone."
        return f"{told} {hint}" if hint else told

    def _all(self) -> Iterator[str]:
        for owner in self._names(self.root):
            for name in self._names(self.root / owner):
                if _is_clone(self.root / owner / name):
                    yield f"{owner}/{name}"

    def _alike(self, folder: Path, name: str) -> list[str]:
        """The names in a folder that differ in case only, an exact match first."""
        found = [other for other in self._names(folder) if other.lower() == name.lower()]
        return sorted(found, key=lambda other: other != name)

    def _names(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                found = [entry.name for entry in islice(entries, _ENTRIES) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(name for name in found if not (folder == self.root and name.startswith(".")))


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _is_clone(path: Path) -> bool:
    return _is_folder(path.parent) and _is_folder(path) and _is_folder(path / ".git")
