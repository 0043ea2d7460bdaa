"""Open and finished spans, and measurements: plain values, independent of any library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..api.record import Record
from .trace_context import new_id

SpanKind: TypeAlias = Literal["internal", "client"]


class Span(Record):
    """A finished span. Times are in nanoseconds since 1970, IDs are numbers; `parent_id` is 0 at the root.

    `error` is the type of its error in one word; empty on success.
    """

    name: str
    kind: SpanKind
    trace_id: int
    span_id: int
    parent_id: int
    start: int
    end: int
    attributes: Mapping[str, Any]
    error: str = ""


class Measurement(Record):
    """A value for the metric of this name."""

    metric: str
    value: float
    attributes: Mapping[str, Any]


class OpenSpan:
    """An open span. `parent` is its parent span, if that belongs to this process."""

    def __init__(self, name: str, kind: SpanKind, parent: OpenSpan | None, attributes: dict[str, Any]) -> None:
        self.name = name
        self.kind: SpanKind = kind
        self.parent = parent
        self.attributes = attributes
        self.id = new_id(8)
        self.start = time.time_ns()
        self._since = time.monotonic_ns()
        self.end: int | None = None

    def finish(self) -> float:
        """End the span; returns its duration in seconds, which changes of the system clock do not affect."""
        elapsed = time.monotonic_ns() - self._since
        self.end = self.start + elapsed
        return elapsed / 1e9
