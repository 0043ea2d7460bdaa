"""Edits as blocks of two texts: SEARCH and REPLACE, or ORIGINAL and UPDATED, with the path above the block."""

from __future__ import annotations

import re

from .patch import FilePatch, Hunk, PatchError

MARK = r"(?:<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)\b"
"""The prefixes of marker lines of this format."""
_OPEN = re.compile(r"(?:<{5,9}|-{5,9}) ?(SEARCH|ORIGINAL)\b>?")
_MIDDLE = re.compile(r"={5,9}\s*$")
_CLOSE = re.compile(r"(?:>{5,9}|\+{5,9}) ?(REPLACE|UPDATED?)\b")
_DECORATION = re.compile(r"^(?:[#*`>\s-]|(?i:file(?:name|path)?|path)\s*:)+|[`*:\s]+$")
_ENDING = re.compile(r"\.\w{1,10}$")
_PLACE = re.compile(r":(start|end)_line:\s*(\d{1,9})\s*$")
"""Lines at the beginning of the old text in blocks of Roo Code, which name its place; a line of dashes ends them."""
_ABOVE = 4
"""The number of lines above a block that may contain the path."""
_LONGEST_PATH = 1_000
"""The maximum length of such a line, in characters."""


def has_blocks(text: str) -> bool:
    """Whether a text is, or begins with, a block."""
    return any(_OPEN.match(line) for line in text.split("\n"))


def read_blocks(text: str, path: str = "") -> list[FilePatch]:
    """The patches of all files, in order; consecutive blocks of one file are one patch.

    Args:
        path: the file of the first blocks, if no line above names it.

    Raises:
        PatchError: a block is not closed, has too many dividers, or has no path.
    """
    patches: list[FilePatch] = []
    lines = [line.rstrip("\r") for line in text.split("\n")]
    at, above = 0, 0
    while at < len(lines):
        opened = _OPEN.match(lines[at])
        if opened is None:
            at += 1
            continue
        path = _path_above(lines[above:at]) or path
        if not path:
            raise PatchError(f"The block in line {at + 1} has no file. Give path, or write the path in the line above.")
        middle, end = _limits(lines, at)
        line, first = _place(lines, at + 1)
        hunk = _hunk(opened[1], lines[first:middle], lines[middle + 1 : end]).replace(line=line)
        if patches and patches[-1].path == path:
            patches[-1] = patches[-1].replace(hunks=(*patches[-1].hunks, hunk))
        else:
            patches.append(FilePatch(path=path, hunks=(hunk,)))
        at = above = end + 1
    return patches


def _place(lines: list[str], start: int) -> tuple[int, int]:
    """The line number of a block, 0 without one, and the position where its old text begins."""
    at, line = start, 0
    while at < len(lines) and (found := _PLACE.match(lines[at])):
        line = int(found[2]) if found[1] == "start" else line
        at += 1
    is_closed = at > start and at < len(lines) and re.fullmatch(r"-{5,9}\s*", lines[at]) is not None
    return (line, at + 1) if is_closed else (0, start)


def _limits(lines: list[str], start: int) -> tuple[int, int]:
    """The positions of the divider and of the last line of a block."""
    dividers: list[int] = []
    for number in range(start + 1, len(lines)):
        if _CLOSE.match(lines[number]):
            break
        if _MIDDLE.match(lines[number]):
            dividers.append(number)
        elif _OPEN.match(lines[number]):
            raise PatchError(f"The block in line {start + 1} is not closed before the one in line {number + 1}.")
    else:
        raise PatchError(f"The block in line {start + 1} has no line '>>>>>>> REPLACE', so it may be cut off.")
    size = len(lines[start]) - len(lines[start].lstrip("<-"))  # of several dividers, the one as long as the first line
    alike = [divider for divider in dividers if len(lines[divider].rstrip()) == size]
    if len(dividers) == 1 or len(alike) == 1:
        return (alike or dividers)[0], number
    if not dividers:
        raise PatchError(f"The block in line {start + 1} has no line '=======' between the old text and the new.")
    found = ", ".join(str(divider + 1) for divider in dividers[:5])
    raise PatchError(
        f"The block in line {start + 1} has {len(dividers)} lines '=======' (lines {found}), and only one can be the "
        "divider. If the text itself has such a line, give path, old_str and new_str instead."
    )


def _hunk(kind: str, old: list[str], new: list[str]) -> Hunk:
    if kind == "ORIGINAL":  # these have texts rather than lines: taking all of one out leaves an empty line
        return Hunk(old="\n".join(old), new="\n".join(new))
    return Hunk(old="".join(f"{line}\n" for line in old), new="".join(f"{line}\n" for line in new), by_lines=True)


def _path_above(lines: list[str]) -> str:
    """The nearest path above a block, or an empty string."""
    seen = 0
    for line in reversed(lines):
        bare = line.strip()
        if not bare or bare == "..." or bare.strip("`~") == "" or bare.startswith("@@"):
            continue
        seen += 1
        if seen > _ABOVE:
            break
        if len(bare) > _LONGEST_PATH:
            continue
        name = _DECORATION.sub("", bare)
        if bare.startswith(("```", "~~~")):
            name = name.rpartition(" ")[2]  # the language comes first
            if "." not in name and "/" not in name:
                continue
        if name and (" " not in name or _ENDING.search(name)) and _looks_like_path(name, seen):
            return name
    return ""


def _looks_like_path(name: str, distance: int) -> bool:
    if re.search(r"[<>|\"'(){};=,!?]", name) or name.endswith("."):
        return False
    return "/" in name or _ENDING.search(name) is not None or distance == 1
