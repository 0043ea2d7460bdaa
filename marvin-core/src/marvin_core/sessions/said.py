"""What was said in a folder, by the files of its sessions: what else is kept of a chat may not name the folder."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from ..api.errors import SessionError
from .reader import load
from .records import LARGEST_LINE
from .search import entries

_SESSIONS = 20
"""The newest sessions of a folder that are looked through."""


def said_in(folder: Path, working_dir: str, largest: int = LARGEST_LINE) -> frozenset[tuple[str, str]]:
    """Role and text of what users and models said in the newest sessions of a working directory. Blocks.

    Args:
        folder: where the session files are.
        largest: the most bytes of a line; longer ones are passed over.
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
