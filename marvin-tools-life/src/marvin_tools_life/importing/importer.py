"""Imports the data of an older Marvin: finds its files, merges them, and backs up each file before it changes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from marvin_core import MarvinError, Record, TicketError, TicketFolder, Timeouts, own_folder, update_file

from ..calendar.text import CalendarText
from .forms import BOOKMARKS, PLACES, SUBSCRIPTIONS, FormError, Merged, merged_entries, merged_tokens, parsed
from .history import merged_history
from .older_tickets import OlderTicket, old_id, older_tickets

Merge = Callable[[bytes | None, bytes, float], Merged]
"""Merges a file: from today's content, the older content, and the modification time of the latter."""

COPIES = "imported"
_LARGEST = 64_000_000
_PROFILE = re.compile(r"\w[\w.-]{0,63}")
_WHOLE_LINE = re.compile(rb"(?m)^\s*[^#\s]")
"""A line of YAML that is not a comment."""


class Taken(Record):
    """The result for one kind of files, or for one file: the number of new entries and of existing ones.

    `problems` says what was left out, and why.
    """

    what: str
    taken: int = 0
    there: int = 0
    problems: Sequence[str] = ()


class _File(Record):
    """A file of the older Marvin, and today's file for its data."""

    what: str
    source: Path
    target: Path
    merge: Merge


