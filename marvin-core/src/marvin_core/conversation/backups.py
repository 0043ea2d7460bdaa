"""Backups of messages that leave the conversation: written before the removal, searchable, and listed in an index."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias

from ..api.config import Config
from ..api.errors import MarvinError, ToolError
from ..api.messages import Message, ToolCall, ToolOutput, from_dict, to_dict
from ..api.record import Record
from ..guard.files.no_links import READ, own_folder
from ..guard.files.workspace import Workspace
from ..guard.kept_texts import KeptTexts
from ..util.json_lines import lines_forwards, record_line
from ..util.state_files import TEMPORARY, locked
from ..util.text import counted, one_line
from ..util.untrusted_json import LARGEST, parse_json
from .backup_limits import remove_old

_START = "context-backup-"
_INDEX = "INDEX.md"
_INDEX_TITLE = (
    "# Backups of conversations\n\nMessages that were removed from conversations to make room, newest first. The "
    "tool search_history_backups searches the files in the folder `logs` beside this one.\n"
)
_INDEX_LIMIT = 60_000
"""The maximum length of the index in characters; the oldest entries are removed first."""
_INDEX_REQUESTS, _INDEX_FILES, _INDEX_WORDS = 8, 20, 15
_INDEX_FINDINGS, _INDEX_ERRORS = 8, 5
_DUMPS, _DUMPS_LOOKED_AT = 20, 10_000
_AROUND = 240
"""The number of characters shown before and after a match."""
_SHOWN = 40_000
"""The maximum length of all matches together, in characters."""

_Hit: TypeAlias = tuple[str, str]
"""The location, and the text around it."""


class Backup(Record):
    """A stored backup; `shown` is its path for models, and `messages` are as stored."""

    path: Path
    shown: str
    messages: Sequence[Message]


class Backups:
    """The backups of one session's folder.

    They are in `logs` of the workspace. If that is not writable, they are in the data folder, which is shared by all
    working directories: a mark in the name identifies the directory. Each write removes backups that are too old or too
    many; the newest one of each working directory stays.
    """

    def __init__(self, workspace: Workspace, config: Config, kept: KeptTexts) -> None:
        self._kept = kept
        self._workspace = workspace
        self._shared = config.data_folder / "logs"
        self._timeouts = config.timeouts
        self._limits = config.limits
        self._written: list[Path] = []

    def write(self, messages: Sequence[Message], now: float) -> Backup:
        """Write messages to a new file, and sync it to disk. Blocks: call it in a thread.

        Raises:
            OSError: if neither the workspace nor the data folder is writable; no partial file remains.
        """
        messages = [*map(self._kept.message, messages)]
        data = b"".join([record_line(to_dict(message)) for message in messages])
        try:
            path = _write_new(self._workspace.root, self._workspace.folder("logs"), self._name(now), data)
        except OSError:
            if self._workspace_folder() == self._shared:
                raise
            path = _write_new(self._workspace.root, self._shared, f"{_stamp(now)}{self._mark()}", data)
        self._written.append(path)
        with suppress(OSError):
            remove_old(path.parent, now, self._limits)
        root = self._workspace.root
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        return Backup(path=path, shown=str(shown), messages=messages)

    def _name(self, now: float) -> str:
        return f"{_stamp(now)}{self._mark() if self._workspace_folder() == self._shared else ''}"

    def _workspace_folder(self) -> Path | None:
        try:
            return self._workspace.folder("logs")
        except OSError:
            return None

    def _mark(self) -> str:
        """Distinguishes the backups of this working directory from others in the same folder."""
        from hashlib import blake2s

        return "-" + blake2s(os.fsencode(self._workspace.root), digest_size=4).hexdigest()

    def files(self) -> list[Path]:
        """The backups of this working directory and session, newest first."""
        found = set(self._written) | set(self._shared.glob(f"{_START}*{self._mark()}*.jsonl"))
        own = self._workspace_folder()
        if own is not None and own != self._shared:
            found |= set(own.glob(f"{_START}*.jsonl"))
        # A link from a repository could lead anywhere.
        there = (path for path in found if path.is_file() and not path.is_symlink())
        return sorted(there, key=lambda path: path.name, reverse=True)

    def search(self, query: str, most: int) -> str:
        """The passages in backups that contain all words of the query, newest first, as text. Blocks.

        Words are matched literally, ignoring case. A passage in several backups is listed once.

        Raises:
            ToolError: if the query has no word.
        """
        words = query.casefold().split()
        if not words:
            raise ToolError("The query has no word to search for. Give one or more words of the message.")
        files = self.files()
        if not files:
            return "There are no backups here: nothing was removed from a conversation of this folder yet."
        told: list[str] = []
        room, found = _SHOWN, 0
        for place, text in _hits(files, words):
            found += 1
            shown = f"{place}\n{_indented(text)}"
            if len(told) < most and len(shown) <= room:
                told.append(shown)
                room -= len(shown)
            elif len(told) >= most:
                break
        if not told:
            return (
                f"Nothing in {counted(len(files), 'backup')} of this folder has all of these words in one message: "
                f"{', '.join(query.split())}. Try fewer words, or others."
            )
        more = " There are more results: add a word, or raise max_results." if found > len(told) else ""
        head = f"{counted(len(told), 'place')} in {counted(len(files), 'backup')}, newest first.{more}"
        return "\n\n".join([head, *told])

    def add_to_index(self, backup: Backup, now: float) -> None:
        """List a backup in `memories/INDEX.md`. Blocks.

        Raises:
            OSError, MarvinError: if the index cannot be written; the backup exists anyway.
        """
        folder = backup.path.parent.parent / "memories"
        if folder.is_symlink() or (folder / _INDEX).is_symlink():
            raise MarvinError(f"{folder / _INDEX} is a symbolic link, so it was not written. Remove the link.")
        entry = _index_entry(backup.path.name, backup.messages, now)
        there = {path.name for path in backup.path.parent.glob(f"{_START}*")}
        timeouts = self._timeouts
        with (
            locked(self._shared / _INDEX, timeouts.lock, timeouts.lock_poll),
            own_folder(self._workspace.root, folder) as opened,
        ):
            title = f"{_INDEX_TITLE}{_dumps(opened)}"
            _replace(opened, _INDEX, _extended(_content(opened, _INDEX), title, entry, there))


def _dumps(folder: int) -> str:
    """A line that lists files that tools wrote beside the index because they did not fit, the first by name."""
    with os.scandir(folder) as entries:
        names = (entry.name for entry in islice(entries, _DUMPS_LOOKED_AT))
        found = sorted(one_line(name) for name in names if name.startswith("dump-"))
    if not found:
        return ""
    more = f" and {len(found) - _DUMPS:,} more" if len(found) > _DUMPS else ""
    return f"\nFiles that did not fit into a conversation: {', '.join(found[:_DUMPS])}{more}\n"


def _content(folder: int, name: str) -> bytes | None:
    """The content of a file; None if there is none."""
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(LARGEST)


def _replace(folder: int, name: str, data: bytes) -> None:
    """Replace a file atomically."""
    temporary = f".{name}.{os.getpid()}.{os.urandom(8).hex()}{TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as stream:
        try:
            stream.write(data)
            stream.flush()
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _extended(old: bytes | None, title: str, entry: str, there: Collection[str]) -> bytes:
    """The index with a new entry, and without entries of deleted backups."""
    earlier = (old or b"").decode("utf-8", "replace").split("\n## ")[1:]
    entries: list[str] = []
    room = _INDEX_LIMIT
    for text in [entry, *(text for text in earlier if text.partition("\n")[0].rpartition(" ")[2] in there)]:
        room -= len(text)
        if entries and room < 0:
            break
        entries.append(f"{text.rstrip()}\n")
    return "\n## ".join([title, *entries]).encode("utf-8", "replace")


def _index_entry(name: str, messages: Sequence[Message], now: float) -> str:
    from .digest import files, keywords, requests, short_line

    asked = requests(messages)
    left_out = f"- ({len(asked) - _INDEX_REQUESTS:,} more)\n" if len(asked) > _INDEX_REQUESTS else ""
    lines = "".join(f"- {short_line(request)}\n" for request in asked[:_INDEX_REQUESTS])
    mentioned = list(files(messages))
    more = f" and {len(mentioned) - _INDEX_FILES:,} more" if len(mentioned) > _INDEX_FILES else ""
    return (
        f"{_time(_stamp(now))} {name}\n\n{len(messages):,} messages. Requests:\n{lines or '- (none)'}{left_out}".rstrip(
            "\n"
        )
        + f"{_learnt(messages)}\n\nFiles: {', '.join(map(one_line, mentioned[:_INDEX_FILES])) or 'none'}{more}\n"
        f"Words: {', '.join(keywords(messages, _INDEX_WORDS)) or 'none'}\n"
    )


def _learnt(messages: Sequence[Message]) -> str:
    """The findings and the failures, each as a list after an empty line."""
    from .digest import errors, findings

    lists = {"Findings": findings(messages, _INDEX_FINDINGS), "Errors": errors(messages, _INDEX_ERRORS)}
    return "".join(f"\n\n{title}:\n- " + "\n- ".join(lines) for title, lines in lists.items() if lines)


def _write_new(root: Path, folder: Path, name: str, data: bytes) -> Path:
    with own_folder(root, folder) as opened:
        made, descriptor = _opened(opened, name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(descriptor)
            os.fsync(opened)  # the folder entry must be on disk, too
        except BaseException:
            with suppress(OSError):
                os.unlink(made, dir_fd=opened)
            raise
    return folder / made


def _opened(folder: int, name: str) -> tuple[str, int]:
    """A new file that only this user may read, with a number if the name exists."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in count(1):
        numbered = f"{_START}{name}{'' if number == 1 else f'-{number}'}.jsonl"
        try:
            return numbered, os.open(numbered, flags, 0o600, dir_fd=folder)
        except FileExistsError:
            continue
    raise AssertionError("count() has no end")


