"""Files that were there while a snapshot was taken, but are not in it: ignored ones, large ones, unreadable ones.

A command that changes the rules, or such a file, makes it look like a new one or like a removed one. An undo would then
remove a file of the user, so what was not seen is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...api.record import Record

if TYPE_CHECKING:
    from .trees import Change

_RULES = b".gitignore"


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
    return not is_same or any(change.path.rpartition(b"/")[2] == _RULES for change in changes)


@contextmanager
def rules_alone(store: Path, rules: bytes) -> Iterator[tuple[Path, Path]]:
    """A file with these rules, and an empty folder, for as long as the context lasts."""
    with TemporaryDirectory(prefix="rules-", dir=store) as name:
        file, folder = Path(name, "rules"), Path(name, "empty")
        file.write_bytes(rules)
        folder.mkdir()
        yield file, folder
