"""The clipboard of whoever looks at the terminal, over ssh too: OSC 52."""

from __future__ import annotations

from base64 import b64encode

_SCREEN_CHUNK = 700
"""Bytes that GNU screen passes on at once."""
LONGEST = 70_000
"""Bytes of a text; of more, xterm and others take nothing at all."""


def clipboard_sequence(text: str, terminal: str) -> str:
    """What has the terminal put a text on the clipboard; nothing for one that is too long, or has no such sequence.

    Args:
        terminal: what kind of terminal it is (TERM). GNU screen takes it for the terminal around it, in pieces; tmux,
            which may have the same name, takes the sequence itself and passes over those pieces.
    """
    data = text.encode("utf-8", "replace")
    if not data or len(data) > LONGEST or terminal in ("", "dumb", "unknown", "linux"):
        return ""
    sequence = f"\x1b]52;c;{b64encode(data).decode()}\x07"
    if not terminal.startswith("screen"):
        return sequence
    pieces = (sequence[begin : begin + _SCREEN_CHUNK] for begin in range(0, len(sequence), _SCREEN_CHUNK))
    return sequence + "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
