"""Themes: the codes for each part of the chat, in the terminal's own 16 colors, by semantic names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

from ..api.errors import ConfigError
from ..util.text import hint_at
from .rendering import DARK, Role

FOLDER = "themes"
"""The folder of the user's own themes, in the configuration folder."""
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {"default": "39", "bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7", "strike": "9"}
WORDS: Mapping[str, str] = {
    **_STYLES,
    **{name: str(30 + number) for number, name in enumerate(_COLORS)},
    **{f"bright-{name}": str(90 + number) for number, name in enumerate(_COLORS)},
}
"""The words for the style of a part, and their terminal codes."""
_NAME = re.compile(r"\w[\w-]{0,63}")
_LARGEST = 100_000

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "dark": {},
    "light": {"user": "bold blue"},
    "contrast": {
        **dict.fromkeys(get_args(Role), "default"),
        **dict.fromkeys(("marvin", "heading", "bold", "code", "keyword", "tool", "added", "place"), "bold"),
        **dict.fromkeys(("thinking", "italic", "comment"), "italic"),
        "struck": "strike",
        "link": "underline",
        "changed": "reverse",
        **dict.fromkeys(("user", "notice"), "bold underline"),
        "error": "bold reverse",
        "removed": "underline",
    },
    "colorblind": {"error": "bold yellow", "notice": "bright-yellow"},
}
"""The built-in themes: their differences from the dark one, in addition to the colors in `_SWAPPED`."""
_SWAPPED: Mapping[str, Mapping[str, str]] = {
    "light": {"33": "35", "36": "34", "93": "35", "96": "34"},
    "colorblind": {"31": "33", "32": "94", "91": "93", "92": "94"},
}
"""Codes of the dark theme that other themes replace in every part."""
MEANINGS: Mapping[str, str] = {
    "dark": "for a dark background",
    "light": "for a light background",
    "contrast": "bold, underlined and reversed in place of colours",
    "colorblind": "blue and yellow in place of green and red",
}


def names(folder: Path) -> Mapping[str, str]:
    """All themes, each with its description; `folder` is that of the configuration."""
    try:
        own = sorted(path.stem for path in (folder / FOLDER).glob("*.yaml") if _NAME.fullmatch(path.stem))
    except OSError:
        own = []
    return {**MEANINGS, **dict.fromkeys(own, "your own")}


def load(name: str, folder: Path) -> Mapping[str, str]:
    """The codes of a theme by role; a file of the user takes precedence over a built-in theme. Blocks.

    Raises:
        ConfigError: there is no such theme, or its file is invalid.
    """
    path = folder / FOLDER / f"{name}.yaml"
    if _NAME.fullmatch(name) and path.is_file():
        base, theme = _read(path)
        return _codes(theme, base, str(path))
    if name not in BUILT_IN:
        raise ConfigError(f"There is no theme {name!r}. {hint_at(name, names(folder))}")
    return _codes({}, name, name)


def _read(path: Path) -> tuple[str, Mapping[str, str]]:
    """The theme that a file is based on, and the file's own settings."""
    from ..util.yaml.edit import load_mapping

    try:
        with path.open("rb") as stream:
            text = stream.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ConfigError(f"{path} has more than {_LARGEST:,} bytes, more than a theme may have.")
        data = load_mapping(text.decode()) or {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a theme: {error}.") from error
    base = data.pop("base", "dark")
    if not isinstance(base, str) or base not in BUILT_IN:
        raise ConfigError(f"{path}: base is {base!r}. Allowed: {', '.join(BUILT_IN)}.")
    return base, data


def _codes(theme: Mapping[str, str], base: str, place: str) -> Mapping[str, str]:
    """The codes of a theme with these settings, based on a built-in one."""
    roles = get_args(Role)
    swapped = _SWAPPED.get(base, {})
    found = {role: ";".join(swapped.get(code, code) for code in codes.split(";")) for role, codes in DARK.items()}
    for role, words in {**BUILT_IN[base], **theme}.items():
        if role not in roles:
            raise ConfigError(f"{place}: unknown key {role!r}. {hint_at(str(role), roles)}")
        unknown = [word for word in str(words).split() if word not in WORDS]
        if unknown or not str(words).split():
            raise ConfigError(f"{place}: {role} is {str(words)!r:.100}. {hint_at((unknown or [''])[0], WORDS)}")
        found[role] = ";".join(WORDS[word] for word in str(words).split())
    return found


class Palette:
    """The codes of the current theme, by role. An invalid theme is reported once, and the dark one is used instead.

    `name` returns the theme's name, which may change at any time.
    """

    def __init__(self, name: Callable[[], str], folder: Path, warn: Callable[[str], None]) -> None:
        self._name = name
        self._folder = folder
        self._warn = warn
        self._loaded = "dark"
        self._codes: Mapping[str, str] = DARK

    def __call__(self) -> Mapping[str, str]:
        """The codes; they are loaded if the theme has changed."""
        name = self._name()
        if name != self._loaded:
            self._loaded, self._codes = name, DARK
            try:
                self._codes = load(name, self._folder)
            except ConfigError as error:
                self._warn(str(error))
        return self._codes
