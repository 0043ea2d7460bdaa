"""Estimates the tokens of a request before the service counts them: rather too many than too few."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from ..api.messages import Image, Message, ProviderData, Text, Thinking, ToolCall, ToolOutput
from ..api.providers import Request
from ..api.tools import ToolSpec

BYTES_PER_TOKEN = 2
"""The bytes in a token of text that the service has not counted yet: fewer than in any language."""
_FEWEST_BYTES = 1.2
"""The same for a service that never counts, so that nothing corrects the estimate: fewer than in random characters."""
_MESSAGE_BYTES = 20
"""The bytes that the wire format adds to each message, about ten tokens."""
_BLOCK_BYTES = 12
"""The bytes that it adds to each call and each output, in addition to their ids."""
_IMAGE_TOKENS = 5_000
"""More than a current service counts for an image at the resolution that Marvin requests."""
_MARGIN = 1.1


class InputEstimate:
    """Estimates the input of requests, and learns from the counts of services.

    The size of a message is cached while it is part of the requests.
    """

    def __init__(self) -> None:
        self._counted: tuple[str, str, int, int] | None = None
        self._uncounted: set[tuple[str, str]] = set()
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_size = 0
        self._provider = ""
        self._sizes: dict[int, tuple[Message, int]] = {}

    def size(self, provider: str, request: Request) -> int:
        """The size in bytes of a request's input at this provider."""
        tools = request.with_revealed().tools  # what a service adds by itself is counted, too
        if tools is not self._tools and tools != self._tools:
            self._tools = tools
            described = [(tool.name, tool.description, tool.parameters) for tool in tools]
            self._tools_size = _json_size(described)
        return self._tools_size + _bytes(request.system) + self._messages_size(provider, request.messages)

    def _messages_size(self, provider: str, messages: Iterable[Message]) -> int:
        known = self._sizes if provider == self._provider else {}
        self._provider, self._sizes = provider, {}
        total = 0
        for message in messages:
            # By identity, which is one look-up; the message is kept with its size, so that no other takes its place.
            entry = known.get(id(message)) or (message, _message_size(message, provider))
            self._sizes[id(message)] = entry
            total += entry[1]
        return total

    def tokens(self, provider: str, model: str, size: int) -> int:
        """The maximum number of input tokens in this many bytes, by the service's latest counts and a margin."""
        if self._counted is None or self._counted[:2] != (provider, model):
            return math.ceil(size / (_FEWEST_BYTES if (provider, model) in self._uncounted else BYTES_PER_TOKEN))
        _, _, counted_size, counted = self._counted
        if size < counted_size:
            return min(counted, math.ceil(size * self._dense(provider, model)))
        return counted + math.ceil((size - counted_size) * self._dense(provider, model))

    def answer(self, provider: str, model: str, size: int) -> int:
        """The tokens in this many bytes of an answer that the service did not count."""
        return math.ceil(size * self._dense(provider, model))

    def unsaid(self, provider: str, model: str, size: int, reserved: int) -> int:
        """The input tokens of a request that the service answered without a count."""
        if self._counted is not None and self._counted[:2] == (provider, model):
            return reserved
        self._uncounted.add((provider, model))
        return math.ceil(size / _FEWEST_BYTES)

    def _dense(self, provider: str, model: str) -> float:
        """Tokens per byte."""
        if self._counted is None or self._counted[:2] != (provider, model):
            return 1 / _FEWEST_BYTES if (provider, model) in self._uncounted else 1 / BYTES_PER_TOKEN
        _, _, size, counted = self._counted
        return max(counted / max(size, 1) * _MARGIN, 1 / BYTES_PER_TOKEN)

    def learn(self, provider: str, model: str, size: int, counted: int) -> None:
        """Record the service's count for a request of this size."""
        self._counted = (provider, model, size, counted)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _json_size(data: object) -> int:
    return len(json.dumps(data, default=str))


def _message_size(message: Message, provider: str) -> int:
    return _MESSAGE_BYTES + sum(_block_size(block, provider) for block in message.content)


def _block_size(block: object, provider: str) -> int:
    if isinstance(block, Image):
        return _IMAGE_TOKENS * BYTES_PER_TOKEN
    if isinstance(block, ToolOutput):
        inner = sum(_block_size(part, provider) for part in block.content)
        return _BLOCK_BYTES + _bytes(block.call_id) + _bytes(block.name) + inner
    if isinstance(block, ToolCall):
        own = _BLOCK_BYTES + _bytes(block.id) + _bytes(block.arguments) + _bytes(block.name)
    elif isinstance(block, (Text, Thinking)):
        own = _bytes(block.text)
    else:
        return 0
    return own + _returned_size(block.provider_data, provider)


def _returned_size(data: ProviderData | None, provider: str) -> int:
    """The size in bytes of data that is returned unchanged to its provider only: signatures and encrypted reasoning."""
    return _json_size(data.data) if data is not None and data.provider == provider else 0
