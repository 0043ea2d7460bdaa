"""Starts git in a private folder with the files that its input contains.

It runs in the sandbox as a separate script, so it imports the standard library only. The arguments are a git command
that reads names from its input. The input has for each file or link a line with its mode, and the lengths of its name
and its content, then these two. No other process knows the folder, so git reads nothing else.
"""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryDirectory, TemporaryFile

_LINK = 0o120000


def main() -> int:
    """Write the files, and run git with their names; returns its exit code."""
    with TemporaryDirectory(prefix="marvin-") as folder, TemporaryFile() as names:
        os.chdir(folder)
        while head := sys.stdin.buffer.readline():
            mode, *lengths = map(int, head.split())
            name, content = map(sys.stdin.buffer.read, lengths)
            _write(name, mode, content)
            names.write(name + b"\0")
        names.seek(0)
        os.dup2(names.fileno(), 0)
        return os.spawnvpe(os.P_WAIT, sys.argv[1], sys.argv[1:], {**os.environ, "GIT_WORK_TREE": folder})


def _write(name: bytes, mode: int, content: bytes) -> None:
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
    if mode == _LINK:  # no name is below another one, so nothing is written through it
        os.symlink(content, name)
        return
    with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode & 0o777), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    sys.exit(main())
