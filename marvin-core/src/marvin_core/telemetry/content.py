"""What of prompts, answers, arguments and results goes along with spans: nothing, or texts fit to be sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api.messages import Text, Thinking, ToolCall, ToolOutput
from ..api.providers import Request
from ..util.text import storable
from . import names

_BEGINNING = 20_000
"""Characters beyond those that are sent in which secrets are looked for, so that none of them ends in a part of one."""
_SHORT = 200
_MESSAGES = 4
"""The messages of a request may take so many times what one text may."""


class Content:
    """Makes texts fit to be sent: without secrets, and no longer than `longest` characters.

    Args:
        clean: takes out of a text what stays in no log.
        longest: 0 where nothing of what is said is to be sent; names of models and tools are all the same.
    """

    def __init__(self, clean: Callable[[str], str], longest: int) -> None:
        self._clean = clean
        self._longest = longest

    @property
    def is_sent(self) -> bool:
        """Whether anything of what is said goes along."""
        return bool(self._longest)

    def short(self, text: str) -> str:
        """A name, which others choose: a tool that does not exist, a model of somebody's gateway."""
        return storable(self._clean(text[:_BEGINNING])[:_SHORT])

    def prompt(self, text: str) -> dict[str, Any]:
        """The attributes of a prompt."""
        return self._sent(names.INPUT, [_message("user", [_text(self._cut(text))])])

    def answer(self, text: str) -> dict[str, Any]:
        """The attributes of an answer as a whole."""
        return self._sent(names.OUTPUT, [_message("assistant", [_text(self._cut(text))])])

    def arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of what a tool is called with."""
        if not self._longest:
            return {}
        return {names.TOOL_ARGUMENTS: self._cut(json.dumps(arguments, ensure_ascii=False, default=str))}

    def result(self, text: str) -> dict[str, Any]:
        """The attributes of what a tool returned."""
        return {names.TOOL_RESULT: self._cut(text)} if self._longest else {}

    def request(self, request: Request) -> dict[str, Any]:
        """The attributes of what a model is asked: its instructions, and the newest messages there is room for."""
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
        """The attributes of what a model answered."""
        if not self._longest:
            return {}
        said = {**_message("assistant", self._parts(blocks)), "finish_reason": reason}
        return {names.OUTPUT: _json([said])}

    def _sent(self, name: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {name: _json(messages)} if self._longest else {}

    def _parts(self, blocks: Sequence[Any]) -> list[dict[str, Any]]:
        return [part for block in blocks if (part := self._part(block)) is not None]

    def _part(self, block: Any) -> dict[str, Any] | None:
        """A block as the conventions write it. Images are left out: nobody reads them in a trace."""
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
    """What sends nothing of what is said, before a session is known whose secrets are to be left out."""
    return Content(str, 0)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _message(role: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
