"""Limits the number of backups of conversations in a folder."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ..api.limits import Limits
from ..api.record import Record

_NAME = re.compile(r"context-backup-(\d{8}-\d{6})-\d{3}(-[0-9a-f]{8})?(-\d+)?\.jsonl")
_DAY = 86_400


class _Kept(Record):
    """A backup in the folder, and its working directory."""

    path: str
    written: float
    mark: str
    size: int


def remove_old(folder: Path, now: float, limits: Limits) -> None:
    """Remove backups that are too old, and the oldest ones while the total is too large.

    The newest one of each working directory always stays. Other files and links are not touched.

    Raises:
        OSError: if the folder cannot be read.
    """
    found = sorted(_backups(folder), key=lambda each: each.path, reverse=True)
    newest = {each.mark: each for each in reversed(found)}
    room = limits.backup_bytes - sum(each.size for each in newest.values())
    for each in found:
        if each is newest[each.mark]:
            continue
        room -= each.size
        if room < 0 or now - each.written > limits.backup_days * _DAY:
            room += each.size
            with suppress(OSError):
                os.unlink(each.path)


def _backups(folder: Path) -> list[_Kept]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is not None and entry.is_file(follow_symlinks=False):
                with suppress(OSError, ValueError):
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(_Kept(path=entry.path, written=_moment(name[1]), mark=name[2] or "", size=size))
    return found


def _moment(stamp: str) -> float:
    from datetime import UTC, datetime

    return datetime.fromisoformat(stamp.replace("-", "T")).replace(tzinfo=UTC).timestamp()
