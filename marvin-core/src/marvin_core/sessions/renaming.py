"""Changes the title of a session without counting as use: the session keeps its position in lists."""

from __future__ import annotations

import os
from pathlib import Path

from ..api.config import Config
from .reader import load
from .transcript import Transcript


def rename(path: Path, title: str, config: Config) -> None:
    """Write a title into a session file. Blocks.

    Raises:
        SessionError: if it cannot be read or written.
    """
    written = path.stat()
    loaded = load(path, largest=config.limits.session_line)
    writer = Transcript.resumed(path, loaded, config.timeouts)
    try:
        writer.change_header(title=title)
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    finally:
        writer.close()
