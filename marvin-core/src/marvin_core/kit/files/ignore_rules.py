"""The rules of .gitignore files, for use without git."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.tool_context import ToolContext
from .names import shown_name

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER = (".git", ".tickets")
"""Folders that are not listed, ignoring case."""

_BYTES = "latin-1"
_MOST_BYTES = 1_000_000
"""The maximum number of bytes of one rules file that are read."""
_STARS = re.compile(r"\*\*+")
_CLASS = re.compile(r"\[:([a-z]+):\]")
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
    "space": " \t\v\f\r",
    "blank": " \t",
    "punct": "!-.:-@\\\\[-`{-~",
    "cntrl": "\x01-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
}
"""The characters of the POSIX classes, which the library does not support."""


class IgnoreRules:
    """The rules of the .gitignore files from one folder downwards, each read on first use.

    Args:
        top: the folder of the first .gitignore, relative to the root; empty for the root.
        bad: receives invalid lines, each with its position.
    """

    def __init__(self, context: ToolContext, top: str = "", bad: list[str] | None = None) -> None:
        self._context = context
        self._top = top
        self._bad = [] if bad is None else bad
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path below the top is excluded; the deepest file with a matching rule decides."""
        folder = path
        while folder != self._top and folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                below = path[len(folder) + 1 :] if folder else path
                decision = _decision(spec, _as_bytes(below), is_folder=is_folder)
                if decision is not None:
                    return decision
        return False

    def ignores_above(self, path: str) -> bool:
        """Whether a folder, or one of its parents, is excluded."""
        names = path.split("/")
        return any(self.ignores("/".join(names[: end + 1]), is_folder=True) for end in range(len(names)))

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = self._load(f"{folder}/.gitignore" if folder else ".gitignore")
        return self._specs[folder]

    def _load(self, path: str) -> GitIgnoreSpec | None:
        try:
            with self._context.paths.open(path) as file:
                lines = file.read(_MOST_BYTES).decode(_BYTES).split("\n")
        except ToolError:
            return None
        spec, bad = _compiled([_for_library(line) for line in lines])
        self._bad += [f"{shown_name(path)}:{number}: {shown_name(lines[number - 1])}" for number in bad]
        return spec


def _decision(spec: GitIgnoreSpec, path: str, *, is_folder: bool) -> bool | None:
    """The result of the last matching rule; None without a match."""
    found = [spec.check_file(path)]
    if is_folder:  # asked for a folder alone, the library sets rules for folders back behind those for all names
        found.append(spec.check_file(f"{path}/"))
    return max(found, key=lambda result: -1 if result.index is None else result.index).include


def _as_bytes(path: str) -> str:
    """A path with each of its bytes as one character: `?` matches one byte in git."""
    return path if path.isascii() else os.fsencode(path).decode(_BYTES)


def _for_library(line: str) -> str:
    """A line without syntax that the library reads differently from git."""
    line = _CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), line.removesuffix("\r"))
    if line.removeprefix("!") == "/":
        return ""
    return line if "/" in line.rstrip("/") else _STARS.sub("*", line)


def _compiled(lines: list[str]) -> tuple[GitIgnoreSpec, list[int]]:
    """Parse the rules of a file. Like git, this ignores invalid lines.

    Returns:
        The rules, and the numbers of the invalid lines.
    """
    import warnings

    from pathspec import GitIgnoreSpec  # 8 ms, and most folders have no such file

    with warnings.catch_warnings(action="ignore"):  # an odd class such as [[a] causes a warning on standard error
        try:
            return GitIgnoreSpec.from_lines(lines), []
        except (ValueError, re.error):
            bad = [number for number, line in enumerate(lines, 1) if not _is_rule(line)]
            return GitIgnoreSpec.from_lines([line for number, line in enumerate(lines, 1) if number not in bad]), bad


def _is_rule(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
