"""MARVIN_SUBAGENT_LOG: one JSON line for each call, appended in a single write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...util.state_files import make_private_folder

_TOOL, _ARGUMENTS, _RESULT = 100, 200, 400
_BEGINNING = 20_000
"""The number of characters that are searched for secrets. It is far larger than a stored text, so that a secret at the
end of a stored text is found as a whole."""


class CallLog:
    """The log of one session. `warn` is called once when writing fails, and again if it fails after a success."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._failing = False

    def add(self, now: float, tool: str, arguments: str, result: str, elapsed: float) -> None:
        """Add the line of one call; `elapsed` is in seconds. A failure to write stops nothing."""
        from datetime import UTC, datetime

        entry = {
            "ts": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tool": tool[:_TOOL],
            "args": arguments[:_ARGUMENTS],
            "result": result[:_RESULT],
            "elapsed_ms": round(elapsed * 1000),
        }
        try:
            self._append((json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            self._failing = False
        except OSError as error:
            if not self._failing:
                self._failing = True
                self._warn(
                    f"The log of calls {self._path} (MARVIN_SUBAGENT_LOG) cannot be written: {error.strerror}. The "
                    "run continues without it."
                )

    def _append(self, line: bytes) -> None:
        make_private_folder(self._path.parent)
        # Not blocking: a pipe without a reader would block the whole session.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, 0o600)
        try:
            if _is_torn(descriptor):
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                raise OSError(None, "only a part of a line could be written")
        finally:
            os.close(descriptor)


def _is_torn(descriptor: int) -> bool:
    """Whether the last line is incomplete: its writer was killed, or the disk was full."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def arguments_text(arguments: Mapping[str, Any], received: str) -> str:
    """The beginning of a call's arguments as one text; as received if they could not be parsed."""
    if arguments or received.strip() == "{}":
        return beginning(", ".join(f"{name}={value}" for name, value in arguments.items()))
    return beginning(received.strip())


def beginning(text: str) -> str:
    """A prefix of a text that does not end within a secret."""
    return text[:_BEGINNING]
