"""Entries of files put back as they were: what a call that takes another one back is given, and how it is checked."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from marvin_core import ToolContext, ToolError, one_line

Change: TypeAlias = "dict[str, Any]"
"""What an entry was before a call and what it was after it, as `before` and `after`; None for no entry."""

_SHOWN = 300


def change(before: Any, after: Any) -> Change:
    """What a call did to an entry, for the call that takes it back."""
    return {"before": _plain(before), "after": _plain(after)}


def before_of(context: ToolContext, given: Change, now: Any) -> Any:
    """What the entry was before the call that is taken back.

    Args:
        now: what it is.

    Raises:
        ToolError: somebody changed it since then, or nobody takes a call back.
    """
    if context.origin != "undo" or not {"before", "after"} <= given.keys():
        raise ToolError("taken_back is for /undo alone. Leave it out.")
    if _plain(now) != given["after"]:
        shown = [one_line(json.dumps(value, ensure_ascii=False), _SHOWN) for value in (given["after"], _plain(now))]
        raise ToolError(f"Somebody changed it since then. It was {shown[0]}, and is {shown[1]}. Change it by hand.")
    return given["before"]


def _plain(value: Any) -> Any:
    """A value as JSON has it: files hold values of other kinds, such as dates and texts with a comment."""
    return json.loads(json.dumps(value, default=str))
