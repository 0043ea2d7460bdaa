"""Sampling requests of a server, if the user allows them: the session's model answers, under the cost ceiling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import mcp_types as types

from ..api.config import McpServer
from ..api.errors import MarvinError
from ..api.messages import Image, Message, Text
from ..api.providers import Request
from ..util.terminal_text import disarm
from ..util.text import cut
from .caller import Caller, Questions
from .results import blocks_of

if TYPE_CHECKING:
    from ..conversation.aside import PartialAnswer

Ask = Callable[[Request], "Awaitable[PartialAnswer]"]
"""Requests an answer from the model. Raises `MarvinError`."""

_YES, _NO = "yes", "no"
_SHOWN = 1_000
_LONGEST = 200_000
"""The maximum length of a request, in characters."""
_REASONS = {"stop": "endTurn", "length": "maxTokens"}
_REFUSED = -1
"""The error code of a request that the user denied (the specification's own example)."""


class Sampling:
    """The sampling requests of one server: one at a time."""

    def __init__(self, server: McpServer, callers: Sequence[Caller], ask: Ask, questions: Questions) -> None:
        self._server = server
        self._callers = callers
        self._ask = ask
        self._questions = questions
        self._turn = asyncio.Lock()

    async def answer(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The model's answer, or an error with the reason why there is none."""
        try:
            async with self._turn:
                return await self._answered(params)
        except TimeoutError:
            return types.ErrorData(code=types.INTERNAL_ERROR, message="The model took too long.")
        except MarvinError as error:
            return types.ErrorData(code=types.INTERNAL_ERROR, message=str(error))

    async def _answered(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult | types.ErrorData:
        messages = tuple(map(_message, params.messages))
        size = len(params.system_prompt or "") + sum(
            len(block.text) for message in messages for block in message.content if isinstance(block, Text)
        )
        if size > _LONGEST:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"More than {_LONGEST:,} characters were asked.")
        if not await self._may(params.system_prompt or "", messages):
            return types.ErrorData(code=_REFUSED, message="The user did not let the server ask the model.")
        came = await self._ask(
            Request(
                system=params.system_prompt or "",
                messages=messages,
                tool_choice="none",
                max_output_tokens=max(1, params.max_tokens),
            )
        )
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=came.text),
            model=came.model,
            stop_reason=_REASONS.get(came.reason, came.reason),
        )

    async def _may(self, system: str, messages: Sequence[Message]) -> bool:
        if self._server.sampling == "allow":
            return True
        if not self._callers or not self._questions.may_ask(self._callers[-1]):
            return False
        asked = "\n".join(filter(None, [system, *(message.text for message in messages)]))
        question = (
            f"The MCP server {self._server.name} wants to ask the model this, which costs tokens. May it?\n"
            f"{cut(disarm(asked), _SHOWN)}"
        )
        return await self._callers[-1].ask(question, [_YES, _NO]) == _YES


def _message(said: types.SamplingMessage) -> Message:
    content = said.content if isinstance(said.content, list) else [said.content]
    kept: list[Text | Image] = []
    for block in content:
        if block.type in ("text", "image", "audio"):
            kept += blocks_of([block])
    return Message(role=said.role, content=tuple(kept))
