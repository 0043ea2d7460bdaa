"""Searches the stored sessions: lists, full-text search, and the branches of a session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.controls import Branch, SessionEntry
from ..api.errors import SessionError
from ..api.messages import Message, from_dict
from ..api.record import Record
from ..util.text import one_line
from .reader import BackwardReader, time_of
from .records import LARGEST_LINE, Header
from .store import read_header, sessions

_AROUND = 60
"""The number of characters before and after a match in a snippet."""


class SearchHit(Record):
    """A session that contains a text: some snippets around it, and the number of messages that contain it."""

    entry: SessionEntry
    snippets: tuple[str, ...]
    messages: int
    times: tuple[float, ...] = ()
    """The time of each snippet's message in seconds since the epoch; 0 if unknown."""


def survey(path: Path) -> SessionEntry | None:
    """The list entry of a session; None if it has no valid header.

    No message is decoded, and reading stops at the newest header with a count of messages.
    """
    try:
        written = path.stat().st_mtime
        with BackwardReader(path) as reader:
            messages = reader.messages()
            return _entry(reader.header(), messages, written)
    except (OSError, SessionError):
        return None


def _entry(header: Header, messages: int, written: float) -> SessionEntry:
    return SessionEntry(
        id=header.id,
        title=one_line(header.title) or "(no title)",
        time=written,
        provider=header.provider,
        model=header.model,
        messages=messages,
        working_dir=header.working_dir,
        parent=header.parent,
    )


def entries(folder: Path, working_dir: str = "") -> Iterator[tuple[Path, SessionEntry | None]]:
    """The sessions of a folder, most recently written first; None for a damaged one.

    `working_dir` keeps only those of that folder.
    """
    for path in sessions(folder):
        if working_dir:
            header = read_header(path)
            if header is None or header.working_dir != working_dir:
                continue
        yield path, survey(path)


def search(folder: Path, text: str, shown: int = 3, largest: int = LARGEST_LINE) -> Iterator[SearchHit]:
    """The sessions with a text in their title or a message, most recently written first.

    Case and line breaks are ignored. Messages before a compaction are found too.

    Args:
        shown: the maximum number of snippets per session.
        largest: the maximum size of a line in bytes; longer ones are skipped.
    """
    wanted = re.compile(re.escape(one_line(text)), re.IGNORECASE)
    for path in sessions(folder):
        try:
            written = path.stat().st_mtime
            header, records = _read(path, largest)
        except (OSError, SessionError):
            continue
        texts = [(one_line(visible_text(message)), time) for message, time in _timed(records.values())]
        hits = [(hit, text, time) for text, time in texts if (hit := wanted.search(text))]
        if hits or wanted.search(one_line(header.title)):
            yield SearchHit(
                entry=_entry(header, len(texts), written),
                snippets=tuple(_snippet(text, *hit.span()) for hit, text, _ in hits[:shown]),
                messages=len(hits),
                times=tuple(time for _, _, time in hits[:shown]),
            )


def _read(path: Path, largest: int) -> tuple[Header, dict[str, dict[str, Any]]]:
    """The newest header, and all records by id, oldest first."""
    with BackwardReader(path, largest) as reader:
        reader.read_all()
        return reader.header(), dict(reversed(reader.records.items()))


def _messages(records: Iterable[Any]) -> Iterator[Message]:
    return (message for message, _ in _timed(records))


def _timed(records: Iterable[Any]) -> Iterator[tuple[Message, float]]:
    """The messages among records, and their times."""
    for record in records:
        try:
            if record["type"] == "message":
                yield from_dict(record["message"]), time_of(record)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def visible_text(message: Message) -> str:
    """All visible texts of a message: its text, its calls, and the outputs that it carries."""
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    return "\n".join([message.text, *calls, *(output.text for output in message.outputs)]).strip()


def _snippet(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _AROUND), end + _AROUND
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"


def branches(path: Path, current: str, largest: int = LARGEST_LINE) -> list[Branch]:
    """The branches of a session, in the order of their ends. `current` is the last record of the branch in use.

    Raises:
        SessionError: if the file cannot be read.
    """
    _, records = _read(path, largest)
    lineages = _Lineages(records)
    places = {key: lineages.place(key) for key in _ends(records) | {current: None} if key in records}
    inner = lineages.inner()
    here = places.get(current, _Place())
    common = lineages.messages(here)
    return [
        Branch(
            leaf=leaf,
            messages=place.messages,
            shared=lineages.shared(place, common),
            prompt=_shown(records.get(place.prompt), "user"),
            answer=_shown(records.get(place.last), "assistant"),
            current=place.last == here.last,
            time=time_of(records[place.last]),
        )
        for leaf, place in places.items()
        # A record with state only, in the middle of another branch, is not a branch.
        if place.last and (place.last == here.last or place.last not in inner)
    ]


def _shown(record: dict[str, Any] | None, role: str) -> str:
    """The content of a record in one line, if it is a message of that role."""
    return next((one_line(message.text) for message in _messages([record]) if message.role == role), "")


def _ends(records: Mapping[str, dict[str, Any]]) -> dict[str, None]:
    followed = {str(record.get("parent")) for record in records.values()}
    return dict.fromkeys(key for key in records if key not in followed)


class _Place(Record):
    """The data of the path from the root to a record, including the record."""

    messages: int = 0
    last: str = ""
    """Its last message."""
    previous: str = ""
    """The message before that."""
    prompt: str = ""
    """The last message of the user."""


class _Lineages:
    """The paths from the first record to each other one; every record is visited once."""

    def __init__(self, records: Mapping[str, dict[str, Any]]) -> None:
        self._records = records
        self._places: dict[str, _Place] = {}
        self._shared: dict[str, int] = {}

    def place(self, leaf: str) -> _Place:
        """The data of the path to a record."""
        way: dict[str, None] = {}
        while leaf in self._records and leaf not in self._places and leaf not in way:
            way[leaf] = None
            leaf = str(self._records[leaf].get("parent"))
        place = self._places.get(leaf, _Place())
        for key in reversed(way):
            place = self._places[key] = self._next(key, place)
        return place

    def _next(self, key: str, above: _Place) -> _Place:
        record = self._records[key]
        if record["type"] != "message":
            return above
        message = record.get("message")
        asked = isinstance(message, dict) and message.get("role") == "user"
        return _Place(messages=above.messages + 1, last=key, previous=above.last, prompt=key if asked else above.prompt)

    def inner(self) -> set[str]:
        """The messages with children."""
        return {place.previous for place in self._places.values()}

    def messages(self, place: _Place) -> set[str]:
        """The messages on a path."""
        found: set[str] = set()
        while place.last and place.last not in found:
            found.add(place.last)
            place = self._places.get(place.previous, _Place())
        return found

    def shared(self, place: _Place, here: set[str]) -> int:
        """The number of messages that a path shares with that other one, which is always the same."""
        way: dict[str, None] = {}
        while place.last and place.last not in here and place.last not in self._shared and place.last not in way:
            way[place.last] = None
            place = self._places.get(place.previous, _Place())
        count = self._shared.get(place.last, place.messages)
        self._shared.update(dict.fromkeys(way, count))
        return count
