"""MARVIN_SUBAGENT_LOG: one JSON line for each call, appended in one write."""

from __future__ import annotations

import json
import os
from pathlib import Path

_ARGUMENTS, _RESULT = 200, 400


def append(path: Path, now: float, tool: str, arguments: str, result: str, elapsed: float) -> None:
    """Add the line of one call; `elapsed` is in seconds. A log that cannot be written stops nothing."""
    from datetime import UTC, datetime

    entry = {
        "ts": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": tool,
        "args": arguments[:_ARGUMENTS],
        "result": result[:_RESULT],
        "elapsed_ms": round(elapsed * 1000),
    }
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, (json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
    except OSError:
        return
    finally:
        os.close(descriptor)
