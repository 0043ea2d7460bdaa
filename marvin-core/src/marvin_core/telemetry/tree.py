"""The spans of a session: a prompt, its model requests, and its tool calls, each below its parent.

It subscribes to the events of the session like an interface, so that the engine does not depend on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from ..api.events import (
    AgentEnd,
    AgentStart,
    Event,
    SessionClear,
    SessionResume,
    SessionStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnStart,
    UsageReport,
)
from ..api.providers import OFFLINE
from ..api.session import TurnResult
from ..conversation.pairing import INTERRUPTED
from . import names
from .content import Content, plain_content
from .spans import Measurement, OpenSpan, Span, SpanKind
from .trace_context import TraceContext

if TYPE_CHECKING:
    from ..engine.parts import SessionParts

_CALL: ContextVar[OpenSpan | None] = ContextVar("marvin_telemetry_call", default=None)
"""The call of the current task: several may run in parallel."""
_AGENT = "marvin"
_WORKFLOW = "pipeline"


class Sink(Protocol):
    """Receives finished spans and measurements. It does not block."""

    def prepare(self) -> None:
        """Prepare for data that will follow."""
        ...

    def put(self, item: Span | Measurement) -> None:
        """Send a span or a measurement."""
        ...


class SpanTree:
    """Converts the events of one session to spans and measurements.

    Args:
        context: the position of the spans in a trace.
        sink: receives finished spans.
    """

    def __init__(self, context: TraceContext, sink: Sink) -> None:
        self._context = context
        self._sink = sink
        self._workflow: OpenSpan | None = None
        self._agent: OpenSpan | None = None
        self._calls: dict[str, OpenSpan] = {}
        self._session = ""
        self._failed: Callable[[], Exception | None] = lambda: None
        self._model: Callable[[], tuple[str, str]] = lambda: ("", "")
        self.content: Content = plain_content()
        """Redacts and shortens texts."""

    def attach(self, parts: SessionParts, content: Content) -> None:
        """Set the session whose events are traced."""
        self.content = content
        self._failed = lambda: parts.progress.error
        self._model = lambda: (parts.model.provider_name, parts.model.model)
        parts.bus.subscribe(self.listen)
        parts.processes.marks = self.child_variables

    @property
    def current(self) -> OpenSpan | None:
        """The current span."""
        call = _CALL.get()
        if call is not None and call.end is None:
            return call
        return self._agent or self._workflow

    def child_variables(self) -> Mapping[str, str]:
        """The environment variables of a program, so that its own spans are children of the current one."""
        span = self.current
        above = self._context.span_id if span is None else span.id
        return {"TRACEPARENT": self._context.traceparent(above)} if above else {}

    def begin(self, operation: str, what: str, kind: SpanKind, attributes: Mapping[str, Any]) -> OpenSpan:
        """Begin a span of an operation on `what`, as a child of the current span."""
        if kind == "client":  # the remote service needs time, which the import can use
            self._sink.prepare()
        common = {names.OPERATION: operation, **({names.CONVERSATION: self._session} if self._session else {})}
        name = f"{operation} {self.content.short(what)}".rstrip()
        return OpenSpan(name, kind, self.current, {**common, **attributes})

    def end(self, span: OpenSpan, error: str = "") -> float:
        """End a span; returns its duration in seconds.

        Args:
            error: the type of its error in one word.
        """
        elapsed = span.finish()
        if error:
            span.attributes[names.ERROR] = error
        if self._context.sampled:
            self._sink.put(
                Span(
                    name=span.name,
                    kind=span.kind,
                    trace_id=self._context.trace_id,
                    span_id=span.id,
                    parent_id=self._context.span_id if span.parent is None else span.parent.id,
                    start=span.start,
                    end=span.end or span.start,
                    attributes=span.attributes,
                    error=error,
                )
            )
        return elapsed

    def measure(self, metric: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Record a value for a metric."""
        self._sink.put(Measurement(metric=metric, value=value, attributes=attributes))

    def listen(self, event: Event) -> None:
        """Process an event."""
        if isinstance(event, ToolExecutionStart):
            self._begin_call(event)
        elif isinstance(event, ToolExecutionEnd):
            self._end_call(event)
        elif isinstance(event, TurnStart):
            self._add(names.ROUNDS, 1)
        elif isinstance(event, UsageReport):
            self._used(event)
        elif isinstance(event, AgentStart):
            self._begin_prompt(event)
        elif isinstance(event, AgentEnd):
            self._end_prompt(event)
        elif isinstance(event, (SessionStart, SessionResume)):
            self._session = event.session_id
        elif isinstance(event, SessionClear):
            self._session = ""

    def close(self) -> None:
        """End all open spans: no event will end them any more."""
        for span in (*self._calls.values(), self._agent, self._workflow):
            if span is not None:
                self.end(span, names.CANCELLED)
        self._calls.clear()
        self._agent = self._workflow = None

    async def lead(self, work: Callable[[], Awaitable[TurnResult]]) -> TurnResult:
        """Run a sub-command in a span; the agents that it starts are part of it."""
        self._workflow = span = self.begin("invoke_workflow", _WORKFLOW, "internal", {names.AGENT: _WORKFLOW})
        error = names.CANCELLED
        try:
            result = await work()
            error = names.CANCELLED if result.cancelled else "" if result.error is None else _kind(result.error)
            return result
        except Exception as raised:
            error = _kind(raised)
            raise
        finally:
            self._workflow = None
            self.end(span, error)

    def _begin_prompt(self, event: AgentStart) -> None:
        provider, model = self._model()
        given = {
            names.AGENT: _AGENT,
            names.PROVIDER: names.provider_name(provider),
            names.REQUEST_MODEL: self.content.short(model),
            **self.content.prompt(event.prompt),
        }
        self._agent = self.begin("invoke_agent", _AGENT, "internal", given)

    def _end_prompt(self, event: AgentEnd) -> None:
        span, self._agent = self._agent, None
        if span is None:
            return
        span.attributes |= {names.STOP_REASON: event.stop_reason, **self.content.answer(event.text)}
        error = ""
        if event.stop_reason == "cancelled":
            error = names.CANCELLED
        elif event.stop_reason in ("error", "budget"):
            failed = self._failed()
            error = _kind(failed) if failed is not None else names.OTHER
        self.end(span, error)

    def _begin_call(self, event: ToolExecutionStart) -> None:
        given = {
            names.TOOL_NAME: self.content.short(event.name),
            names.TOOL_CALL: self.content.short(event.call_id),
            names.TOOL_TYPE: "function",
            names.ORIGIN: event.origin,
            **self.content.arguments(event.arguments),
        }
        self._calls[event.call_id] = span = self.begin("execute_tool", event.name, "internal", given)
        _CALL.set(span)

    def _end_call(self, event: ToolExecutionEnd) -> None:
        span = self._calls.pop(event.call_id, None)
        if span is None:
            return
        if _CALL.get() is span:
            _CALL.set(span.parent if span.parent in self._calls.values() else None)
        span.attributes |= self.content.result(event.text)
        error = ""
        if event.is_error:
            error = names.CANCELLED if event.text.startswith(INTERRUPTED) else "tool_error"
        elapsed = self.end(span, error)
        attributes = {names.TOOL_NAME: span.attributes[names.TOOL_NAME], **({names.ERROR: error} if error else {})}
        self.measure(names.TOOL_DURATION, elapsed, attributes)

    def _used(self, event: UsageReport) -> None:
        self._add(names.INPUT_TOKENS, event.usage.input_tokens)
        self._add(names.OUTPUT_TOKENS, event.usage.output_tokens)
        if event.cost is not None and event.provider != OFFLINE:
            self._add(names.COST, event.cost)
            given = {
                names.PROVIDER: names.provider_name(event.provider),
                names.REQUEST_MODEL: self.content.short(event.model),
            }
            self.measure(names.COST, event.cost, given)

    def _add(self, name: str, value: float) -> None:
        if self._agent is not None:
            self._agent.attributes[name] = self._agent.attributes.get(name, 0) + value


def _kind(error: Exception) -> str:
    """The type of an error, in one word."""
    return type(error).__name__
