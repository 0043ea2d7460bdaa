"""What of a code base a review looks at."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from ..checks.files import files_below

_LISTED, _LOOKED_AT = 200, 20_000
_WORDS = {
    "all": "All of the code base, the tests among it.",
    "backend": "What runs on the server or in the terminal; leave pages, styles and what runs in a browser to others.",
    "frontend": "Pages, styles and what runs in a browser; leave what runs on the server to others.",
    "tests": "The tests: whether they can fail, what they leave out, and what of them replaces behaviour by doubles.",
}


def focus_text(root: Path, focus: str) -> str:
    """What reviewers are told to look at. Blocks: a glob is looked for in the folder."""
    if focus in _WORDS:
        return _WORDS[focus]
    found = [name for path in files_below(root, _LOOKED_AT) if _fits(name := path.relative_to(root).as_posix(), focus)]
    if not found:
        return f"The files that fit `{focus}`. None does now: say so as your only finding."
    more = f"\n- and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    names = "\n".join(f"- `{name}`" for name in found[:_LISTED])
    return f"The files that fit `{focus}`, and what they call:\n{names}{more}"


def _fits(name: str, pattern: str) -> bool:
    """Whether a name fits a glob: `**/` stands for any folders or none; without a slash the last part counts."""
    if "/" not in pattern:
        return fnmatchcase(name.rpartition("/")[2], pattern)
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))
