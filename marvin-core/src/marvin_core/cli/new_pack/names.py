"""The names of a new pack for Python, for package indexes and in Marvin, derived from one given name."""

from __future__ import annotations

import re
from importlib.util import find_spec

from ...api.errors import UsageError
from ...api.record import Record
from ...tools.sets import SETS

_PREFIX = "marvin-"
_LONGEST = 30
# Valid names of distributions: https://packaging.python.org/en/latest/specifications/name-normalization/
_IS_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE | re.ASCII).fullmatch
_SEPARATORS = re.compile(r"[-_.]+")
# Names of Marvin's own packs and tool groups, and other reserved names of `--tools` and `packs`.
_TAKEN = frozenset({*SETS, "all", "core", "life", "pipeline", "session", "user", "web", "files", "git", "shell"})
_OURS = re.compile(r"tools($|-)")


class PackNames(Record):
    """The names of one pack: its distribution, its module, its name in Marvin, and its first tool."""

    distribution: str
    module: str
    pack: str
    tool: str


def pack_names(given: str) -> PackNames:
    """The names of a new pack.

    Args:
        given: for example `dice` or `marvin-dice`; the distribution is `marvin-dice` for both.

    Raises:
        UsageError: a package index, Python or Marvin would reject the name, or it is taken; says which to use.
    """
    if not _IS_NAME(given):
        raise UsageError(
            f"{given!r} is not a valid pack name. Use letters, digits and single hyphens, and begin and end with a "
            "letter or digit, as in word-games."
        )
    name = _SEPARATORS.sub("-", given.lower()).removeprefix(_PREFIX)
    if name == "marvin":
        raise UsageError("'marvin' is another project on the Python Package Index. Name the pack for what it does.")
    if len(name) > _LONGEST:
        raise UsageError(f"{given!r} is too long for a pack. Use at most {_LONGEST} characters.")
    if not name[0].isalpha():
        raise UsageError(
            f"{given!r} cannot be used in the names of Python functions. Begin with a letter, as in pack-{name}."
        )
    if name in _TAKEN or _OURS.match(name):
        raise UsageError(f"{name!r} is reserved by Marvin. Choose another name, as in my-{name}.")
    word = name.replace("-", "_")
    module = f"marvin_{word}"
    if find_spec(module) is not None:
        raise UsageError(f"A module {module} is already installed here. Choose another name, or uninstall that module.")
    return PackNames(distribution=f"{_PREFIX}{name}", module=module, pack=name, tool=f"{word}_count_words")
