"""Glob patterns as regular expressions: `*`, `?`, `[...]`, `{a,b}`, and `**` for any number of folders."""

from __future__ import annotations

import re
from itertools import pairwise

from ...api.errors import ToolError

_MOST_ALTERNATIVES = 200
_FOLDERS = "(?:[^/]+/)*"
_ANY_DEPTH = re.compile(r"\*\*/\*[^*?\[\]/]+")


def compile_glob(pattern: str, *, any_case: bool = False) -> re.Pattern[str]:
    """The regular expression for a whole path, written with `/`; with `any_case` it ignores case.

    Raises:
        ToolError: the pattern is invalid; the text says why.
    """
    alternatives = expand_braces(pattern.removeprefix("./"))
    expression = "|".join(f"(?:{_translate(alternative)})" for alternative in alternatives)
    try:
        return re.compile(expression, re.DOTALL | (re.IGNORECASE if any_case else re.NOFLAG))
    except re.error as error:
        raise ToolError(f"{pattern!r} is not a valid glob pattern: {error}. Example: 'src/**/*.py'.") from None


def expand_braces(pattern: str) -> list[str]:
    """All expansions of a pattern with `{a,b}`, nested ones too.

    Raises:
        ToolError: there are too many.
    """
    opening = pattern.find("{")
    depth = 0
    parts: list[int] = [opening]
    for index in range(max(opening, 0), len(pattern)):
        character = pattern[index]
        depth += (character == "{") - (character == "}")
        if depth == 1 and character == ",":
            parts.append(index)
        if opening >= 0 and depth == 0:
            parts.append(index)
            break
    if len(parts) < 2 or depth:
        return [pattern]  # no braces, or some that are never closed and thus mean themselves
    head, tails = pattern[:opening], expand_braces(pattern[parts[-1] + 1 :])
    inner = [pattern[start + 1 : end] for start, end in pairwise(parts)]
    found = [head + choice + tail for part in inner for choice in expand_braces(part) for tail in tails]
    if len(found) > _MOST_ALTERNATIVES:
        raise ToolError(f"The braces of {pattern[:100]!r} expand to too many patterns. Use fewer, or '*'.")
    return found


def split_globs(text: str) -> list[str]:
    """The patterns of a comma-separated list; a comma in braces is part of its pattern."""
    depth = 0
    found = [""]
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += character
    return [pattern.strip() for pattern in found if pattern.strip()]


def names_hidden(pattern: str) -> bool:
    """Whether a pattern matches names that begin with a dot."""
    names = [name for alternative in expand_braces(pattern) for name in alternative.split("/")]
    return any(name.startswith(".") and name not in (".", "..") for name in names)


def literal_tails(pattern: str) -> tuple[str, ...]:
    """The endings of all matching names, for `str.endswith`; empty if unknown."""
    tails = tuple(re.split(r"[*?\[\]]", alternative)[-1] for alternative in expand_braces(pattern))
    return tails if all(tails) else ()


def at_any_depth(pattern: str) -> bool:
    """Whether a pattern matches all names with its ending, in any folder: `**/*.py`, or `**/*.{ts,tsx}`."""
    return all(_ANY_DEPTH.fullmatch(alternative) for alternative in expand_braces(pattern))


class GlobFilter:
    """Filters files by a list of patterns like those of .gitignore: without a slash at any depth, `!` excludes."""

    def __init__(self, text: str) -> None:
        patterns = split_globs(text)
        self._patterns = patterns
        self.is_everything = not patterns or patterns == ["*"] or patterns == ["**"] or patterns == ["**/*"]
        self.names_hidden = any(names_hidden(pattern.removeprefix("!")) for pattern in patterns)
        self._wanted = [_anywhere(pattern) for pattern in patterns if not pattern.startswith("!")]
        self._unwanted = [_anywhere(pattern[1:]) for pattern in patterns if pattern.startswith("!")]

    def __call__(self, path: str, start: str) -> bool:
        """Whether a file is selected; patterns with a slash are relative to the root and to `start`."""
        below = path if start == "." else path.removeprefix(f"{start}/")
        if self._unwanted and any(self._is_unwanted(place) for place in (*_places(path), *_places(below))):
            return False
        return not self._wanted or any(pattern.fullmatch(path) or pattern.fullmatch(below) for pattern in self._wanted)

    def _is_unwanted(self, place: str) -> bool:
        return any(pattern.fullmatch(place) for pattern in self._unwanted)

    def for_ripgrep(self) -> list[str]:
        """Options for ripgrep that leave out many unwanted files, and no wanted ones.

        Its `--glob` would include what .gitignore excludes; its types do not, but they match file names only.
        """
        options = [
            f"--glob={pattern}"
            for pattern in self._patterns
            if _SIMPLE.fullmatch(pattern.removeprefix("!")) and pattern.startswith("!")
        ]
        wanted = [pattern for pattern in self._patterns if not pattern.startswith("!")]
        names = [name.rpartition("/")[2] for pattern in wanted for name in expand_braces(pattern)]
        if names and all(_SIMPLE.fullmatch(name) and name.strip("*") for name in names):
            options += [*(f"--type-add=marvin:{name}" for name in names), "--type=marvin"]
        return options


_SIMPLE = re.compile(r"[^/\\{}\[\]!:]+")
"""A pattern for a name that means the same everywhere."""


def _places(path: str) -> list[str]:
    """A path, and the folders that it is in."""
    return [path, *(path[:index] for index, character in enumerate(path) if character == "/")]


def _anywhere(pattern: str) -> re.Pattern[str]:
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    if pattern.startswith("/"):
        return compile_glob(pattern[1:])
    return compile_glob(pattern if "/" in pattern else f"**/{pattern}")


def _translate(pattern: str) -> str:
    first, *others = _between_folders(pattern)
    if not others:
        return "/".join(first)
    # As for stars below: the first folders that fit are as good as any later ones, and are never tried again.
    middle = "".join(f"(?>{_FOLDERS}?{''.join(f'{name}/' for name in run)})" for run in others[:-1] if run)
    last = f"{_FOLDERS}{'/'.join(others[-1])}" if others[-1] else ".+"
    return f"{''.join(f'{name}/' for name in first)}{middle}{last}"


def _between_folders(pattern: str) -> list[list[str]]:
    """The names between one `**` and the next, as expressions; several `**` in a row are one."""
    runs: list[list[str]] = [[]]
    before = ""
    for name in pattern.split("/"):
        if name != "**":
            runs[-1].append(_translate_name(name))
        elif before != "**":
            runs.append([])
        before = name
    return runs


def _translate_name(name: str) -> str:
    first, *others = _between_stars(name)
    if not others:
        return first
    # The first place where a piece fits is as good as any later one, so none of them is ever tried again:
    # with plain stars a pattern of many takes for ever.
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return f"{first}{middle}[^/]*{others[-1]}"


def _between_stars(name: str) -> list[str]:
    pieces, index = [""], 0
    while index < len(name):
        character = name[index]
        closing = name.find("]", index + 2) if character == "[" else -1
        if character == "*":
            pieces.append("")
        elif closing > 0:
            pieces[-1] += _translate_class(name[index + 1 : closing])
            index = closing
        else:
            pieces[-1] += "[^/]" if character == "?" else re.escape(character)
        index += 1
    return pieces


def _translate_class(inner: str) -> str:
    negated = inner[0] in "!^" and len(inner) > 1
    inner = (inner[1:] if negated else inner).replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
    inner = re.sub(r"([-&|~])\1", r"\1\\\1", inner)  # two of one kind may mean another set some day, and warn
    return f"(?!/)[{'^' if negated else ''}{inner}]"
