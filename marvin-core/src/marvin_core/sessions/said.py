"""The messages of a folder, from its session files: other records of a chat may lack the folder."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from ..api.errors import SessionError
from .reader import load
from .records import LARGEST_LINE
from .search import entries

_SESSIONS = 20
"""The number of newest sessions of a folder to search."""


def said_in(folder: Path, working_dir: str, largest: int = LARGEST_LINE) -> frozenset[tuple[str, str]]:
    """Role and text of what users and models said in the newest sessions of a working directory. Blocks.

    Args:
        folder: the folder of the session files.
        largest: the maximum size of a line in bytes; longer ones are skipped.
    """
    found: set[tuple[str, str]] = set()
    for path, entry in islice(entries(folder, working_dir), _SESSIONS):
        if entry is None:
            continue
        try:
            messages = load(path, largest=largest).messages
        except (OSError, SessionError):
            continue
        found.update((message.role, message.text) for message in messages if message.role in ("user", "assistant"))
    return frozenset(found)
