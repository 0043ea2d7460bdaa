"""The parts of a code base that a review examines."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

_LISTED = 200
_WORDS = {
    "all": "The whole code base, including the tests.",
    "backend": "The code that runs on the server or in the terminal; ignore pages, styles and code that runs in a "
    "browser.",
    "frontend": "Pages, styles and code that runs in a browser; ignore code that runs on the server.",
    "tests": "The tests: whether they can fail, what they leave out, and which of them use test doubles.",
}
FOCUSES = tuple(_WORDS)
"""The keywords of a focus; anything else is a folder or a glob."""


def focus_text(files: Sequence[str], focus: str) -> str:
    """The reviewers' instructions for a focus.

    Args:
        files: those of the code base, relative to it.
    """
    if focus in _WORDS:
        return _WORDS[focus]
    found = fitting(files, focus)
    if not found:
        return f"The files that match `{focus}`. No file matches now: report that as your only finding."
    more = f"\n- and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    names = "\n".join(f"- `{name}`" for name in found[:_LISTED])
    return f"The files that match `{focus}`, and the code that they call:\n{names}{more}"


def fitting(files: Sequence[str], pattern: str) -> Sequence[str]:
    """The files that match a glob, or are below a folder.

    `**/` matches any number of folders; a pattern without a slash matches the file name.
    """
    plain = pattern.strip().removeprefix("./")
    folder = f"{plain.rstrip('/')}/"
    below = [name for name in files if name.startswith(folder)]
    return below or [name for name in files if _fits(name, plain)]


def _fits(name: str, pattern: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(name.rpartition("/")[2], pattern)
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))
