"""When files were created: a file that was moved is older than its name.

Only Linux is asked: Python does not tell it there, and elsewhere programs that unpack or copy files change it.
"""

from __future__ import annotations

import struct
import sys
from functools import cache
from typing import Any

_HERE, _NO_LINKS, _BIRTH = -100, 0x100, 0x800
"""The current folder, links not followed, and the creation time, in terms of `statx`."""
_SIZE, _AT = 256, 80


def born_at(path: bytes) -> int | None:
    """The time when a file was created, in nanoseconds since the epoch; None if it is unknown."""
    import ctypes  # only an undo of commands needs it

    call, found = _statx(), ctypes.create_string_buffer(_SIZE)
    if call is None or call(_HERE, path, _NO_LINKS, _BIRTH, found):
        return None
    (known,) = struct.unpack_from("=I", found)
    seconds, nanoseconds = struct.unpack_from("=qI", found, _AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds) if known & _BIRTH and seconds else None


@cache
def _statx() -> Any:
    import ctypes

    return getattr(ctypes.CDLL(None), "statx", None) if sys.platform == "linux" else None
