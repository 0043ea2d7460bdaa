"""Reads files that agents wrote: links are not followed, also in the path, and sizes are limited."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path

_LARGEST = 2_000_000
"""Bytes of one file."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def text_below(root: Path, name: str) -> str:
    """The text of a regular file, at most two million bytes of it; empty for anything else. Blocks.

    Args:
        name: relative to the root, as git gives it.
    """
    *folders, base = name.split("/")
    try:
        with ExitStack() as opened:
            place = os.open(root, _FOLDER)
            opened.callback(os.close, place)
            for folder in folders:
                place = os.open(folder, _FOLDER, dir_fd=place)
                opened.callback(os.close, place)
            with open(os.open(base, _READ, dir_fd=place), "rb") as stream:
                is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
                return stream.read(_LARGEST).decode("utf-8", "replace") if is_file else ""
    except (OSError, ValueError):
        return ""
