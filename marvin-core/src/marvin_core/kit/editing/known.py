"""The files whose content a session knows: it has read them, or written all of them."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

Standing: TypeAlias = Literal["unknown", "same", "changed"]

_KEY = "known_files"
_MOST = 2_000
"""The maximum number of files; the least recently used ones are forgotten."""


class KnownFiles:
    """The known files, in a dictionary that lasts as long as the session.

    Args:
        state: `ToolContext.state`.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._files: dict[str, list[Any]] = state.setdefault(_KEY, {})

    def note(self, path: str, status: os.stat_result, content: bytes | None = None) -> None:
        """Note that a file was read or written.

        Args:
            path: its real absolute path.
            content: all of it, if available: then a file with the same content is known as well.
        """
        self._files.pop(path, None)
        self._files[path] = [*_state(status), _digest(content) if content is not None else ""]
        while len(self._files) > _MOST:
            del self._files[next(iter(self._files))]

    def forget(self, path: str) -> None:
        """Note that a file was deleted."""
        self._files.pop(path, None)

    def standing(self, path: str, status: os.stat_result, content: bytes) -> Standing:
        """Whether a file is unchanged since it was last read or written."""
        known = self._files.get(path)
        if known is None:
            return "unknown"
        if list(known[:-1]) == _state(status) or (known[-1] and known[-1] == _digest(content)):
            return "same"
        return "changed"


def _state(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=12).hexdigest()
