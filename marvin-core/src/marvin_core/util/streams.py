"""The standard streams, written as bytes: UTF-8 whatever the locale, and each write seen at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


class Streams:
    """File descriptors of a run; by default those of the process."""

    def __init__(self, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def out(self, text: str) -> None:
        """Write to standard output.

        Raises:
            OSError: where nobody reads it any more, or the disk behind it is full.
        """
        _write(self.stdout, text)

    def is_stalled(self) -> bool:
        """Whether standard output takes nothing at this moment: whoever reads it does not."""
        import select

        return not select.select([], [self.stdout], [], 0)[1]

    def err(self, text: str) -> None:
        """Write a line to standard error; where that is closed there is nobody to tell."""
        try:
            _write(self.stderr, text if text.endswith("\n") else f"{text}\n")
        except OSError:
            return

    def stdin_is_terminal(self) -> bool:
        """Whether standard input is a terminal; false where it is closed."""
        return os.isatty(self.stdin)


def cost_line(summary: Mapping[str, Any]) -> str:
    """The last line on standard error of every non-interactive run, for programs that start Marvin."""
    return f"MARVIN_COST:{json.dumps(summary, separators=(',', ':'))}"


def result_line(session_id: str, text: str, usage: Mapping[str, int], summary: Mapping[str, Any], code: int) -> str:
    """What `--output-format json` prints: one object, on a line of its own."""
    report = {
        "type": "result",
        "session_id": session_id,
        "text": text,
        "usage": usage,
        "cost": summary["session_cost"],
        "turns": summary["llm_turns"],
        "is_error": code != 0,
        "exit_code": code,
    }
    return json.dumps(report, ensure_ascii=False) + "\n"


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "replace"))
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # a reader left the pipe non-blocking: wait until it takes more
            import select

            select.select([], [descriptor], [])
