"""The plugins of the ticket program: programs named `tk-COMMAND` or `ticket-COMMAND` on PATH."""

from __future__ import annotations

import os
from collections.abc import Iterator

_MARK = "# tk-plugin:"
_TOLD = "tk-plugin:"
_LINES = 10
"""The number of lines of a script that may contain its description."""
_READ = 4_096


def described(path: str) -> Iterator[str]:
    """One line for each plugin on a PATH, with its description."""
    seen: set[str] = set()
    for prefix in ("tk-", "ticket-"):
        for name, file in sorted(_programs(path, prefix).items()):
            command = name.removeprefix(prefix)
            if command not in seen:
                seen.add(command)
                yield f"  {command:<22} {_description(file) or '(no description)'}"


def _programs(path: str, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in path.split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            file = os.path.join(folder, name)
            if name.startswith(prefix) and name != prefix and os.path.isfile(file) and os.access(file, os.X_OK):
                found.setdefault(name, file)
    return found


def _description(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            head = stream.read(_READ)
    except OSError:
        return ""
    for line in head.decode("utf-8", "replace").split("\n")[:_LINES]:
        if line.startswith(_MARK):
            return line.removeprefix(_MARK).strip()
    return _told_by(file)


def _told_by(file: str) -> str:
    """The description that a program prints on request."""
    from subprocess import DEVNULL, PIPE, SubprocessError, run

    from ..api.timeouts import Timeouts

    limit = Timeouts().ticket_plugin
    try:
        told = run([file, "--tk-describe"], stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, timeout=limit, check=False)
    except (OSError, SubprocessError):
        return ""
    first = told.stdout.decode("utf-8", "replace").split("\n")[0]
    return first.removeprefix(_TOLD).strip() if told.returncode == 0 and first.startswith(_TOLD) else ""
