"""Names as file systems compare them: several spellings may mean the same file."""

from __future__ import annotations

import os
from functools import lru_cache

_INVISIBLE = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that HFS+ ignores in names, from git's utf8.c, which protects `.git` the same way."""
_SHORT = 6
"""The characters that a name keeps in its short NTFS alias: `GIT~1`, `TICKET~1`."""


def names_of(path: str) -> tuple[str, ...]:
    """The parts of a relative path, `.` and `..` folded.

    Raises:
        ValueError: it does not stay below its start; the text says why.
    """
    if not path.strip():
        raise ValueError("The path is empty. Give a path relative to the working directory.")
    if "\0" in path:
        raise ValueError(f"The path {path!r} contains a NUL character. Remove it.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(f"The path {path!r} contains characters that are not allowed in file names.") from None
    if path.startswith("~"):
        raise ValueError(
            f"{path!r} is refused: '~' is not expanded, and home folders cannot be accessed. Use a path relative to "
            f"the working directory (a file with this name is './{path}')."
        )
    if path.startswith("/"):
        raise ValueError(f"{path!r} is refused: it is outside of the working directory, to which tools have no access.")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise ValueError(f"{path!r} leads out of the working directory. Use a path inside it.")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


@lru_cache(maxsize=1_024)  # a call checks one path several times
def matches(parts: tuple[str, ...], patterns: tuple[tuple[str, ...], ...]) -> bool:
    """Whether some run of the parts matches one of the patterns, on any file system.

    A star at the end of a pattern's part stands for the rest of the name. An empty part stands for the root.
    """
    plain = ("", *map(_plain, parts))
    return any(
        all(map(_matches_part, plain[start : start + len(pattern)], pattern))
        for pattern in patterns
        for start in range(len(plain) - len(pattern) + 1)
    )


def pattern_of(path: str) -> tuple[str, ...]:
    """The pattern of a path; a leading slash means right below the root."""
    return tuple(map(_plain, path.split("/")))


def _plain(part: str) -> str:
    """A name without what some file systems ignore: case, final dots and spaces, a stream after a colon."""
    return part.translate(_INVISIBLE).partition(":")[0].rstrip(". ").casefold()


def _matches_part(part: str, pattern: str) -> bool:
    start, _, number = part.partition("~")
    if number.isdigit() and start == pattern.lstrip(".").rstrip("*")[:_SHORT].rstrip("-"):
        return True
    return part.startswith(pattern[:-1]) if pattern.endswith("*") else part == pattern
