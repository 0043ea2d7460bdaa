"""Leaving the terminal to the user's editor for a while."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress


async def run_on_terminal(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program that has the terminal for itself; returns its exit code. Cancelled, it is asked to end.

    Where standard input is no terminal it gets none of it: lines that wait there are for the chat.

    Raises:
        OSError: where it cannot be started.
    """
    stdin = None if os.isatty(0) else asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=dict(environment), stdin=stdin)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
