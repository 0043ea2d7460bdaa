"""Passes a question to the interface: by its own method, or as text if it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...api.permissions import NO, AskedCall, PermissionAnswer, Question, Reply

if TYPE_CHECKING:
    from ..parts import SessionSetup
    from ..ports import Asker

_WORDS: Mapping[PermissionAnswer, str] = {"once": "yes", "session": "session", "always": "always", "no": "no"}
"""The label of each answer if only labels can be chosen; a command cannot be edited there."""


async def put(question: Question, setup: SessionSetup) -> Sequence[Reply]:
    """The replies to a question, one for each call; a reply that was not offered counts as a no."""
    if setup.permit is not None:
        replies = list(await setup.permit(question))
    elif setup.asker is not None:
        replies = [await by_words(call, setup.asker) for call in question.calls] or [
            await _in_general(question, setup.asker)
        ]
    else:
        replies = []
    replies += [NO] * (question.answers - len(replies))
    offered = [call.answers for call in question.calls] or [("once", "no")]
    return [_checked(reply, answers) for reply, answers in zip(replies, offered, strict=False)]


def _checked(reply: object, answers: Sequence[PermissionAnswer]) -> Reply:
    if not isinstance(reply, Reply) or reply.says not in answers:
        return NO
    return NO if reply.says == "edit" and not reply.command.strip() else reply


async def by_words(call: AskedCall, asker: Asker) -> Reply:
    """The reply to a question about a call that is asked as text, with labels to choose from."""
    words = [_WORDS[answer] for answer in call.answers if answer in _WORDS]
    said = await asker(_text_of(call), words)
    return next((Reply(says=answer) for answer in call.answers if _WORDS.get(answer) == said), NO)


async def _in_general(question: Question, asker: Asker) -> Reply:
    text = "\n".join([question.text, *question.details])
    return Reply(says="once") if await asker(text, ("yes", "no")) == "yes" else NO


def _text_of(call: AskedCall) -> str:
    """All details of a call, as text."""
    alarm = [f"DANGER: this {call.alarm}."] if call.alarm else []
    always = [f"always stores the rule: {call.remember}"] if call.remember else []
    given = "\n".join([call.text, *call.findings, *filter(None, [call.diff.rstrip("\n")])])
    quoted = [f"  | {line}" for line in given.split("\n")]  # no part of it can be mistaken for the question itself
    lines = [*alarm, f"{call.name}:", *quoted, *always]
    return "\n".join([*filter(None, lines), f"({call.reason}) Run it?"])
