"""When files were created: a file that was moved is older than its name. Python tells this on some systems only."""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from typing import Any

_HERE, _NO_LINKS, _BIRTH = -100, 0x100, 0x800
"""The current folder, links not followed, and the creation time, in terms of `statx`."""
_SIZE, _AT = 256, 80


def born_at(path: bytes) -> int | None:
    """The time when a file was created, in nanoseconds since the epoch; None if it is unknown."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if (born := getattr(status, "st_birthtime", None)) is not None:
        return int(born * 1e9)
    call, found = _statx(), ctypes.create_string_buffer(_SIZE)
    if call is None or call(_HERE, path, _NO_LINKS, _BIRTH, found):
        return None
    (known,) = struct.unpack_from("=I", found)
    seconds, nanoseconds = struct.unpack_from("=qI", found, _AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds) if known & _BIRTH else None


@cache
def _statx() -> Any:
    return getattr(ctypes.CDLL(None), "statx", None)
