"""The files of snapshots, and their differences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from ...api.record import Record


class Kept(Record):
    """A file in a snapshot: its mode and the name of its content, in git's terms."""

    mode: int
    content: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose content is its target."""
        return self.mode == 0o120000


class Change(Record):
    """A file that differs between two snapshots; None for a side on which it is missing."""

    path: bytes
    before: Kept | None
    after: Kept | None

    @property
    def verb(self) -> str:
        """The kind of the change."""
        return "created" if self.before is None else "removed" if self.after is None else "changed"


def folders_of(path: bytes) -> Iterator[bytes]:
    """The folders around a file."""
    while path := path.rpartition(b"/")[0]:
        yield path


def modes_of(changes: Sequence[Change], modes: Mapping[str, int]) -> dict[str, int]:
    """Those permissions that belong to changed or removed files, and to the folders around them."""
    paths = [change.path for change in changes if change.before is not None]
    names = {os.fsdecode(name) for path in paths for name in (path, *folders_of(path))} if modes else ()
    return {name: modes[name] for name in names if name in modes}


def modes_left(changes: Sequence[Change], modes: Mapping[str, int]) -> dict[str, int]:
    """Those permissions that belong to files which were changed and are still there."""
    names = [os.fsdecode(change.path) for change in changes if change.before is not None and change.after is not None]
    return {name: modes[name] for name in names if name in modes}


def change_of(head: bytes, path: bytes) -> Change:
    """A change, from an entry in git's diff format."""
    old_mode, new_mode, old, new, _ = head.decode().lstrip(":").split(" ")
    return Change(path=path, before=_kept(old_mode, old), after=_kept(new_mode, new))


def _kept(mode: str, content: str) -> Kept | None:
    return None if set(content) == {"0"} else Kept(mode=int(mode, 8), content=content)
