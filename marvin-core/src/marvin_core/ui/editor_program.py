"""Leaving the terminal to the user's editor for a while."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

_GRACE = 2.0
"""Seconds for an editor to end that was asked to."""
_MOST = 10_000_000
"""Characters of a line that are read back; nobody typed more than that."""


async def run_on_terminal(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program that has the terminal for itself; returns its exit code. Cancelled, it is asked to end.

    Where standard input is no terminal it gets none of it: lines that wait there are for the chat.

    Raises:
        OSError: where it cannot be started.
    """
    stdin = None if os.isatty(0) else asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=stdin)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:  # the terminal may be gone: nobody could end it by hand
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        raise


async def edited(program: str, text: str) -> str:
    """Have a text edited on the terminal; returns it as it was saved.

    Raises:
        OSError, ValueError: where the editor cannot be started, or says that it failed.
    """
    words = shlex.split(program)
    if not words:
        raise ValueError("no editor is set")
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace", suffix=".md") as file:
        file.write(text)
        file.flush()
        code = await run_on_terminal([*words, file.name])
        if code:
            raise OSError(None, f"it ended with exit code {code}")
        return await asyncio.to_thread(_read, file.name)


def _read(name: str) -> str:
    """Opened by its name once more: many editors put another file in its place."""
    with open(name, encoding="utf-8", errors="replace") as saved:
        return saved.read(_MOST).removesuffix("\n")
