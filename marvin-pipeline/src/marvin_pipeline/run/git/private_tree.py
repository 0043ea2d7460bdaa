"""Starts git in a private folder with the files that its input contains.

It runs in the sandbox as a separate script, so it imports the standard library only. The arguments are a git command
that reads names from its input. The input has for each file or link a line with its mode, and the lengths of its name
and its content, then these two. No other process knows the folder, so git reads nothing else.
"""

from __future__ import annotations

import os
import signal
import sys

_LINK = 0o120000


def main() -> int:
    """Write the files, and run git with their names; returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder is removed
    try:
        folder = _made()
        try:
            return _run(folder)
        finally:
            _remove(folder)
    except OSError as error:
        sys.stderr.write(f"{error.strerror} ({error.filename})\n")
        return 1


def _made() -> str:
    """A new private folder; in /tmp if there is no folder TMPDIR that can be written."""
    name = f"marvin-{os.urandom(12).hex()}"  # the import of tempfile takes longer than this
    named = os.environ.get("TMPDIR")
    if named:
        try:
            os.mkdir(os.path.join(os.path.abspath(named), name), 0o700)
            return os.path.join(os.path.abspath(named), name)
        except OSError:
            pass  # git itself needs none
    os.mkdir(f"/tmp/{name}", 0o700)
    return f"/tmp/{name}"


def _run(folder: str) -> int:
    tree, listed = os.path.join(folder, "tree"), os.path.join(folder, "names")
    os.mkdir(tree)
    os.chdir(tree)
    with open(listed, "xb") as names:
        while head := sys.stdin.buffer.readline():
            mode, *lengths = map(int, head.split())
            name, content = map(sys.stdin.buffer.read, lengths)
            _write(name, mode, content)
            names.write(name + b"\0")
    os.dup2(os.open(listed, os.O_RDONLY), 0)
    return os.spawnvp(os.P_WAIT, sys.argv[1], [sys.argv[1], f"--work-tree={tree}", *sys.argv[2:]])


def _remove(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(place, name))
        for name in folders:
            path = os.path.join(place, name)
            remove = os.unlink if os.path.islink(path) else os.rmdir
            remove(path)
    os.rmdir(folder)


def _write(name: bytes, mode: int, content: bytes) -> None:
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
    if mode == _LINK:  # no name is below another one, so nothing is written through it
        os.symlink(content, name)
        return
    with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode & 0o777), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    sys.exit(main())
