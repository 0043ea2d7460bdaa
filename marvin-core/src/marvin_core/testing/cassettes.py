"""Cassettes as tests: pytest collects each `*.cassette.jsonl`, and its test fails if a replay differs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .environment import environment

LIMIT = 600.0
"""The timeout of one replay, in seconds."""
_OF_MARVIN = ("MARVIN_", "XDG_", "LLM_PROVIDER")


class ReplayFailed(Exception):
    """A replay differs from its cassette; the text is the report."""


def replay(path: Path, *words: str) -> dict[str, Any]:
    """Replay a cassette, and return the report of `marvin replay --json`.

    Args:
        words: further options of `marvin replay`.

    Raises:
        ReplayFailed: the cassette cannot be replayed; the text says why.
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


def check(path: Path) -> None:
    """Replay a cassette. Raises `ReplayFailed` if anything differs."""
    report = replay(path)
    if not report["same"]:
        raise ReplayFailed(_told(report))


def _told(report: dict[str, Any]) -> str:
    lines = []
    for one in report["differences"]:
        lines.append(f"{one['where']}: {one['text']}")
        lines += [f"    {line}" for line in one["diff"].splitlines()]
    return "\n".join([*lines, *(f"Note: {note}." for note in report["notes"])])
