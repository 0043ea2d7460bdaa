"""Long work on the event loop that lets other tasks run, and that a cancel stops at once."""

from __future__ import annotations

import types
from collections.abc import Generator


@types.coroutine
def breathe() -> Generator[None, None, None]:
    """Let the event loop take one turn."""
    yield
