"""What is under way, and what was typed, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.events import ToolExecutionUpdate
from ..rendering import SHOWN, clean

_ECHOED_LINES = 20


def progress(event: ToolExecutionUpdate) -> str:
    """How far a tool is, in a line."""
    share = ""
    if event.fraction is not None:
        from ...util.shown import bar

        share = f"{bar(event.fraction)} "
    last = event.text.strip().rpartition("\n")[2]
    return clean(f"{event.name}: {share}{last}")[:SHOWN]


def echoed(shown: str, sign: str) -> str:
    """A message as it was typed; of a long one its beginning."""
    first, *more = clean(shown).split("\n")
    lines = [first, *more[: _ECHOED_LINES - 1]]
    if len(more) >= _ECHOED_LINES:
        lines.append(f"… {len(more) + 1 - _ECHOED_LINES:,} more lines")
    return sign + "\n  ".join(lines)


def under_way(activity: str, seconds: float, queue: Sequence[str]) -> list[str]:
    """What is waited for, and the messages that are sent afterwards, a line each."""
    rows = []
    if activity:
        rows.append(f"… {activity}, {int(seconds)} s" if seconds >= 1 else f"… {activity}")
    return rows + [f"(queued) {clean(shown).partition(chr(10))[0][:SHOWN]}" for shown in queue]
