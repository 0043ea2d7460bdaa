"""Typed lines as they are displayed again: complete in the scrollback, in one row while they are queued."""

from __future__ import annotations

from ...util.text import counted
from ..rendering import SHOWN, clean

_ECHOED_LINES = 20


def echoed(shown: str, sign: str) -> str:
    """A line that is executed now, after its prompt sign; of a long one, the first lines."""
    first, *more = clean(shown).split("\n")
    lines = [first, *more[: _ECHOED_LINES - 1]]
    if len(more) >= _ECHOED_LINES:
        lines.append(f"… {counted(len(more) + 1 - _ECHOED_LINES, 'more line')}")
    return sign + "\n  ".join(lines)


def first_line(text: str) -> str:
    """As much of a text as fits into the row of a queued line."""
    return clean(text).partition("\n")[0][:SHOWN]
