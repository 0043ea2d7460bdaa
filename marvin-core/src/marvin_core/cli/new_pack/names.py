"""The names of a new pack: what people, Python, package indexes and Marvin each make of the one that was given."""

from __future__ import annotations

import re
from importlib.util import find_spec

from ...api.errors import UsageError
from ...api.record import Record
from ...tools.sets import SETS

_PREFIX = "marvin-"
_LONGEST = 30
# What a distribution may be called: https://packaging.python.org/en/latest/specifications/name-normalization/
_IS_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE | re.ASCII).fullmatch
_SEPARATORS = re.compile(r"[-_.]+")
# Names of Marvin's own packs and groups, and of what is no pack: `--tools` and `packs` would mean those.
_TAKEN = frozenset({*SETS, "all", "core", "life", "pipeline", "session", "user", "web", "files", "git", "shell"})
_OURS = re.compile(r"tools($|-)")


class PackNames(Record):
    """What belongs to one pack: its distribution, its module, its name in Marvin, and its first tool."""

    distribution: str
    module: str
    pack: str
    tool: str


def pack_names(given: str) -> PackNames:
    """The names of a pack that is to be made.

    Args:
        given: as in `dice` or `marvin-dice`; both make the distribution `marvin-dice`.

    Raises:
        UsageError: where an index, Python or Marvin would refuse a name, or where it is taken; says which to use.
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