def _stamp(now: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]


def _time(stamp: str) -> str:
    """`20261122-014245-123` as `2026-11-22 01:42:45 UTC`."""
    day, clock = stamp[:8], stamp[9:15]
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]}:{clock[4:]} UTC"


def _hits(files: Sequence[Path], words: Sequence[str]) -> Iterator[_Hit]:
    # In their JSON form, so that most lines need not be parsed.
    escaped = [json.dumps(word, ensure_ascii=False)[1:-1] for word in words]
    seen: set[int] = set()
    for path in files:
        for number, text in reversed(list(_lines(path))):
            if hash(text) in seen or not all(word in text.casefold() for word in escaped):
                continue
            seen.add(hash(text))
            for who, said in _told(text):
                folded = said.casefold()
                if all(word in folded for word in words):
                    when = _time(path.name.removeprefix(_START))
                    yield f"{path.name}, line {number}, {when}, {who}:", _around(said, folded.index(words[0]))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a backup; none if it is a link, cannot be read, or is larger than any backup."""
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST:
            for number, (line, _) in enumerate(lines_forwards(descriptor, 0, status.st_size), 1):
                yield number, line.decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _told(line: str) -> Iterator[_Hit]:
    """The speaker and text of a message; empty if a line is not a message, or summarises others."""
    try:
        message = from_dict(parse_json(line))
    except ValueError:
        return
    if message.is_summary:
        return
    if message.text:
        yield message.role, message.text
    for block in message.content:
        if isinstance(block, ToolCall):
            yield f"call of {block.name}", block.arguments
        elif isinstance(block, ToolOutput):
            yield f"output of {block.name}", block.text


def _around(text: str, place: int) -> str:
    start, end = max(place - _AROUND, 0), place + _AROUND
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