class Import:
    """Imports the data in the folder of an older Marvin. Blocks.

    A file is replaced atomically, under its lock. Data that is already imported is left alone, so an interrupted
    import can be repeated.

    Args:
        older: the folder, which may be the configuration folder itself.
        config_folder: the folder of today's files.
        copies: the folder for backups; created when there is something to back up.
    """

    def __init__(self, older: Path, config_folder: Path, copies: Path, timeouts: Timeouts) -> None:
        self._older = older
        self._here = config_folder
        self.copies = copies
        self._timeouts = timeouts
        self._is_same = older.exists() and config_folder.exists() and older.samefile(config_folder)

    def run(self, *, dry_run: bool = False) -> Iterator[Taken]:
        """Import everything; returns the result for each file in turn. With `dry_run` nothing is changed."""
        yield from self._tickets(dry_run)
        for file in self._files():
            try:
                yield self._file(file, dry_run)
            except (FormError, OSError, MarvinError, ValueError) as error:
                yield Taken(what=file.what, problems=[f"{file.source}: {_why(error)}"])

    def _files(self) -> Iterator[_File]:
        yield from self._found("bookmarks", "bookmarks.json", partial(merged_entries, BOOKMARKS))
        for folder in sorted(self._older.glob("profiles/*")):
            if not folder.is_dir() or not _PROFILE.fullmatch(folder.name):
                continue
            name = f"profiles/{folder.name}"
            yield from self._found(
                f"{folder.name}: places", f"{name}/saved_places.json", partial(merged_entries, PLACES)
            )
            yield from self._found(
                f"{folder.name}: ntfy topics", f"{name}/ntfy_subscriptions.json", partial(merged_entries, SUBSCRIPTIONS)
            )
            yield from self._found(f"{folder.name}: logins", f"{name}/tokens.json", _tokens)
            yield from self._found(f"{folder.name}: typed lines", f"{name}/history", merged_history)
            yield from self._whole_files(folder.name)

    def _whole_files(self, profile: str) -> Iterator[_File]:
        """Files with an unchanged format, which are copied if there is none yet."""
        name = f"profiles/{profile}"
        target = f"{name}/preferences.yaml"
        yield from self._found(f"{profile}: preferences", f"{name}/prefs.yaml", _preferences, target)
        if self._is_same:
            return
        yield from self._found(f"{profile}: preferences", target, _preferences)
        yield from self._found(f"{profile}: chat log", f"{name}/chat_log.json", _chat_log)
        yield from self._found(f"{profile}: calendar", f"{name}/calendar.ics", _calendar)

    def _found(self, what: str, name: str, merge: Merge, target: str = "") -> Iterator[_File]:
        source = self._older / name
        if source.exists():
            yield _File(what=what, source=source, target=self._here / (target or name), merge=merge)

    def _file(self, file: _File, dry_run: bool) -> Taken:
        older, when = _read(file.source)
        results: list[Merged] = []

        def change(here: bytes | None) -> bytes | None:
            result = file.merge(here, older, when)
            results.append(result)
            if result.content is None or dry_run:
                return None
            self._copy(file.source, older, "older")
            if here is not None and here != older:
                self._copy(file.target, here, "before")
            return result.content

        if dry_run:
            change(_read(file.target)[0] if file.target.exists() else None)
        else:
            update_file(file.target, change, self._timeouts)
        result = results[0]
        return Taken(what=file.what, taken=result.taken, there=result.there, problems=result.problems)

    # --- tickets -----------------------------------------------------------------------------------------------------

    def _tickets(self, dry_run: bool) -> Iterator[Taken]:
        folder = self._older / "tickets"
        sources = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
        others = [] if self._is_same else sorted(path for path in folder.glob("*.md") if not path.name.startswith("."))
        if not sources and not others:
            return
        problems: list[str] = []
        found: dict[Path, list[OlderTicket]] = {}
        for path in sources:
            try:
                found[path] = list(older_tickets(path.stem, *_read(path)))
            except (FormError, OSError, ValueError) as error:
                problems.append(f"{path}: {_why(error)}")
        tickets = _each_once([ticket for each in found.values() for ticket in each])
        ids = {old_id(ticket.given): ticket.id for ticket in reversed(tickets)}
        texts = {ticket.id: ticket.text(ids) for ticket in tickets}
        for path in others:
            try:
                texts.setdefault(path.stem, _read(path)[0].decode("utf-8", "surrogateescape"))
            except (OSError, ValueError) as error:
                problems.append(f"{path}: {_why(error)}")
        try:
            taken = self._put(texts, found, dry_run)
        except (TicketError, OSError) as error:
            taken, problems = 0, [*problems, _why(error)]
            texts = {}
        yield Taken(what="tickets", taken=taken, there=len(texts) - taken, problems=problems)

    def _put(self, texts: dict[str, str], found: dict[Path, list[OlderTicket]], dry_run: bool) -> int:
        """Create the tickets that do not exist yet; returns their number."""
        place = self._here / "tickets"
        if dry_run:
            return sum(not (place / f"{name}.md").exists() for name in texts)
        for path in found:
            self._copy(path, _read(path)[0], "older")
        with own_folder(self._here, place):
            pass
        with TicketFolder(str(place), timeouts=self._timeouts) as folder:
            made = sum(_make(folder, name, text) for name, text in texts.items())
        if self._is_same:
            for path in found:  # there is a backup, and the ticket would be imported again as a second one
                path.unlink(missing_ok=True)
        return made

    # --- copies ------------------------------------------------------------------------------------------------------

    def _copy(self, path: Path, content: bytes, kind: str) -> None:
        """Back up the content of a file, readable by this user alone."""
        root = self._older if kind == "older" else self._here
        target = self.copies / kind / path.relative_to(root)
        with own_folder(self._here, target.parent) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(target.name, flags, 0o600, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(descriptor)


def _make(folder: TicketFolder, name: str, text: str) -> bool:
    """Create a ticket unless there is one of that name; returns whether it was created."""
    with folder.locked():
        if os.path.lexists(os.path.join(folder.path, f"{name}.md")):
            return False
        folder.create(lambda: name, lambda _: text)
    return True


def _read(path: Path) -> tuple[bytes, float]:
    """The content of a file and its modification time. Only regular files are read.

    Raises:
        FormError: it is not a regular file, or too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormError("it is not a file")
        if status.st_size > _LARGEST:
            raise FormError(f"it is larger than {_LARGEST:,} bytes")
        return stream.read(), status.st_mtime


def _tokens(here: bytes | None, older: bytes, when: float) -> Merged:
    return merged_tokens(here, older)


def _whole(here: bytes | None, older: bytes, *, is_empty: bool) -> Merged:
    """The older file if there is none yet."""
    if here == older:
        return Merged(None, 0, 1)
    return Merged(older, 1, 0) if is_empty else Merged(None, 0, 1)


def _preferences(here: bytes | None, older: bytes, when: float) -> Merged:
    return _whole(here, older, is_empty=here is None or not _WHOLE_LINE.search(here))


def _chat_log(here: bytes | None, older: bytes, when: float) -> Merged:
    if not isinstance(parsed(older), list):
        raise FormError("it contains no array")
    return _whole(here, older, is_empty=here is None)


def _calendar(here: bytes | None, older: bytes, when: float) -> Merged:
    CalendarText(older)
    return _whole(here, older, is_empty=here is None)


def _each_once(tickets: Sequence[OlderTicket]) -> list[OlderTicket]:
    """The tickets with unique ids; of several with one id all but the first get another one."""
    found: dict[str, OlderTicket] = {}
    for ticket in tickets:
        name, number = ticket.id, 1
        while name in found:
            number += 1
            name = f"{ticket.id}-{number}"
        found[name] = ticket._replace(id=name)
    return list(found.values())


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).removeprefix("Error: ")
