"""Detects that Ollama dropped the beginning of a conversation.

An Ollama that supports `truncate: false` in a request (server/routes.go, since the end of 2025) refuses a prompt that
is too long. An older one silently drops the oldest messages until the rest fits into `num_ctx`. The only trace of this
is its count of the prompt's tokens. A small count alone proves nothing: several versions did not count cached tokens
(ollama/ollama#2068, #3427, #16414).

So a warning needs two conditions. First, the count is above half of the window, as it is for a truncated prompt, but
not for one that was mostly cached. Second, the conversation cannot have fitted: its text needs more than the window at
eight characters a token, or its previous minimum size plus its growth exceed the window. The minimum size is the
largest count so far, without the reasoning that templates leave out of earlier turns. The growth is counted at eight
characters a token, or at four if the count has decreased.
"""

from __future__ import annotations

from ...api.messages import Message, Thinking
from ...api.providers import Request
from ...api.record import Record

_MOST_CHARACTERS = 8
"""The maximum number of characters in a token: ordinary text and code have fewer."""
_USUAL_CHARACTERS = 4
_LEAST_CHARACTERS = 2


class _Seen(Record):
    """The previous request: its number of messages, the last one, its characters, its minimum number of tokens."""

    messages: int = 0
    last: Message | None = None
    characters: int = 0
    least: int = 0


class PromptWatch:
    """Compares the sent conversation with the number of tokens that Ollama reports."""

    def __init__(self) -> None:
        self._seen = _Seen()

    def is_cut(self, request: Request, tokens: int, window: int) -> bool:
        """Whether the beginning of this request was dropped; both numbers are in tokens."""
        before, messages = self._seen, request.messages
        size = len(request.system) + sum(map(_characters, messages))
        growth = size - before.characters
        least = tokens - sum(map(_thinking, messages)) // _LEAST_CHARACTERS
        extends = growth >= 0 and 0 < before.messages <= len(messages) and messages[before.messages - 1] is before.last
        if extends:
            least = max(least, before.least + growth // _MOST_CHARACTERS)
        last = messages[-1] if messages else None
        self._seen = _Seen(messages=len(messages), last=last, characters=size, least=least)
        if tokens <= window // 2:
            return False
        if max(least, size // _MOST_CHARACTERS) > window:
            return True
        return extends and tokens < before.least and before.least + growth // _USUAL_CHARACTERS > window


def _characters(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.calls)
    return len(message.text) + calls + sum(len(output.text) for output in message.outputs)


def _thinking(message: Message) -> int:
    return sum(len(block.text) for block in message.content if isinstance(block, Thinking))
