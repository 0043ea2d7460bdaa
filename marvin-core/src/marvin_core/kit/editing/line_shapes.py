"""Aligns the lines of an old text and a new one: kept lines, surrounding blank lines, and lines left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .patch import Hunk

_ELLIPSIS = re.compile(r"\s*(?:#|//|--|;|%|/\*|<!--|\*)?\s*(?:\.\.\.|…)(?: [\w ,'-]{0,60})?(?:\s*(?:\*/|-->))?\s*")

_MERGED = 40_000
"""The maximum number of pairs of lines that are compared to find the kept lines."""


def split(text: str) -> list[str]:
    """The lines of a text, without line endings."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def shapes(hunk: Hunk, old: str, new: str) -> Iterator[tuple[list[str], list[str], str]]:
    """The lines of both texts: unchanged first, then without surrounding blank lines."""
    given, fresh = split(old), split(new)
    if not hunk.by_lines and not old.endswith("\n") and (not new or new.endswith("\n")):
        fresh.append("")  # a line end of the new text that the old one does not have is a line more
    yield given, fresh, ""
    head = next(i for i, line in enumerate(given) if line.strip())
    tail = next(i for i, line in enumerate(reversed(given)) if line.strip())
    if not head and not tail:
        return
    inner = given[head : len(given) - tail]
    while head and fresh and not fresh[0].strip():
        fresh, head = fresh[1:], head - 1
    while tail and fresh and not fresh[-1].strip():
        fresh, tail = fresh[:-1], tail - 1
    yield inner, fresh, "empty lines around it"


def merged(given: list[str], fresh: list[str], found: list[str]) -> Iterator[tuple[str, bool]]:
    """The new lines; lines that the old text has as well are taken from the file."""
    from difflib import SequenceMatcher  # 2 ms, and only after a mistake

    head = 0
    while head < min(len(given), len(fresh)) and given[head] == fresh[head]:
        yield found[head], True
        head += 1
    tail = 0
    while tail < min(len(given), len(fresh)) - head and given[-1 - tail] == fresh[-1 - tail]:
        tail += 1
    olds, news = given[head : len(given) - tail], fresh[head : len(fresh) - tail]
    if len(olds) * len(news) <= _MERGED:
        for tag, i, j, k, m in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
            if tag == "equal":
                yield from ((line, True) for line in found[head + i : head + j])
            else:
                yield from ((line, False) for line in news[k:m])
    else:
        yield from ((line, False) for line in news)
    yield from ((line, True) for line in found[len(found) - tail :] if tail)


def parted(text: str) -> list[tuple[str, str]]:
    """The parts between ellipsis lines, each with the ellipsis after it."""
    parts: list[tuple[str, str]] = []
    lines: list[str] = []
    for line in split(text):
        if _ELLIPSIS.fullmatch(line):
            parts.append(("".join(f"{one}\n" for one in lines), line.strip()))
            lines = []
        else:
            lines.append(line)
    return [*parts, ("".join(f"{one}\n" for one in lines), "")]
