"""Names as file systems compare them: one file may be reached by several spellings."""

from __future__ import annotations

from collections.abc import Collection

_INVISIBLE = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""What HFS+ leaves out of names; as git's utf8.c has it, which guards `.git` the same way."""
_SHORT = 6
"""The characters of a name that are left in the short one which NTFS also gives it: `GIT~1`, `TICKET~1`."""


def matches(parts: tuple[str, ...], patterns: Collection[tuple[str, ...]]) -> bool:
    """Whether some run of the parts is one of the patterns, on any file system that a folder may lie on.

    A star at the end of a pattern's part stands for the rest of the name.
    """
    plain = tuple(map(_plain, parts))
    return any(
        all(map(_matches_part, plain[start : start + len(pattern)], pattern))
        for pattern in patterns
        for start in range(len(plain) - len(pattern) + 1)
    )


def _plain(part: str) -> str:
    """A name without what some file system ignores: case, dots and spaces at the end, a stream behind a colon."""
    return part.translate(_INVISIBLE).partition(":")[0].rstrip(". ").casefold()


def _matches_part(part: str, pattern: str) -> bool:
    start, _, number = part.partition("~")
    if number.isdigit() and start == pattern.lstrip(".").rstrip("*")[:_SHORT].rstrip("-"):
        return True
    return part.startswith(pattern[:-1]) if pattern.endswith("*") else part == pattern
