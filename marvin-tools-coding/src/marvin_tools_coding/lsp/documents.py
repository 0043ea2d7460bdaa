"""The files that a language server looks at, and what it says of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from marvin_core import Record, one_line

SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
QUIET = 0.3
"""Seconds after which a server that names no versions is taken to have said all of a file."""
_KEPT = 1_000
"""Diagnostics of one file."""
_MESSAGE = 300
"""Characters of one."""
_CODE = 60


class Diagnostic(Record):
    """What a server says of a line, which counts from 1."""

    line: int
    severity: str
    message: str
    server: str


class Document:
    """A file as a server was last told of it. `version` counts what was written since."""

    def __init__(self, path: Path, language: str, text: str) -> None:
        self.path = path
        self.language = language
        self.text = text
        self.version = 1
        self.is_open = False
        self.passed = False
        """Whether the server has read the version, as its answers to later requests show."""
        self.said: Sequence[Diagnostic] | None = None
        """What was said of this version; None where nothing was yet."""
        self._names_versions = False
        self._said_at = 0.0

    def write(self, text: str) -> None:
        """Take another text, of which nothing was said yet."""
        self.text = text
        self.version += 1
        self.said = None
        self.passed = False

    def take(self, given: Mapping[str, Any], server: str) -> None:
        """Take what was said, unless it is of another version."""
        version = given.get("version")
        if isinstance(version, int) and version != self.version:
            return
        self._names_versions = isinstance(version, int)
        self.said = _read(given.get("diagnostics"), server)
        self._said_at = time.monotonic()

    @property
    def wait_left(self) -> float:
        """Seconds until what was said counts as all; 0 where it does, infinite where something has to come first."""
        if self.said is None:
            return float("inf")
        if self._names_versions:
            return 0.0
        if not self.passed:
            return float("inf")
        return max(0.0, self._said_at + QUIET - time.monotonic())


def path_of(uri: object) -> Path | None:
    """The file that an address means, or None."""
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
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):  # a server's fault costs its line only
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
