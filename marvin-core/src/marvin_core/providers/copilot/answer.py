"""Converts the events of Copilot's runtime into the pieces of one answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from ...api.errors import Overloaded, ProviderError, RateLimited, StreamBroken, Unreachable
from ...api.messages import StopReason, Usage
from ...api.providers import CallDelta, Delta, Endpoint, TextDelta, ThinkingDelta, UsageDelta
from ...util.numbers import amount, count
from ...util.untrusted_json import parse_json

_CUT_OFF = {"length": "length", "content_filter": "refused"}
"""Reasons for an end after which the runtime would continue by itself."""
_CALL_SIZE = 200
"""The size of a call without its arguments, in characters: each call takes memory."""
_TEXTS = ("delta_content", "input_delta", "content", "error_message", "message")
_NANO_CREDIT = 0.01e-9
"""USD. A credit is a cent: https://docs.github.com/en/copilot/concepts/billing"""
_REQUEST = 0.04
"""USD for each request beyond the included ones, in plans that count requests."""


class CopilotAnswer:
    """Reads one answer: pass it every event until `stop` or `failure` is set.

    `whole` means that the runtime's session is in the state after the answer, so that it can be continued. `text` and
    `calls` are the visible text, and the ids of the calls whose outputs the runtime waits for.
    """

    def __init__(self, endpoint: Endpoint, tools: Collection[str]) -> None:
        self._endpoint = endpoint
        self._tools = tools
        self._usage: Usage | None = None
        self._finish = ""
        self._texts: list[str] = []
        self._message: list[str] = []
        self._arguments: dict[str, list[str]] = {}
        self._keys: dict[str, int] = {}
        self._said_size = self._called_size = self._size = 0
        self._reported: ProviderError | None = None
        self._answered = False
        self.stop: StopReason | None = None
        self.failure: ProviderError | None = None
        self.whole = False
        self.calls: tuple[str, ...] = ()

    @property
    def progress(self) -> int:
        """The amount of the answer received so far; other events add nothing."""
        return self._said_size + self._called_size

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._texts)

    def feed(self, event: Any) -> Iterator[Delta]:
        """Process an event. Unknown kinds are ignored. An answer larger than the endpoint's limits fails."""
        size = _size(event.data)
        self._size += size
        if size > self._endpoint.limits.event:
            self._too_large("event", self._endpoint.limits.event)
            return
        yield from self._understood(event)
        limits = self._endpoint.limits
        for name, reached, most in (
            ("answer", self._said_size, limits.answer),
            ("arguments", self._called_size, limits.arguments),
            ("stream", self._size, limits.stream),
        ):
            if reached > most:
                self._too_large(name, most)

    def _too_large(self, name: str, limit: int) -> None:
        from ..http.past_limits import too_large

        self.failure = too_large(self._endpoint, self._endpoint.base_url, name, limit)

    def _understood(self, event: Any) -> Iterator[Delta]:
        kind, data = event.type.value, event.data
        if kind == "assistant.message_delta":
            yield from self._said(data.delta_content)
        elif kind == "assistant.reasoning_delta":
            self._said_size += len(data.delta_content)
            yield ThinkingDelta(text=data.delta_content)
        elif kind == "assistant.tool_call_delta":
            yield from self._calling(data.tool_call_id, data.tool_name or "", data.input_delta)
        elif kind == "assistant.usage":
            yield self._used(data)
        elif kind == "assistant.message":
            yield from self._complete(data)
        elif kind == "model.call_finished" and self._finish in _CUT_OFF:
            self.stop = "length" if self._finish == "length" else "refused"
        elif kind == "model.call_failure":
            self._fail_early(data)
        elif kind == "session.error":
            self.failure = self._error(data)
        elif kind == "session.idle":
            self._end()

    def _said(self, text: str) -> Iterator[Delta]:
        if text:
            self._said_size += len(text)
            self._texts.append(text)
            self._message.append(text)
            yield TextDelta(text=text)

    def _calling(self, call_id: str, name: str, arguments: str) -> Iterator[Delta]:
        new = call_id not in self._arguments
        self._arguments.setdefault(call_id, []).append(arguments)
        self._called_size += len(arguments) + (_CALL_SIZE + len(call_id) + len(name) if new else 0)
        key = self._keys.setdefault(call_id, len(self._keys))
        yield CallDelta(key=key, id=call_id if new else "", name=name if new else "", arguments=arguments)

    def _used(self, data: Any) -> Delta:
        """The token counts of all model calls of this answer so far, and their cost if GitHub reports it."""
        before = self._usage or Usage(cost=0.0)
        credits = amount(getattr(getattr(data, "copilot_usage", None), "total_nano_aiu", None))
        stated = before.cost is not None and credits is not None and not self._endpoint.base_url
        self._usage = Usage(
            input_tokens=before.input_tokens + count(data.input_tokens),
            output_tokens=before.output_tokens + count(data.output_tokens),
            cache_read_tokens=before.cache_read_tokens + count(data.cache_read_tokens),
            cache_write_tokens=before.cache_write_tokens + count(data.cache_write_tokens),
            reasoning_tokens=before.reasoning_tokens + count(data.reasoning_tokens),
            cost=(before.cost or 0.0) + (credits or 0.0) * _NANO_CREDIT if stated else None,
            estimate=None
            if stated or self._endpoint.base_url
            else (before.estimate or before.cost or 0.0) + _estimate(data.cost),
        )
        self._finish = "content_filter" if data.content_filter_triggered else data.finish_reason or ""
        return UsageDelta(usage=self._usage)

    def _complete(self, data: Any) -> Iterator[Delta]:
        """A message of the model is complete: emit the part that was not streamed."""
        yield from self._said((data.content or "").removeprefix("".join(self._message)))
        self._message = []
        self._answered = True
        requests = data.tool_requests or []
        for request in requests:
            if request.tool_call_id not in self._arguments:
                yield from self._calling(request.tool_call_id, request.name, _as_text(request.arguments))
        if requests:
            self.calls = tuple(request.tool_call_id for request in requests)
            self.stop = "tool_calls"
            # The runtime answers what it cannot hand over by itself, and goes on.
            self.whole = all(self._is_handed_over(request) for request in requests)

    def _is_handed_over(self, request: Any) -> bool:
        try:
            given = parse_json("".join(self._arguments[request.tool_call_id]) or "{}")
        except ValueError:
            return False
        return request.name in self._tools and isinstance(given, dict)

    def _fail_early(self, data: Any) -> None:
        """Record a failed call of the model.

        It ends the answer if the runtime would otherwise repeat the call for a minute. The runtime may repeat a call
        that GitHub refused at once, with a renewed token; no other service provides that.
        """
        from .errors import typed

        self._reported = typed(self._endpoint, data.error_message or "", data.error_type or "", data.status_code)
        transport = getattr(data.failure_kind, "value", "") == "transport"
        if transport and not isinstance(self._reported, Unreachable):
            name = self._endpoint.provider
            what = "broke off in the middle of its answer" if self._texts else "gave no usable answer"
            self._reported = StreamBroken(f"{name} {what}: the connection was closed. Try again.", provider=name)
        if transport or self._endpoint.base_url or isinstance(self._reported, (RateLimited, Overloaded)):
            self.failure = self._reported

    def _error(self, data: Any) -> ProviderError:
        if self._reported is not None:
            return self._reported
        if self._answered and not self.text and not self.calls:
            name = self._endpoint.provider
            return StreamBroken(f"{name} gave an empty answer. Try again, or another model.", provider=name)
        from .errors import typed

        return typed(self._endpoint, data.message, data.error_type or "", data.status_code)

    def _end(self) -> None:
        if self.failure is not None or self.stop is not None:
            return
        if self._answered:
            self.stop, self.whole = "stop", True
            return
        name = self._endpoint.provider
        self.failure = self._reported or StreamBroken(f"{name} ended without an answer. Try again.", provider=name)


def _size(data: Any) -> int:
    """The approximate size of an event's text in bytes."""
    texts = (getattr(data, name, None) for name in _TEXTS)
    return sum(len(text) for text in texts if isinstance(text, str))


def _estimate(multiplier: Any) -> float:
    """The approximate cost of a request in USD, by the number of plan requests that it counts for."""
    found = amount(multiplier)
    return _REQUEST if found is None else found * _REQUEST


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
