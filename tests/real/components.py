"""The real programs that scripts/setup-real installs: where they are, and how they are started and ended."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.e2e.support_e2e import wait_until

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / ".venv-real"
PYTHON = REAL / "bin" / "python"
LLMOCK = REAL / "npm" / "node_modules" / ".bin" / "llmock"
_START = 60.0
"""Seconds; a model is loaded in two."""


def required(*paths: Path) -> None:
    """Skip the test where one of these is not installed."""
    missing = [str(path.relative_to(ROOT)) for path in paths if not path.exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed; run scripts/setup-real")


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def asked(url: str, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
    """The JSON that a server answers with."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}, method=method), timeout=10) as response:
        return json.load(response)


@contextmanager
def serving(
    command: Sequence[str | Path], log: Path, health: str, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server that runs until the context ends; it is up when `health` answers."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env)
    try:
        wait_until(lambda: _is_up(process, log, health), f"an answer of {health}", _START)
        yield
    finally:
        process.kill()
        process.wait()


def _is_up(process: subprocess.Popen[bytes], log: Path, health: str) -> bool:
    assert process.poll() is None, f"it ended at its start: {log.read_text(errors='replace')[-2000:]}"
    try:
        asked(health)
    except (URLError, OSError, ValueError):
        return False
    return True
