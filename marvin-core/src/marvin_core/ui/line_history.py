"""The lines that were typed, kept per profile in one file that several chats append to at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

READ_LIMIT = 1_000_000
"""Bytes from the end of the file that are read."""
ENTRY_LIMIT = 20_000
"""Characters; what is longer is in the session, and would only slow the editing of lines."""


class LineHistory(History):
    """The file has a comment with the time before each entry, and `+` before each of its lines."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest one first."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - READ_LIMIT))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return []
        entries: list[list[str]] = [[]]
        for line in lines:
            if line.startswith("+"):
                entries[-1].append(line[1:])
            elif entries[-1]:
                entries.append([])
        return ["\n".join(entry) for entry in reversed(entries) if entry]

    def store_string(self, string: str) -> None:
        """Append an entry in one write; where that fails, the entry is kept for this chat only."""
        if len(string) > ENTRY_LIMIT:
            return
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        data = f"\n# {time.strftime('%Y-%m-%d %H:%M:%S')}\n{lines}".encode("utf-8", "replace")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(descriptor, data)
        except OSError:
            return
        finally:
            os.close(descriptor)
