"""A provider whose requests are spans."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from ..api.errors import ProviderError
from ..api.messages import Text, Thinking, ToolCall, Usage
from ..api.providers import (
    CallDelta,
    Delta,
    Lists,
    Measures,
    Provider,
    Request,
    ServedModel,
    Stop,
    TextDelta,
    ThinkingDelta,
    Unlimited,
    UsageDelta,
)
from ..providers.wrapper import WrapperProvider
from ..util.numbers import sound
from . import names

if TYPE_CHECKING:
    from .spans import OpenSpan
    from .tree import SpanTree


class TracedProvider(WrapperProvider):
    """A wrapper of a provider with a span for each request.

    It is below all retries and fallbacks, so that each sent request has its own span, with its error.
    """

    def __init__(self, provider: Provider, base_url: str, tree: SpanTree) -> None:
        super().__init__(provider)
        self._tree = tree
        self._server = names.server(base_url)

    @property
    def unlimited(self) -> bool:
        """Whether the service has no limit for the length of an answer; see `Unlimited`."""
        return isinstance(self._provider, Unlimited) and self._provider.unlimited

    async def served(self) -> list[ServedModel]:
        """The models of the service; see `Lists`."""
        return await self._provider.served() if isinstance(self._provider, Lists) else []

    async def find_window(self) -> int | None:
        """The model's window; see `Measures`."""
        return await self._provider.find_window() if isinstance(self._provider, Measures) else None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer; see `Provider.stream`."""
        span = self._begun(request)
        answer = _Answer(span, keeps=self._tree.content.is_sent)
        error = ""
        try:
            async with aclosing(cast("AsyncGenerator[Delta, None]", self._provider.stream(request))) as deltas:
                async for delta in deltas:
                    answer.take(delta)
                    yield delta
        except GeneratorExit:  # the caller needs no more
            raise
        except asyncio.CancelledError:
            error = names.CANCELLED
            raise
        except BaseException as raised:
            error = type(raised).__name__
            if isinstance(raised, ProviderError) and raised.status is not None:
                span.attributes[names.STATUS] = raised.status
            raise
        finally:
            self._ended(span, answer, error)

    def _begun(self, request: Request) -> OpenSpan:
        content = self._tree.content
        limit = {} if request.max_output_tokens is None else {names.MAX_TOKENS: request.max_output_tokens}
        given = {**self._who(), **limit, **content.request(request)}
        return self._tree.begin("chat", self.model, "client", given)

    def _who(self) -> dict[str, Any]:
        model = self._tree.content.short(self.model)
        return {names.PROVIDER: names.provider_name(self.name), names.REQUEST_MODEL: model, **self._server}

    def _ended(self, span: OpenSpan, answer: _Answer, error: str) -> None:
        tree, known = self._tree, {names.OPERATION: "chat", **self._who()}
        if answer.reason:
            reason = names.finish_reason(answer.reason)
            span.attributes |= {names.FINISH_REASONS: [reason], **tree.content.response(answer.blocks(), reason)}
        if answer.usage is not None:
            span.attributes |= _tokens(answer.usage)
            counted = (("input", answer.usage.input_tokens), ("output", answer.usage.output_tokens))
            for kind, number in counted:
                tree.measure(names.USAGE, number, {**known, names.USAGE_KIND: kind})
        elapsed = tree.end(span, error)
        tree.measure(names.DURATION, elapsed, {**known, names.ERROR: error} if error else known)


class _Answer:
    """The answer so far. Its content is stored only if `keeps` is set."""

    def __init__(self, span: OpenSpan, *, keeps: bool) -> None:
        self._span = span
        self._keeps = keeps
        self._since = time.monotonic()
        self._pieces: list[tuple[str, Any, str]] = []
        self._calls: dict[Any, CallDelta] = {}
        self._began = False
        self.reason = ""
        self.usage: Usage | None = None

    def take(self, delta: Delta) -> None:
        """Add a piece."""
        if not self._began:
            self._began = True
            self._span.attributes[names.FIRST_CHUNK] = time.monotonic() - self._since
        if isinstance(delta, UsageDelta):
            self.usage = sound(delta.usage)
        elif isinstance(delta, Stop):
            self.reason = delta.reason
        elif self._keeps:
            self._keep(delta)

    def _keep(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self._pieces.append(("text", None, delta.text))
        elif isinstance(delta, ThinkingDelta):
            self._pieces.append(("thinking", None, delta.text))
        elif isinstance(delta, CallDelta):
            self._calls.setdefault(delta.key, delta)
            self._pieces.append(("call", delta.key, delta.arguments))

    def blocks(self) -> list[Text | Thinking | ToolCall]:
        """The blocks of the answer, in order."""
        joined: dict[tuple[str, Any], list[str]] = {}
        for kind, key, piece in self._pieces:
            joined.setdefault((kind, key), []).append(piece)
        return [self._block(kind, key, "".join(pieces)) for (kind, key), pieces in joined.items()]

    def _block(self, kind: str, key: Any, text: str) -> Text | Thinking | ToolCall:
        if kind == "call":
            first = self._calls[key]
            return ToolCall(id=first.id, name=first.name, arguments=text)
        return Text(text=text) if kind == "text" else Thinking(text=text)


def _tokens(usage: Usage) -> dict[str, int]:
    cached = {names.CACHE_READ: usage.cache_read_tokens, names.CACHE_WRITE: usage.cache_write_tokens}
    counted = {names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens}
    return {**counted, **{name: number for name, number in cached.items() if number}}
