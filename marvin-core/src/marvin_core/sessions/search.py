"""Looking through the sessions on disk: lists, search, and the branches of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..api.errors import SessionError
from ..api.messages import Message, from_dict
from ..api.record import Record
from ..api.session import Branch, SessionEntry
from ..util.text import one_line
from .reader import BackwardReader
from .records import Header
from .store import read_header, sessions

_AROUND = 60
"""How many characters a snippet shows on each side of what was found."""


class SearchHit(Record):
    """A session that holds a text: some snippets around it, and how many messages hold it in all."""

    entry: SessionEntry
    snippets: tuple[str, ...]
    messages: int


def survey(path: Path) -> SessionEntry | None:
    """What a list shows of a session; None where it has no usable header.

    No message is decoded, and nothing is read above the newest header that says how many messages it follows.
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
    """The sessions of a folder, the one written last first; None for a damaged one.

    `working_dir` keeps only those of that folder.
    """
    for path in sessions(folder):
        if working_dir:
            header = read_header(path)
            if header is None or header.working_dir != working_dir:
                continue
        yield path, survey(path)


def search(folder: Path, text: str, shown: int = 3) -> Iterator[SearchHit]:
    """The sessions with a text in their title or a message, the one written last first.

    Capitals and line breaks do not matter. What was said before a compaction is found as well.

    Args:
        shown: how many snippets of a session to give at most.
    """
    wanted = re.compile(re.escape(one_line(text)), re.IGNORECASE)
    for path in sessions(folder):
        try:
            written = path.stat().st_mtime
            header, records = _read(path)
        except (OSError, SessionError):
            continue
        texts = [one_line(visible_text(message)) for message in _messages(records.values())]
        hits = [(hit, text) for text in texts if (hit := wanted.search(text))]
        if hits or wanted.search(one_line(header.title)):
            snippets = tuple(_snippet(text, *hit.span()) for hit, text in hits[:shown])
            yield SearchHit(entry=_entry(header, len(texts), written), snippets=snippets, messages=len(hits))


def _read(path: Path) -> tuple[Header, dict[str, dict[str, Any]]]:
    """The newest header and all records by id, the oldest first."""
    with BackwardReader(path) as reader:
        reader.read_all()
        return reader.header(), dict(reversed(reader.records.items()))


def _messages(records: Iterable[Any]) -> Iterator[Message]:
    for record in records:
        try:
            if record["type"] == "message":
                yield from_dict(record["message"])
        except (ValueError, KeyError, TypeError):
            continue


def visible_text(message: Message) -> str:
    """All that a message shows: its text, its calls, and the outputs that it carries."""
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    return "\n".join([message.text, *calls, *(output.text for output in message.outputs)]).strip()


def _snippet(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _AROUND), end + _AROUND
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"


def branches(path: Path, current: str) -> list[Branch]:
    """The branches of a session, in the order in which they ended. `current` is the record that the one in use ends in.

    Raises:
        SessionError: where the file cannot be read.
    """
    _, records = _read(path)
    lineages = {key: _lineage(key, records) for key in _ends(records) | {current: None} if key in records}
    inner = {key for lineage in lineages.values() for key in lineage[:-1]}
    here = lineages.get(current, [])
    return [
        _branch(leaf, lineage, here, records)
        for leaf, lineage in lineages.items()
        # What only keeps state, half-way up another branch, is none of its own.
        if lineage and (lineage == here if lineage[-1] in here[-1:] else lineage[-1] not in inner)
    ]


def _ends(records: Mapping[str, dict[str, Any]]) -> dict[str, None]:
    followed = {record.get("parent") for record in records.values()}
    return dict.fromkeys(key for key in records if key not in followed)


def _lineage(leaf: str, records: Mapping[str, dict[str, Any]]) -> list[str]:
    """The messages from the first to this record."""
    found: list[str] = []
    seen: set[str] = set()
    while leaf in records and leaf not in seen:
        seen.add(leaf)
        if records[leaf]["type"] == "message":
            found.append(leaf)
        leaf = str(records[leaf].get("parent"))
    return found[::-1]


def _branch(leaf: str, lineage: Sequence[str], here: Sequence[str], records: Mapping[str, dict[str, Any]]) -> Branch:
    said = list(_messages(records[key] for key in lineage))
    prompts = [message.text for message in said if message.role == "user"]
    return Branch(
        leaf=leaf,
        messages=len(lineage),
        shared=len(set(lineage) & set(here)),
        prompt=one_line(prompts[-1]) if prompts else "",
        answer=one_line(said[-1].text) if said and said[-1].role == "assistant" else "",
        current=lineage == here,
    )
