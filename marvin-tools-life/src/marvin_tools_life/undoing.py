"""Entries of files put back as they were: what a call that takes another one back is given, and how it is checked."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from marvin_core import ToolContext, ToolError, one_line

Change: TypeAlias = "dict[str, Any]"
"""What an entry was before a call and what it was after it, as `before` and `after`; None for no entry.

`profile` is the one that it was made in, where the entry is one of a profile."""

_SHOWN = 300


def change(before: Any, after: Any, profile: ToolContext | None = None) -> Change:
    """What a call did to an entry, for the call that takes it back.

    Args:
        profile: the context of the call, where the entry is one of the profile in use.
    """
    made = {"before": _plain(before), "after": _plain(after)}
    return made if profile is None else {**made, "profile": profile.profile_folder.name}


def check_taken_back(context: ToolContext, given: Change) -> None:
    """Refuse a change that nobody takes back, or that was made in another profile than the one in use.

    Raises:
        ToolError: where that is so.
    """
    check_undo(context, "taken_back")
    used = context.profile_folder.name
    made = given.get("profile", used)
    if made != used:
        raise ToolError(f"It was done in the profile {made}, but {used} is active. Switch to {made} first.")


def check_undo(context: ToolContext, name: str) -> None:
    """Refuse a parameter that nothing but `/undo` gives, as what it does leaves nothing to take back.

    Raises:
        ToolError: where nobody takes a call back.
    """
    if context.origin != "undo":
        raise ToolError(f"{name} is for /undo only. Leave it out.")


def before_of(context: ToolContext, given: Change, now: Any) -> Any:
    """What the entry was before the call that is taken back.

    Args:
        now: what it is.

    Raises:
        ToolError: somebody changed it since then, or another profile is in use, or nobody takes a call back.
    """
    check_taken_back(context, given)
    if not {"before", "after"} <= given.keys():
        raise ToolError("What was kept of the call is incomplete. Change it by hand.")
    if _plain(now) != given["after"]:
        shown = [one_line(json.dumps(value, ensure_ascii=False), _SHOWN) for value in (given["after"], _plain(now))]
        raise ToolError(f"It was changed since then: it was {shown[0]} and is now {shown[1]}. Undo it by hand.")
    return given["before"]


def _plain(value: Any) -> Any:
    """A value as JSON has it: files hold values of other kinds, such as dates and texts with a comment."""
    return json.loads(json.dumps(value, default=str))
