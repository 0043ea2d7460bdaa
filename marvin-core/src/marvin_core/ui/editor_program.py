"""Hands over the terminal to the user's editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

_GRACE = 2.0
"""The number of seconds in which an editor must end after the request to do so."""
_MOST = 10_000_000
"""The maximum number of characters that are read back."""


async def run_on_terminal(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program that uses the terminal exclusively; returns its exit code.

    If cancelled, the program is asked to end. If standard input is no terminal, the program receives nothing from it:
    the lines there belong to the chat.

    Raises:
        OSError: the program cannot be started.
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
    """Let the user edit a text on the terminal; returns the saved text.

    Raises:
        OSError, ValueError: the editor cannot be started, or it reports a failure.
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
    """Read the file by its name: many editors replace the file when they save."""
    with open(name, encoding="utf-8", errors="replace") as saved:
        return saved.read(_MOST).removesuffix("\n")
