"""Cassettes as tests: pytest collects each `*.cassette.jsonl`, and its test is that a replay finds no difference."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .environment import environment

LIMIT = 600.0
"""Seconds that one replay may take."""
_OF_MARVIN = ("MARVIN_", "XDG_", "LLM_PROVIDER")


class ReplayFailed(Exception):
    """A replay differs from its cassette; the text is the report."""


class CassetteFile(pytest.File):
    """A file with a recorded session."""

    def collect(self) -> Iterator[pytest.Item]:
        """The one test of the file."""
        yield CassetteItem.from_parent(self, name="replay")


class CassetteItem(pytest.Item):
    """Replays the session with the recorded results of its tools, in a home of its own."""

    def runtest(self) -> None:
        """Replay it.

        Raises:
            ReplayFailed: where anything differs.
        """
        report = replay(self.path)
        if not report["same"]:
            raise ReplayFailed(_told(report))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report, without a stack of calls."""
        if isinstance(excinfo.value, ReplayFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """How pytest names it."""
        return self.path, None, f"replay of {self.path.name}"


def replay(path: Path, *words: str) -> dict[str, Any]:
    """The report of a replay, as `marvin replay --json` prints it.

    Args:
        words: further options of `marvin replay`.

    Raises:
        ReplayFailed: where the cassette cannot be replayed; the text says why.
    """
    with tempfile.TemporaryDirectory(prefix="marvin-cassette-") as home:
        kept = {name: value for name, value in environment().items() if not name.startswith(_OF_MARVIN)}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "marvin_core", "replay", str(path), "--json", *words],
            env={**kept, "HOME": home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise ReplayFailed(done.stderr.decode("utf-8", "replace") or "The replay said nothing.") from None
    return report


def _told(report: dict[str, Any]) -> str:
    lines = []
    for one in report["differences"]:
        lines.append(f"{one['where']}: {one['text']}")
        lines += [f"    {line}" for line in one["diff"].splitlines()]
    return "\n".join([*lines, *(f"Note: {note}." for note in report["notes"])])
