"""Which files a session knows: those that it has read, and those that it wrote itself."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

Standing: TypeAlias = Literal["unknown", "same", "changed"]

_KEY = "known_files"
_MOST = 2_000
"""Files that are remembered; what was not used for longest is forgotten first."""


class KnownFiles:
    """What is known of files, in a dictionary that lasts as long as the session.

    Args:
        state: `ToolContext.state`.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._files: dict[str, list[Any]] = state.setdefault(_KEY, {})

    def note(self, path: str, status: os.stat_result, content: bytes | None = None) -> None:
        """A file was read or written.

        Args:
            path: where it really is, with all folders.
            content: all of it, where that is at hand: then it is known again where somebody wrote the same.
        """
        self._files.pop(path, None)
        self._files[path] = [*_state(status), _digest(content) if content is not None else ""]
        while len(self._files) > _MOST:
            del self._files[next(iter(self._files))]

    def forget(self, path: str) -> None:
        """A file is gone."""
        self._files.pop(path, None)

    def standing(self, path: str, status: os.stat_result, content: bytes) -> Standing:
        """Whether a file is as it was when it was read or written last."""
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
