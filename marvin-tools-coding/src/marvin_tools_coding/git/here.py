"""Errors of git without the names of files that are not in the working directory."""

from __future__ import annotations

import re
from pathlib import Path

from marvin_core import is_there

_UNREAD = re.compile(
    r"^((?:error|fatal|warning): .*?(?:\bopen\(|\b(?:unable to|could not|cannot|failed to) "
    r"(?:stat|lstat|open(?: directory)?|read|index file|readlink|access) ?))(['\"])((?!/).+)\2",
    re.MULTILINE,
)
"""What git says of a file that it could not read, with a path from the working directory."""
_LISTED = re.compile(
    r"^((?:error|fatal|warning): (?:adding embedded git repository: |in the working copy of |"
    r"short read while indexing |readlink\(|failed to encode |BOM is (?:prohibited|required) in |"
    r"(?:CR)?LF would be replaced by (?:CR)?LF in ))"
    r"(['\"]?)((?!/).+?)\2(?=\)|, (?:CR)?LF will be | from \S+ to | if encoded |$)",
    re.MULTILINE,
)
_BEGUN = re.compile(
    r"^((?:error|fatal|warning): )(['\"]?)((?!/).+?)\2(?=: (?:can only add |unsupported file type|failed to insert |"
    r"clean filter )| does not have a commit checked out)",
    re.MULTILINE,
)
"""What git says of a file that it found in a folder, before and after its name."""
_GONE = r"\1a file that is not here"


def without_names_elsewhere(root: Path, said: str) -> str:
    """An error of git without the names of files that are not here: a folder may have been a link for a moment."""
    for pattern in (_UNREAD, _LISTED, _BEGUN):
        said = pattern.sub(lambda found: found[0] if _is_named(root, found[3]) else found.expand(_GONE), said)
    return said


def _is_named(root: Path, name: str) -> bool:
    """Whether a name of git is of something here; it may begin with the path from the top of the repository."""
    parts = tuple(name.split("/"))
    return any(
        root.parts[len(root.parts) - cut :] == parts[:cut] and is_there(root, "/".join(parts[cut:]))
        for cut in range(min(len(parts), len(root.parts)))
    )
