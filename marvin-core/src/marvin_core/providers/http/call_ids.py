"""Adapts ids and names of calls that another service or model created to the requirements of a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_

from ...api.messages import Block, Message, ToolCall, ToolOutput

_NOT_IN_NAMES = r"[^A-Za-z0-9_-]"

NINE = r"[A-Za-z0-9]{9}"
"""The form of Mistral's ids; its models accept no others, also on other servers."""
_SHORTEST = 9


def _never(_: Message) -> bool:
    return False


def allowed_name(given: str, longest: int) -> str:
    """The name of a tool, restricted to characters that services accept; a model may have made it up."""
    return re.sub(_NOT_IN_NAMES, "_", given)[:longest] or "unknown"


class FittingIds:
    """The messages of one conversation with ids that a service accepts, each used for one call; outputs keep their
    calls.

    Some services start numbering again in each answer. Others refuse duplicate ids in a conversation, or ids with
    characters or a length that they do not use themselves. Answers that are `is_own` keep their ids. The next request
    of the conversation reuses the result: its messages are the same objects.
    """

    def __init__(self, is_own: Callable[[Message], bool] = _never) -> None:
        self._is_own = is_own
        self.forget()

    def forget(self) -> None:
        """Process all messages again next time."""
        self._given: list[Message] = []
        self._fitting: list[Message] = []
        self._taken: set[str] = set()
        self._changed: dict[str, str] = {}
        self._allowed = ""

    def of(self, messages: Sequence[Message], allowed: str) -> Sequence[Message]:
        """The messages of a request with ids that match the pattern `allowed`."""
        known = len(self._given)
        if allowed != self._allowed or known > len(messages) or not all(map(is_, self._given, messages)):
            self.forget()
            self._allowed, known = allowed, 0
        for message in messages[known:]:
            self._given.append(message)
            self._fitting.append(self._next(message))
        return self._fitting

    def _next(self, message: Message) -> Message:
        if message.role == "assistant":
            calls = message.calls
            self._changed = {} if self._is_own(message) else _changes(calls, self._allowed, self._taken)
            self._taken.update(self._changed.get(call.id, call.id) for call in calls)
        changed = self._changed
        if changed and message.role in ("assistant", "tool"):
            return message.replace(content=tuple(_renamed(block, changed) for block in message.content))
        return message


def _changes(calls: Sequence[ToolCall], allowed: str, taken: Collection[str]) -> dict[str, str]:
    changed: dict[str, str] = {}
    for call in calls:
        own, number = _fitting(call.id, allowed), 1
        while own in taken:
            number += 1
            own = _fitting(f"{call.id}_{number}", allowed)
        if own != call.id:
            changed[call.id] = own
    return changed


def _fitting(given: str, allowed: str) -> str:
    if re.fullmatch(allowed, given):
        return given
    from hashlib import sha256

    digest = sha256(given.encode("utf-8", "replace")).hexdigest()
    made = f"call_{digest[:32]}"
    return made if re.fullmatch(allowed, made) else digest[:_SHORTEST]


def _renamed(block: Block, ids: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCall):
        return block.replace(id=ids.get(block.id, block.id))
    return block.replace(call_id=ids.get(block.call_id, block.call_id)) if isinstance(block, ToolOutput) else block
