"""Access to the clipboard of the terminal's user, also over ssh: OSC 52."""

from __future__ import annotations

from base64 import b64encode

_SCREEN_CHUNK = 700
"""The number of bytes that GNU screen passes on in one sequence."""
LONGEST = 70_000
"""The maximum size of a text in bytes; xterm and others reject longer ones."""


def clipboard_sequence(text: str, terminal: str) -> str:
    """The sequence that copies a text to the clipboard; empty if the text is too long, or the terminal has none.

    Args:
        terminal: the type of the terminal (TERM). GNU screen passes it to the outer terminal in parts. tmux, which may
            have the same TERM, handles the whole sequence and ignores those parts.
    """
    data = text.encode("utf-8", "replace")
    if not data or len(data) > LONGEST or terminal in ("", "dumb", "unknown", "linux"):
        return ""
    sequence = f"\x1b]52;c;{b64encode(data).decode()}\x07"
    if not terminal.startswith("screen"):
        return sequence
    pieces = (sequence[begin : begin + _SCREEN_CHUNK] for begin in range(0, len(sequence), _SCREEN_CHUNK))
    return sequence + "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
