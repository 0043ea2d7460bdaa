"""The chat log of a profile: the conversations of all its chats, shared by all running Marvins."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ..api.errors import MarvinError
from ..api.messages import Message, Text, user
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..util.state_files import locked, replace_file, set_aside
from ..util.text import one_line
from ..util.threads import in_thread
from ..util.untrusted_json import parse_json

Speaker: TypeAlias = Literal["you", "assistant", "system"]

_AT_ONCE = 0.0
"""The timeout for reads while a prompt is built: they do not wait."""
KEPT = 1_000
"""The maximum number of entries in the file."""
SEEDED = 20
"""The number of newest entries that a new chat gets."""
COMPACT = 200
"""The maximum length of an entry in the compact history, in characters."""


class ChatEntry(Record):
    """One message; `time` is ISO 8601 with the offset from UTC, `folder` the working directory of the chat."""

    role: Speaker
    text: str
    time: str
    folder: str = ""


def entry(role: Speaker, text: str, now: float, folder: str = "") -> ChatEntry:
    """An entry for this time, in seconds since the epoch."""
    from datetime import datetime

    time = datetime.fromtimestamp(now).astimezone().isoformat(timespec="seconds")
    return ChatEntry(role=role, text=text, time=time, folder=folder)


class ChatLog:
    """A `chat_log.json`. `warn` is called if a damaged one was moved aside."""

    def __init__(self, path: Path, timeouts: Timeouts, warn: Callable[[str], None]) -> None:
        self._path = path
        self._timeouts = timeouts
        self._warn = warn

    def append(self, entries: Sequence[ChatEntry]) -> None:
        """Append entries; the oldest ones beyond `KEPT` are removed. Blocks while another process writes.

        Raises:
            MarvinError: another process holds the file for too long.
            OSError: it cannot be read or written; the old content is then unchanged.
        """
        with locked(self._path, self._timeouts.lock, self._timeouts.lock_poll):
            # Fields that another program added to an entry are kept.
            kept = [*self._items(), *(one.as_dict() for one in entries)][-KEPT:]
            replace_file(self._path, json.dumps(kept, ensure_ascii=False, indent=1).encode("utf-8", "replace"))

    def newest(self, count: int, wanted: Callable[[ChatEntry], bool] = lambda one: True) -> list[ChatEntry]:
        """The last entries that are `wanted`, oldest first; empty if there is no log. Raises as `append`."""
        try:
            items = _parsed(self._path.read_bytes())
        except FileNotFoundError:
            return []
        if items is None:
            with locked(self._path, _AT_ONCE, self._timeouts.lock_poll):
                items = self._items()
        found = (_entry_of(item) for item in reversed(items or ()))
        return [*islice((one for one in found if one is not None and wanted(one)), count)][::-1]

    def _items(self) -> list[Any]:
        """The whole content of the file, read under its lock; a damaged file is moved aside."""
        try:
            items = _parsed(self._path.read_bytes())
        except FileNotFoundError:
            return []
        if items is None:
            moved = set_aside(self._path)
            self._warn(
                f"The chat log {self._path} was damaged. It was kept as {moved.name}, and a new one was started."
            )
        return items or []


def _parsed(content: bytes) -> list[Any] | None:
    """The array in the file; None if there is none."""
    try:
        data = parse_json(content)
    except ValueError:
        return None
    return data if isinstance(data, list) else None


def _entry_of(item: Any) -> ChatEntry | None:
    if not isinstance(item, dict) or item.get("role") not in get_args(Speaker) or not isinstance(item.get("text"), str):
        return None
    return ChatEntry(
        role=item["role"], text=item["text"], time=str(item.get("time", "")), folder=str(item.get("folder", ""))
    )


def seed(entries: Sequence[ChatEntry]) -> list[Message]:
    """The entries as messages, without system messages and without answers before the first question."""
    messages: list[Message] = []
    for one in entries:
        if one.role == "you" and one.text:
            messages.append(user(one.text))
        elif one.role == "assistant" and one.text and messages:
            messages.append(Message(role="assistant", content=(Text(text=one.text),)))
    return messages


def compact(entries: Sequence[ChatEntry]) -> str:
    """The entries as a list for the system prompt, with one short line each."""
    return "\n".join(f"- {one.role}: {one_line(one.text, COMPACT)}" for one in entries)


class ChatLogWriter:
    """Writes entries in order in a separate thread, so that no conversation waits for the disk.

    If the log cannot be written, its entries are lost, but the conversation continues; `flush` warns about it.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._pending: deque[tuple[ChatLog, ChatEntry]] = deque()
        self._problems: list[str] = []
        self._writing = threading.Lock()

    def add(self, log: ChatLog, one: ChatEntry) -> None:
        """Queue an entry for writing."""
        self._pending.append((log, one))
        threading.Thread(target=self._write, daemon=True).start()

    def report(self, problem: str) -> None:
        """Store a warning of the log, from any thread, until `flush`."""
        self._problems.append(problem)

    async def flush(self) -> None:
        """Wait until everything is on disk."""
        if self._pending or self._writing.locked():
            await in_thread(self._write)
        while self._problems:
            self._warn(self._problems.pop(0))

    def _write(self) -> None:
        with self._writing:
            pending = [self._pending.popleft() for _ in range(len(self._pending))]
            for log in dict.fromkeys(log for log, _ in pending):
                try:
                    log.append([one for owner, one in pending if owner is log])
                except (MarvinError, OSError) as error:
                    self._problems.append(f"The chat log could not be written: {error}")
