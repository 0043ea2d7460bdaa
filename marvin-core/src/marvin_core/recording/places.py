"""Folders of this machine in texts: placeholders in a cassette, the folders themselves where it is replayed."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..api.config import Config

NAMES = ("cwd", "home", "temp", "config", "data", "cache", "state", "python")
_STANDING = re.compile(rf"\{{(=*)({'|'.join(NAMES)})\}}")
_SHORTEST = 2
"""Parts of a path: whoever works in `/` has no folder that could be told from any other."""


class Places:
    """Takes the folders of one machine out of texts, and puts those of another one in.

    `later` are working directories that came after the first one; they are hidden as that is.

    What is written like a placeholder in the text itself gets one more `=`, so that it comes back as it was.
    """

    def __init__(self, folders: Mapping[str, Path | str], later: Sequence[Path] = ()) -> None:
        self._folders = {name: str(folder) for name, folder in folders.items()}
        spellings: dict[str, str] = {}
        for name, folder in (*self._folders.items(), *(("cwd", str(folder)) for folder in later)):
            for path in dict.fromkeys((folder, os.path.realpath(folder))):
                if len(Path(path).parts) >= _SHORTEST:
                    for spelling in (path, json.dumps(path)[1:-1], json.dumps(path, ensure_ascii=False)[1:-1]):
                        spellings.setdefault(spelling, name)
                    spellings.setdefault(quote(path), name)
        self._spellings = spellings
        longest_first = sorted(map(re.escape, spellings), key=len, reverse=True)
        self._pattern = re.compile(rf"(?:{'|'.join(longest_first)})(?![\w-])") if spellings else None

    def hide(self, text: str) -> str:
        """The text with placeholders in place of the folders."""
        if "{" in text:
            text = _STANDING.sub(lambda found: f"{{={found[1]}{found[2]}}}", text)
        if self._pattern is None or "/" not in text:
            return text
        return self._pattern.sub(lambda found: f"{{{self._spellings[found[0]]}}}", text)

    def put_back(self, text: str, *, in_json: bool = False) -> str:
        """The text with the folders of this machine.

        Args:
            in_json: whether the text is JSON, in which some characters of a folder have to be escaped.
        """

        def folder(found: re.Match[str]) -> str:
            if found[1]:
                return f"{{{found[1][1:]}{found[2]}}}"
            path = self._folders.get(found[2], found[0])
            return json.dumps(path, ensure_ascii=False)[1:-1] if in_json else path

        return _STANDING.sub(folder, text) if "{" in text else text


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The value of JSON with each of its texts changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): each_text(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [each_text(inner, change) for inner in value]
    return value


def places_of(config: Config, *roots: Path) -> Places:
    """The folders of a run. Of two names for one folder, the first one counts.

    Args:
        roots: the working directory, and others that took its place later.
    """
    return Places(
        {
            "cwd": roots[0],
            "config": config.config_folder,
            "data": config.data_folder,
            "cache": config.cache_folder,
            "state": config.state_folder,
            "home": config.home,
            "python": sys.prefix,
            "temp": tempfile.gettempdir(),
        },
        roots[1:],
    )
