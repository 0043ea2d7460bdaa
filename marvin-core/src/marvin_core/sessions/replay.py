"""The end of a conversation, shown again in a chat that continues it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from ..api.controls import SaidEntry
from ..api.messages import Message
from ..util.text import cut

_PROMPTS = 3
"""The number of newest prompts that are shown again, with their answers."""
_ENTRIES = 12
_LONGEST = 4_000
"""The maximum length of a text in characters."""


def end_of(messages: Sequence[Message], times: Sequence[float]) -> tuple[SaidEntry, ...]:
    """The newest messages, oldest first; `times` are those of the messages, 0 if unknown."""
    found: list[SaidEntry] = []
    prompts = 0
    said = zip_longest(reversed(messages), reversed(times), fillvalue=0.0)
    for message, time in said:
        if not isinstance(message, Message) or message.is_summary or message.role not in ("user", "assistant"):
            continue
        calls = tuple(call.name for call in message.calls)
        text = message.text.strip()
        if not text and not calls:
            continue
        role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
        found.append(SaidEntry(role=role, text=cut(text, _LONGEST), time=time, calls=calls))
        prompts += role == "user"
        if prompts == _PROMPTS or len(found) == _ENTRIES:
            break
    return tuple(reversed(found))
