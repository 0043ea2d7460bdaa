"""The user's own editor for the line that is typed."""

from __future__ import annotations

import shlex
import subprocess
import tempfile

_MOST = 10_000_000
"""Characters of what is read back; nobody typed more than that."""


def edited(program: str, text: str) -> str:
    """Have a text edited on the terminal; returns it as it was saved. Blocks.

    Raises:
        OSError, ValueError: where the editor cannot be started, or says that it failed.
    """
    words = shlex.split(program)
    if not words:
        raise ValueError("no editor is named")
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace", suffix=".md") as file:
        file.write(text)
        file.flush()
        code = subprocess.run([*words, file.name], check=False).returncode
        if code:
            raise OSError(None, f"it ended with exit code {code}")
        # Opened by its name once more: many editors put another file in its place.
        with open(file.name, encoding="utf-8", errors="replace") as saved:
            return saved.read(_MOST).removesuffix("\n")
