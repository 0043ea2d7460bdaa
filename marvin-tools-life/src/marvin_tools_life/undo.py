"""Undo of changes to entries in files: the data that an undo gets, and its validation."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from marvin_core import ToolContext, ToolError, one_line

Change: TypeAlias = "dict[str, Any]"
"""An entry before and after a call, as `before` and `after`; None for no entry.

`profile` is the profile of the change, if the entry belongs to one."""

_SHOWN = 300


def change(before: Any, after: Any, profile: ToolContext | None = None) -> Change:
    """The change that a call made to an entry, for its undo.

    Args:
        profile: the context of the call, if the entry belongs to the active profile.
    """
    made = {"before": _plain(before), "after": _plain(after)}
    return made if profile is None else {**made, "profile": profile.profile_folder.name}


def check_taken_back(context: ToolContext, given: Change) -> None:
    """Refuse a change unless `/undo` gives it, in the profile in which it was made.

    Raises:
        ToolError: otherwise.
    """
    check_undo(context, "taken_back")
    used = context.profile_folder.name
    made = given.get("profile", used)
    if made != used:
        raise ToolError(f"It was done in the profile {made}, but {used} is active. Switch to {made} first.")


def check_undo(context: ToolContext, name: str) -> None:
    """Refuse a parameter unless `/undo` gives it, as its effect cannot be undone.

    Raises:
        ToolError: the call does not come from `/undo`.
    """
    if context.origin != "undo":
        raise ToolError(f"{name} is for /undo only. Leave it out.")


def before_of(context: ToolContext, given: Change, now: Any) -> Any:
    """The entry before the call that is undone.

    Args:
        now: the current entry.

    Raises:
        ToolError: it was changed since, another profile is active, or the call is not by `/undo`.
    """
    check_taken_back(context, given)
    if not {"before", "after"} <= given.keys():
        raise ToolError("What was kept of the call is incomplete. Change it by hand.")
    if _plain(now) != given["after"]:
        shown = [one_line(json.dumps(value, ensure_ascii=False), _SHOWN) for value in (given["after"], _plain(now))]
        raise ToolError(f"It was changed since then: it was {shown[0]} and is now {shown[1]}. Undo it by hand.")
    return given["before"]


def _plain(value: Any) -> Any:
    """A value as plain JSON: files contain other types, such as dates and texts with comments."""
    return json.loads(json.dumps(value, default=str))
