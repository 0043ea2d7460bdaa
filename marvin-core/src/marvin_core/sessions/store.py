"""Finds session files in a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..api.errors import SessionError
from ..config.program import command_name
from ..util.untrusted_json import parse_json
from .records import LARGEST_LINE, Header, header_of


def sessions(folder: Path) -> list[Path]:
    """The session files of a folder, most recently written first.

    Only regular files count: opening a pipe waits for a writer, and a device has no end.
    """
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except OSError:
        return []
    found = [(written, name) for name in names if (written := _written_last(f"{folder}/{name}")) is not None]
    return [folder / name for _, name in sorted(found, reverse=True)]


def _written_last(path: str) -> int | None:
    """The modification time of a file; None if it is not a regular file, or was removed meanwhile."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else None


def read_header(path: Path) -> Header | None:
    """The first header of a session file, or a later one if that is damaged; None if there is none.

    `search.survey` gives its newest title.
    """
    try:
        with path.open("rb") as stream:
            return header_of(parse_json(stream.readline(LARGEST_LINE)))
    except OSError:
        return None
    except (ValueError, SessionError):
        pass
    from .reader import BackwardReader

    try:
        with BackwardReader(path) as reader:
            return reader.header()
    except SessionError:
        return None


def find(folder: Path, session_id: str) -> Path:
    """The file of the session with this id or id prefix.

    Raises:
        SessionError: if there is none or more than one.
    """
    matches = [path for path in sessions(folder) if path.stem == session_id]
    matches = matches or [path for path in sessions(folder) if path.stem.startswith(session_id)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise SessionError(f"There is no session {session_id!r}. `{command_name()} sessions` lists them all.")
    names = ", ".join(path.stem for path in matches[:5])
    raise SessionError(f"{session_id!r} matches {len(matches)} sessions: {names}. Give more characters of the id.")


def newest_of(folder: Path, working_dir: str) -> Path:
    """The most recently written session file of a working directory, without those of agents.

    Raises:
        SessionError: if there is none.
    """
    for path in sessions(folder):
        header = read_header(path)
        if header is not None and header.working_dir == working_dir and not header.depth:
            return path
    raise SessionError(f"There is no session in {working_dir} to continue. Start one without --continue.")
