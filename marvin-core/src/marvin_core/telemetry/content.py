"""The content of prompts, answers, arguments and results in spans: none, or redacted and shortened texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api.messages import Text, Thinking, ToolCall, ToolOutput
from ..api.providers import Request
from ..util.text import storable
from . import names

_BEGINNING = 20_000
"""The number of characters beyond the maximum that are also redacted, so that no cut secret remains."""
_SHORT = 200
_MESSAGES = 4
"""The maximum length of all messages of a request, as a multiple of the maximum for one text."""


class Content:
    """Redacts texts, and cuts them to `longest` characters.

    Args:
        clean: redacts a text as for logs.
        longest: 0 to send no content; names of models and tools are sent anyway.
    """

    def __init__(self, clean: Callable[[str], str], longest: int) -> None:
        self._clean = clean
        self._longest = longest

    @property
    def is_sent(self) -> bool:
        """Whether content is sent."""
        return bool(self._longest)

    def short(self, text: str) -> str:
        """Redact and shorten a name from outside, for instance of a model behind a gateway."""
        return storable(self._clean(text[:_BEGINNING])[:_SHORT])

    def prompt(self, text: str) -> dict[str, Any]:
        """The attributes of a prompt."""
        return self._sent(names.INPUT, [_message("user", [_text(self._cut(text))])])

    def answer(self, text: str) -> dict[str, Any]:
        """The attributes of a complete answer."""
        return self._sent(names.OUTPUT, [_message("assistant", [_text(self._cut(text))])])

    def arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of a tool's arguments."""
        if not self._longest:
            return {}
        return {names.TOOL_ARGUMENTS: self._cut(json.dumps(arguments, ensure_ascii=False, default=str))}

    def result(self, text: str) -> dict[str, Any]:
        """The attributes of a tool's result."""
        return {names.TOOL_RESULT: self._cut(text)} if self._longest else {}

    def request(self, request: Request) -> dict[str, Any]:
        """The attributes of a model request: its instructions, and the newest messages that fit."""
        if not self._longest:
            return {}
        left = self._longest * _MESSAGES
        kept: list[dict[str, Any]] = []
        for message in reversed(request.messages):
            shown = _message(message.role, self._parts(message.content))
            left -= len(str(shown))
            if left < 0 and kept:
                break
            kept.append(shown)
        instructions = {names.INSTRUCTIONS: _json([_text(self._cut(request.system))])} if request.system else {}
        return {**instructions, names.INPUT: _json(kept[::-1])}

    def response(self, blocks: Sequence[Any], reason: str) -> dict[str, Any]:
        """The attributes of a model's answer."""
        if not self._longest:
            return {}
        said = {**_message("assistant", self._parts(blocks)), "finish_reason": reason}
        return {names.OUTPUT: _json([said])}

    def _sent(self, name: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {name: _json(messages)} if self._longest else {}

    def _parts(self, blocks: Sequence[Any]) -> list[dict[str, Any]]:
        return [part for block in blocks if (part := self._part(block)) is not None]

    def _part(self, block: Any) -> dict[str, Any] | None:
        """A block in the form of the conventions. Images are left out."""
        if isinstance(block, Text):
            return _text(self._cut(block.text))
        if isinstance(block, Thinking):
            return {"type": "reasoning", "content": self._cut(block.text)}
        if isinstance(block, ToolCall):
            called = {"id": self.short(block.id), "name": self.short(block.name)}
            return {"type": "tool_call", **called, "arguments": self._cut(block.arguments)}
        if isinstance(block, ToolOutput):
            return {"type": "tool_call_response", "id": self.short(block.call_id), "response": self._cut(block.text)}
        return None

    def _cut(self, text: str) -> str:
        clean = self._clean(text[: self._longest + _BEGINNING])
        return storable(clean if len(clean) <= self._longest else clean[: self._longest] + "…")


def plain_content() -> Content:
    """A `Content` that sends no content, for use before the session and its secrets are known."""
    return Content(str, 0)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _message(role: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
