"""Files that were there while a snapshot was taken, but are not in it: ignored ones, large ones, unreadable ones.

A command that changes the rules, or such a file, makes it look like a new one or like a removed one. An undo would then
remove a file of the user, so what was not seen is left alone.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...api.record import Record
from ...util.text import shortened
from .births import born_at

if TYPE_CHECKING:
    from .trees import Change, Kept

_RULES = b".gitignore"
_NAMED = 20
_COARSE = 2_000_000_000
SLACK = 100_000_000
"""The greatest difference between the times of files and of the clock, in nanoseconds."""


class Seen(Record):
    """What a snapshot left out, and by which rules."""

    passed: frozenset[bytes] = frozenset()
    """The files that were too large, or could not be read."""
    nested: frozenset[bytes] = frozenset()
    """The folders of repositories within the folder."""
    unlisted: tuple[bytes, ...] = ()
    """Those of them, with a slash at the end, whose files were not listed, because there are too many of them."""
    rules: bytes = b""
    """The patterns that the repository ignores in this clone only."""

    def of(self, path: bytes) -> bool:
        """Whether a file may have been there."""
        return path in self.passed or path.startswith(self.unlisted)


def left_out(changes: Sequence[Change], before: Seen, after: Seen) -> set[bytes]:
    """The changed files that were there without being seen, before or after."""
    return {
        change.path
        for change in changes
        if (change.before is None and before.of(change.path)) or (change.after is None and change.path in after.passed)
    }


def follow_other_rules(changes: Sequence[Change], before: Seen, after: Seen) -> bool:
    """Whether files may have been ignored before that are not ignored after."""
    is_same = (before.nested, before.rules) == (after.nested, after.rules)
    return not is_same or any(_name(change.path) == _RULES for change in changes)


def moved_in(root: Path, changes: Sequence[Change], since: int) -> set[bytes]:
    """The files that look created, but were moved from a place that no snapshot shows, so they are the only copies.

    They were created before the snapshot before, and no file with their content is gone, nor one with their name, if
    they were written since then.

    Args:
        since: the time of the snapshot in nanoseconds since the epoch; 0 if it is unknown.
    """
    names = Counter(_name(one.path) for one in changes if one.after is None)
    contents = Counter(
        one.before.content
        for one in changes
        if one.before is not None and (one.after is None or one.after.content != one.before.content)
    )
    there = {one: status for one in changes if since and (status := _status_from_before(root, one, since)) is not None}
    links = Counter((status.st_dev, status.st_ino) for status in there.values())
    found = set()
    for one, status in there.items():
        name, content = _name(one.path), one.after.content if one.after is not None else ""
        has_other_name = status.st_nlink > links[status.st_dev, status.st_ino]
        is_edited = _fine(status.st_mtime_ns) >= since  # of a file that was only moved, the content is known
        if contents[content] <= 0 and not (is_edited and names[name] > 0) and not has_other_name:
            found.add(one.path)
        contents[content] -= 1
        names[name] -= 1
    return found


def moved_over(root: Path, changes: Sequence[Change], since: int) -> list[str]:
    """The files in whose place another one was moved, from a place that no snapshot shows: it may be the only copy.

    They were created, and last written, before the snapshot before, which shows another content.

    Args:
        since: the time of the snapshot before, in nanoseconds since the epoch.
    """
    kept = {one.before.content for one in changes if one.before is not None}
    found = []
    for one in changes:
        if one.before is None or one.after is None or one.after.content in kept:
            continue
        path = os.path.join(os.fsencode(root), one.path)
        with suppress(OSError):
            status, born = os.lstat(path), born_at(path)
            is_older = born is not None and max(_fine(born), _fine(status.st_mtime_ns)) < since
            if is_older and status.st_nlink == 1:
                found.append(shown_name(one.path))
    return found


def _status_from_before(root: Path, change: Change, since: int) -> os.stat_result | None:
    """The status of a file that looks created, but was created before a time."""
    path = os.path.join(os.fsencode(root), change.path)
    born = born_at(path) if change.before is None else None
    if born is not None and _fine(born) < since:
        with suppress(OSError):
            return os.lstat(path)
    return None


def older_than(root: Path, changes: Sequence[Change], since: int) -> set[bytes]:
    """The files that look created, but whose last change is older than the snapshot before, which did not see them.

    A file that was copied, moved or unpacked was changed then, whatever its date says. Files in a folder that was moved
    are not: they have the name and the content of one that is gone, or was replaced.

    Args:
        since: the time of the snapshot in nanoseconds since the epoch; 0 if it is unknown.
    """
    if not since:
        return set()
    older = [one for one in changes if one.before is None and _changed_at(root, one.path) < since]
    moved: Counter[tuple[bytes, Kept | None]] = Counter(
        (_name(one.path), one.before)
        for one in (changes if older else ())
        if one.before is not None and (one.after is None or one.after.content != one.before.content)
    )
    alike = Counter((_name(one.path), one.after) for one in older)
    return {
        one.path
        for one in older
        if not alike[key := (_name(one.path), one.after)] <= moved[key] or not _is_in_new_folder(root, one.path, since)
    }


def changed_outside(root: Path, paths: Sequence[bytes], since: int, ran: Sequence[tuple[int, int]]) -> list[str]:
    """Those of the files whose last change was while no command ran; one that was moved with its folder changed before.

    Args:
        since: the time of the snapshot before, in nanoseconds since the epoch.
        ran: when commands began and ended, in nanoseconds since the epoch.
    """
    found = []
    for path in paths:
        with suppress(OSError):  # a missing file has no time
            changed = os.lstat(os.path.join(os.fsencode(root), path)).st_ctime_ns
            slack = SLACK if changed % 1_000_000_000 else _COARSE
            if changed >= since and not any(begin - slack <= changed <= end + slack for begin, end in ran):
                found.append(shown_name(path))
    return found


def _is_in_new_folder(root: Path, path: bytes, since: int) -> bool:
    """Whether one of the folders around a file was changed since then, as moving it does."""
    while path := _folder(path):
        if _changed_at(root, path) >= since:
            return True
    return False


def _changed_at(root: Path, path: bytes) -> int:
    """The time when a file's content, name or permissions were last changed."""
    try:
        changed = os.lstat(os.path.join(os.fsencode(root), path)).st_ctime_ns
    except OSError:
        return sys.maxsize
    return _fine(changed)


def _fine(time: int) -> int:
    """A time of a file, or one that is certainly later: some file systems have coarse times."""
    return time if time % 1_000_000_000 else time + _COARSE


def shown_names(paths: Collection[bytes]) -> str:
    """Paths as people see them, shortened."""
    return shortened([shown_name(path) for path in sorted(paths)], _NAMED)


def shown_name(path: bytes) -> str:
    """A path as people see it."""
    return path.decode("utf-8", "backslashreplace")


def _folder(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


@contextmanager
def rules_alone(store: Path, rules: bytes) -> Iterator[tuple[Path, Path]]:
    """A file with these rules, and an empty folder, for as long as the context lasts."""
    with TemporaryDirectory(prefix="rules-", dir=store) as name:
        file, folder = Path(name, "rules"), Path(name, "empty")
        file.write_bytes(rules)
        folder.mkdir()
        yield file, folder
