"""Lines that were typed, as they are shown again: whole in the scrollback, in one row while they wait."""

from __future__ import annotations

from ...util.text import counted
from ..rendering import SHOWN, clean

_ECHOED_LINES = 20


def echoed(shown: str, sign: str) -> str:
    """A line that is carried out now, behind its sign; of a long one its first lines."""
    first, *more = clean(shown).split("\n")
    lines = [first, *more[: _ECHOED_LINES - 1]]
    if len(more) >= _ECHOED_LINES:
        lines.append(f"… {counted(len(more) + 1 - _ECHOED_LINES, 'more line')}")
    return sign + "\n  ".join(lines)


def first_line(text: str) -> str:
    """As much of a text as a row that waits shows of it."""
    return clean(text).partition("\n")[0][:SHOWN]
