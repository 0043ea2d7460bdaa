"""Differences between a resumed session and its present environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..api.messages import Message
from ..sessions.records import Header

_NAMED = 5


def gone(
    header: Header, messages: Sequence[Message], offered: Collection[str], why: Mapping[str, str], working_dir: str
) -> list[str]:
    """The differences since the session was written, one sentence each, except for its model.

    Args:
        messages: its conversation.
        offered: the names of the offered tools.
        why: the reason why another tool is not offered, by name.
        working_dir: the present working directory.
    """
    told = []
    if header.working_dir and header.working_dir != working_dir:
        told.append(f"This session was in {header.working_dir}; it continues in {working_dir}.")
    used = dict.fromkeys(call.name for message in messages for call in message.calls)
    missing = [name for name in used if name not in offered]
    for name in missing[:_NAMED]:
        reason = why.get(name, "no installed pack provides it")
        told.append(f"This session used {name}, which is not available here: {reason}.")
    if len(missing) > _NAMED:
        told.append(f"{len(missing) - _NAMED} more of the tools that it used are not available here.")
    return told
