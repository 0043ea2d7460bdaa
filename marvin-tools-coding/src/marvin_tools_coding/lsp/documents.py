"""The files that are open in a language server, and their diagnostics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from marvin_core import Record, one_line

SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
QUIET = 0.3
"""Seconds of silence after which the diagnostics of a server without versions count as complete."""
_KEPT = 1_000
"""Diagnostics of one file at most."""
_MESSAGE = 300
"""Characters of one message."""
_CODE = 60


class Diagnostic(Record):
    """A diagnostic of a line, counted from 1."""

    line: int
    severity: str
    message: str
    server: str


class Document:
    """A file as the server last got it. `version` counts the changes sent since it was opened."""

    def __init__(self, path: Path, language: str, text: str) -> None:
        self.path = path
        self.language = language
        self.text = text
        self.version = 1
        self.is_open = False
        self.passed = False
        """Whether the server has read this version, as its answers to later requests show."""
        self.said: Sequence[Diagnostic] | None = None
        """The diagnostics of this version; None before the first."""
        self._names_versions = False
        self._said_at = 0.0

    def write(self, text: str) -> None:
        """Set a new text, which has no diagnostics yet."""
        self.text = text
        self.version += 1
        self.said = None
        self.passed = False

    def take(self, given: Mapping[str, Any], server: str) -> None:
        """Store diagnostics, unless they are of another version."""
        version = given.get("version")
        if isinstance(version, int) and version != self.version:
            return
        self._names_versions = isinstance(version, int)
        self.said = _read(given.get("diagnostics"), server)
        self._said_at = time.monotonic()

    @property
    def wait_left(self) -> float:
        """Seconds until the diagnostics count as complete; 0 if they do, infinite before the first ones."""
        if self.said is None:
            return float("inf")
        if self._names_versions:
            return 0.0
        if not self.passed:
            return float("inf")
        return max(0.0, self._said_at + QUIET - time.monotonic())


def path_of(uri: object) -> Path | None:
    """The path of a file URI, or None."""
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return None
    try:
        return Path(unquote(urlsplit(uri).path))
    except ValueError:
        return None


def _read(given: object, server: str) -> Sequence[Diagnostic]:
    found = []
    for entry in given[:_KEPT] if isinstance(given, list) else ():
        try:
            line = int(entry["range"]["start"]["line"]) + 1
            severity = SEVERITIES.get(entry.get("severity", 1), "error")
            message = entry["message"]
            code = entry.get("code")
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):  # a malformed diagnostic is skipped
            continue
        if severity == "hint" or not isinstance(message, str):
            continue
        name = f" [{_line(str(code), _CODE)}]" if isinstance(code, str | int) and code != "" else ""
        found.append(
            Diagnostic(
                line=line,
                severity=severity,
                message=_line(message.partition("\nhelp: ")[0], _MESSAGE) + name,
                server=server,
            )
        )
    return sorted(found, key=lambda one: (list(SEVERITIES.values()).index(one.severity), one.line))


def _line(text: str, limit: int) -> str:
    return one_line("".join(one if one.isprintable() else " " for one in text[: 4 * limit]), limit)
