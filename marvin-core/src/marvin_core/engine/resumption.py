"""What a session that is gone on with had, and has no longer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..api.messages import Message
from ..sessions.records import Header

_NAMED = 5


def gone(
    header: Header, messages: Sequence[Message], offered: Collection[str], why: Mapping[str, str], working_dir: str
) -> list[str]:
    """What differs from when the session was written, a sentence each; its model aside.

    Args:
        messages: its live context.
        offered: the names of the tools on offer now.
        why: by the name of another tool, why it is not offered.
        working_dir: where the session goes on.
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
