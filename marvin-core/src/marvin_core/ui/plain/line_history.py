"""The history of typed lines, one file per profile, to which several chats append at once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from itertools import dropwhile
from pathlib import Path

from prompt_toolkit.history import History

from ...util.state_files import make_private_folder

READ_LIMIT = 1_000_000
"""The number of bytes that are read from the end of the file."""
ENTRY_LIMIT = 200_000
"""The maximum length of a line in characters; a longer one is in the session, and would displace many others."""
_WITH_KEY = re.compile(r"(?s)(/log(?:in|out)\b(?:\s+[A-Za-z][\w-]{0,19}(?!\S))?).*")
"""The first group is the part of a `/login` line that may be stored. A name of a service has at most 20 characters; any
longer word may be a key."""


class LineHistory(History):
    """A file with a comment that gives the time before each entry, and `+` before each line of an entry.

    Args:
        path: returns the current file; each profile has its own.
        keep: returns the part of an entry that may be stored.
    """

    def __init__(self, path: Callable[[], Path], keep: Callable[[str], str] = str) -> None:
        super().__init__()
        self._path = path
        self.fold: Callable[[str], str] = str
        """The displayed form of an entry."""
        self._keep = keep
        self._loaded_from: Path | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the loaded entries belong to another profile."""
        return self._loaded_from not in (None, self._path())

    def add(self, shown: str, text: str) -> None:
        """Store a line: in this chat as displayed, in the file as sent."""
        self._loaded_strings.insert(0, shown)
        self.store_string(text)

    async def load(self) -> AsyncGenerator[str, None]:
        """The displayed entries, newest first."""
        if self._loaded_from != self._path():
            self._loaded_from = self._path()
            self._loaded_strings = [self.fold(entry) for entry in self.load_history_strings()]
        for entry in self._loaded_strings:
            yield entry

    def load_history_strings(self) -> Iterable[str]:
        """The entries in the file, newest first."""
        try:
            with self._path().open("rb") as file:
                cut = file.seek(max(0, file.seek(0, os.SEEK_END) - READ_LIMIT))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return []
        if cut:  # an entry without its beginning is invalid
            lines = list(dropwhile(lambda line: not line.startswith("#"), lines))
        entries: list[list[str]] = [[]]
        for line in lines:
            if line.startswith("+"):
                entries[-1].append(line[1:])
            elif entries[-1]:
                entries.append([])
        return ["\n".join(entry) for entry in reversed(entries) if entry]

    def store_string(self, string: str) -> None:
        """Append an entry in one write; if that fails, the entry is kept for this chat only."""
        if len(string) > ENTRY_LIMIT:
            return
        keyed = _WITH_KEY.fullmatch(string)
        kept = self._keep(keyed[1] if keyed is not None else string)
        lines = "".join(f"+{line}\n" for line in kept.split("\n"))
        data = f"\n# {time.strftime('%Y-%m-%d %H:%M:%S')}\n{lines}".encode("utf-8", "replace")
        path = self._path()
        try:
            make_private_folder(path.parent)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(descriptor, data)
        except OSError:
            return
        finally:
            os.close(descriptor)
