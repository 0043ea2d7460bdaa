"""The spellings of a path that a rule may use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_LONGEST = 4_096


def spellings(value: str, root: Path) -> list[str]:
    """A text as it is, and as the path that it may be: folded and with links resolved, from the root and from /.

    A path below the root is also given relative to it.
    """
    if len(value) > _LONGEST or "\0" in value:  # what no path has
        return [value]
    found, path = [value], str(root / value)
    lexical, bases = os.path.normpath(path), _bases(root)
    real = _real(path)
    for each in (lexical, real, real if lexical == path else _real(lexical)):
        found += _from(each, bases)
    return list(dict.fromkeys(found))


def binding(value: str, root: Path) -> list[str]:
    """The spellings that an allowance may be given by: where the path leads up or through links, only its real ones."""
    if len(value) > _LONGEST or "\0" in value:  # what no path has
        return [value]
    lexical, real = os.path.normpath(root / value), _real(root / value)
    found = list(_from(real, _bases(root)))
    return found if ".." in value.split("/") or lexical != real else [value, *found]


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def _bases(root: Path) -> set[str]:
    """The root, as it is called and where it really is, each with a `/` at its end."""
    return {base.rstrip("/") + "/" for base in (str(root), _real(root))}


def _from(path: str, bases: Iterable[str]) -> Iterator[str]:
    yield path
    for base in bases:
        if path.startswith(base):
            yield path[len(base) :]


@cache
def folds_case(root: Path) -> bool:
    """Whether the file system of a folder takes names that differ in case alone for one."""
    for folder in (root, *root.parents):
        other = folder.name.swapcase()
        if other != folder.name:
            try:
                return os.path.samefile(folder, folder.parent / other)
            except OSError:
                return False
    return False
