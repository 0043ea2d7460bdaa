"""The parts of the user's repository that snapshots use: its root, and the existing objects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ..files.path_checks import PROTECTED
from ..files.writing import TEMPORARY

_NEVER = (*(f"/{name}" for name in PROTECTED[1:]), "/.marvin/memories", "/.marvin/undo", "/.marvin/.gitignore")
_SPECIAL = re.compile(rb"([*?\[\]\\ ])")
_MOST = 20_000
"""The maximum number of objects and packs that get hard links."""
_SMALL = 10_000


def top_of(root: Path) -> Path:
    """The root folder of the repository around a folder; the folder itself if there is none."""
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return root


def exclude_file_of(top: Path) -> Path | None:
    """The patterns that the repository ignores in this clone only."""
    git = _git_folder(top)
    found = git / "info" / "exclude" if git is not None else None
    return found if found is not None and found.is_file() and not found.is_symlink() else None


def exclude_options(top: Path, prefix: bytes, without: Sequence[str]) -> list[str]:
    """Options that exclude Marvin's own files, and those that the repository ignores in this clone only.

    Args:
        prefix: the path of the working directory in the repository, with a slash at its end.
        without: further places of Marvin's own in the working directory.
    """
    below = b"/" + _SPECIAL.sub(rb"\\\1", prefix[:-1]) if prefix else b""
    places = [*map(os.fsencode, _NEVER), *(_SPECIAL.sub(rb"\\\1", os.fsencode(name)) for name in without)]
    options = [f"--exclude={os.fsdecode(below + place)}" for place in places]
    own = exclude_file_of(top)
    return [*options, f"--exclude={TEMPORARY}", *([f"--exclude-from={own}"] if own is not None else [])]


def share_objects(top: Path, objects: Path) -> bool:
    """Create hard links to a repository's objects in a store, so that they need not be written again; returns success.

    They stay in the store when the repository is cleaned up or removed. If hard links are impossible, nothing is
    shared.
    """
    git = _git_folder(top)
    shares = False
    if git is None or _has_other_names(git):
        return shares
    for found in islice(objects_in(git / "objects"), _MOST):
        target = objects / found.parent.name / found.name
        try:
            target.parent.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.link(found, target, follow_symlinks=False)
            shares = True
        except OSError:  # another disk: objects that are not shared are written
            break
    return shares


def _git_folder(top: Path) -> Path | None:
    """The folder of a repository; for a worktree, that of its repository."""
    git = top / ".git"
    with suppress(OSError, ValueError):
        if git.is_dir() and not git.is_symlink():
            return git
        with git.open("rb") as stream:
            kind, _, place = stream.read(_SMALL).strip().partition(b": ")
        if kind == b"gitdir":
            folder = top / os.fsdecode(place)
            with (folder / "commondir").open("rb") as stream:
                return folder / os.fsdecode(stream.read(_SMALL).strip())
    return None


def _has_other_names(git: Path) -> bool:
    """Whether its objects have names of another format, as with the newer hash."""
    try:
        with (git / "config").open("rb") as stream:
            return b"objectformat" in stream.read(1_000_000).lower()
    except OSError:
        return True


def objects_in(folder: Path) -> Iterator[Path]:
    """The packs, each before its index, and the loose objects; without those that git still writes."""
    places = [folder / "pack", *(folder / f"{number:02x}" for number in range(256))]
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            for name in sorted(files, key=lambda name: name.endswith(".idx")):
                if not name.startswith("tmp_") and (place.name != "pack" or name.endswith((".pack", ".idx"))):
                    yield place / name
