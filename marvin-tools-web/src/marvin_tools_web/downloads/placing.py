"""Moves downloaded files to their places, and never replaces another file."""

from __future__ import annotations

import os
from pathlib import Path

from . import filenames


def placed(part: Path, folder: Path, name: str) -> Path:
    """Move a file within its file system into a folder, under its name or, if that is taken, one with a number.

    Raises:
        OSError: the folder is not writable.
    """
    for candidate in filenames.numbered(name):
        target = folder / candidate
        try:
            os.link(part, target, follow_symlinks=False)
        except FileExistsError:
            continue
        except OSError:
            # A file system without hard links, it seems: the name is reserved first, so that no other file is replaced.
            try:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                continue
            part.replace(target)
        return target
    raise FileExistsError(0, "every name is taken")


def size_text(number: float) -> str:
    """A size in bytes, for people."""
    value = float(number)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
