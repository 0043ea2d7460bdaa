"""Replaces folders of this machine in texts by placeholders in a cassette, and restores them for a replay."""

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
"""The least number of parts of a path: the folder `/` could not be distinguished from other text."""


class Places:
    """Removes the folders of one machine from texts, and inserts those of another one.

    `later` are working directories after the first one; they are hidden in the same way.

    Text that already looks like a placeholder gets an additional `=`, so that it is restored unchanged.
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
            in_json: whether the text is JSON, so that some characters of a folder must be escaped.
        """

        def folder(found: re.Match[str]) -> str:
            if found[1]:
                return f"{{{found[1][1:]}{found[2]}}}"
            path = self._folders.get(found[2], found[0])
            return json.dumps(path, ensure_ascii=False)[1:-1] if in_json else path

        return _STANDING.sub(folder, text) if "{" in text else text


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The JSON value with a function applied to each of its texts, including keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): each_text(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [each_text(inner, change) for inner in value]
    return value


def places_of(config: Config, *roots: Path) -> Places:
    """The folders of a run. If a folder has two names, the first one applies.

    Args:
        roots: the working directory, and later working directories of the run.
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
