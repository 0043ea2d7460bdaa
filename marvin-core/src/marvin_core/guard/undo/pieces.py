"""Batches of the files that a snapshot writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from ...api.record import Record
from .contents import Read, name_of
from .trees import Kept

_PIECE_FILES, _PIECE_BYTES = 5_000, 64_000_000
"""The size of one batch to write; finished batches stay written after a time-out."""
USUAL = (0o644, 0o755)
"""The permissions that are not stored: those of files that are not executable, and of others."""


class Piece(Record):
    """A batch of files: their new index entries, those that were read, and the number that is already in the index.

    `size` is the number of bytes read.
    """

    files: Mapping[bytes, tuple[int, str] | None]
    read: Sequence[Read]
    size: int
    stale: int
    has_more: bool

    def contents(self, said: bytes | None = None) -> dict[str, bytes]:
        """The contents by name; only the missing ones, if git was asked for them."""
        found = {kept[1]: file.content for file in self.read if (kept := self.files[file.path]) is not None}
        if said is None:
            return found
        missing = {line.split()[0].decode() for line in said.splitlines() if line.endswith(b" missing")}
        return {name: found[name] for name in missing}


def next_piece(
    files: Iterator[tuple[bytes, Read | None]],
    known: Mapping[bytes, Sequence[bytes]],
    modes: dict[str, int],
    chmods: dict[str, tuple[int, int]],
) -> Piece:
    """The next batch of files.

    Args:
        known: their index entries, in git's diff format.
        modes: the unusual permissions of files by name; those of these files are added.
        chmods: files of which only the permissions changed, with those before and now, are added to it.
    """
    kept: dict[bytes, tuple[int, str] | None] = {}
    read: list[Read] = []
    size = stale = 0
    for path, found in files:
        if found is None:
            if path in known:
                kept[path] = None
        else:
            name, now = name_of(found.content), USUAL[0] if found.is_link else found.permissions
            earlier = modes.get(os.fsdecode(path), USUAL[now & 0o100 != 0])
            note_modes(modes, {os.fsdecode(path): now})
            before = known.get(path)
            if before is not None and (before[0], before[2]) == (b":%o" % found.mode, name.encode()):
                if earlier != now:
                    chmods[os.fsdecode(path)] = (earlier, now)
                stale += 1
                continue
            kept[path] = (found.mode, name)
            read.append(found)
            size += len(found.content)
        if len(kept) >= _PIECE_FILES or size > _PIECE_BYTES:
            return Piece(files=kept, read=read, size=size, stale=stale, has_more=True)
    return Piece(files=kept, read=read, size=size, stale=stale, has_more=False)


def usual_mode(file: Kept) -> int:
    """The permissions of a file in a snapshot, unless others are stored for it."""
    return USUAL[file.mode == 0o100755]


def note_modes(modes: dict[str, int], permissions: Mapping[str, int]) -> None:
    """Add permissions to the unusual ones, or remove those that became usual."""
    for name, mode in permissions.items():
        if mode in USUAL:
            modes.pop(name, None)
        else:
            modes[name] = mode
