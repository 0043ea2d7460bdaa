"""Ids and names of calls that another service or model made up, as the service that is asked takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ...api.messages import Block, Message, ToolCall, ToolOutput

_NOT_IN_NAMES = r"[^A-Za-z0-9_-]"

NINE = r"[A-Za-z0-9]{9}"
"""The ids of Mistral, whose models also behind other servers take no other ones."""
_SHORTEST = 9


def _never(_: Message) -> bool:
    return False


def allowed_name(given: str, longest: int) -> str:
    """The name of a tool with the characters that services accept; a model may have made it up."""
    return re.sub(_NOT_IN_NAMES, "_", given)[:longest] or "unknown"


def with_ids(
    messages: Iterable[Message], allowed: str, is_own: Callable[[Message], bool] = _never
) -> Iterator[Message]:
    """The messages with ids that fit the pattern `allowed`, each of them used once; a call and its output keep one id.

    Some services begin to count anew with each answer; others refuse a conversation in which an id stands twice,
    or one with characters or a length that they would not give themselves. Answers that are `is_own` keep theirs.
    """
    taken: set[str] = set()
    changed: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            changed = {} if is_own(message) else _changes(message, allowed, taken)
            taken.update(changed.get(call.id, call.id) for call in message.calls)
        if changed and message.role in ("assistant", "tool"):
            message = message.replace(content=tuple(_renamed(block, changed) for block in message.content))
        yield message


def _changes(message: Message, allowed: str, taken: set[str]) -> dict[str, str]:
    changed: dict[str, str] = {}
    for call in message.calls:
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
