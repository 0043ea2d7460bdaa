"""The spellings of a path that a rule may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

_LONGEST = 4_096
_LONGEST_WITH_DOTS = 1_000_000
"""The length up to which a text is searched for parts that mean nothing: without them it may be a path."""


def spellings(value: str, root: Path) -> list[str]:
    """A text itself, and the path that it may be: normalized, links resolved, relative to the root and absolute.

    A path below the root is given relative to it too. Of a text with a NUL it is the part before.
    """
    path = _shortened(value.partition("\0")[0])
    if path is None:
        return [value]
    found, bases = [value], _bases(root)
    for each in meant(path, root):
        found += _from(each, bases)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=16)
def _shortened(path: str) -> str | None:
    """A path, without parts that mean nothing if it is too long for the system; None if it is still too long then."""
    if len(path) <= _LONGEST:
        return path
    if len(path) > _LONGEST_WITH_DOTS:
        return None
    short = os.path.normpath(path)
    return short if len(short) <= _LONGEST else None


def meant(value: str, root: Path) -> list[str]:
    """The absolute paths that a text may mean: normalized, and with links resolved."""
    path = os.path.join(root, value)
    if len(path) > _LONGEST:  # without what says nothing, it may be short enough for the system
        path = f"/{'/'.join(part for part in path.split('/') if part not in ('', '.'))}"
    lexical = os.path.normpath(path)
    found = [lexical, *(_real(each) for each in dict.fromkeys((path, lexical)) if _may_be_path(each))]
    return list(dict.fromkeys(found))


def _may_be_path(value: str) -> bool:
    return len(value) <= _LONGEST and "\0" not in value


def binding(value: str, root: Path) -> list[str]:
    """The spellings for allow rules: a path with `..` or links has only its real ones.

    A text that cannot be resolved, but that a program may take for a path, has none.
    """
    if not _may_be_path(value):
        return [] if "\0" in value or ".." in value.split("/") else [value]
    lexical, real = os.path.normpath(root / value), _real(root / value)
    found = list(_from(real, _bases(root)))
    return found if ".." in value.split("/") or lexical != real else [value, *found]


def _real(path: str | Path) -> str:
    if sys.platform == "linux":  # the kernel resolves in one step what exists
        try:
            descriptor = os.open(path, os.O_PATH)
        except (OSError, ValueError):
            pass  # a part may be missing; the rest is resolved below
        else:
            try:
                found = os.readlink(f"/proc/self/fd/{descriptor}")
            finally:
                os.close(descriptor)
            if found.startswith("/") and not found.endswith(" (deleted)"):
                return found
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def _bases(root: Path) -> set[str]:
    """The root as named and its real path, each with a trailing `/`."""
    return {base.rstrip("/") + "/" for base in (str(root), _real(root))}


def _from(path: str, bases: Iterable[str]) -> Iterator[str]:
    yield path
    for base in bases:
        if path.startswith(base):
            yield path[len(base) :]


@cache
def folds_case(root: Path) -> bool:
    """Whether the file system of a folder ignores the case of names."""
    for folder in (root, *root.parents):
        other = folder.name.swapcase()
        if other != folder.name:
            try:
                return os.path.samefile(folder, folder.parent / other)
            except OSError:
                return False
    return False
