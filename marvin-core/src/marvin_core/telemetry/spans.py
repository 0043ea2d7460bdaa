"""Spans while they grow and when they are over, and what is measured besides: plain values, without any library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..api.record import Record
from .trace_context import new_id

SpanKind: TypeAlias = Literal["internal", "client"]


class Span(Record):
    """A span that is over. Times are in nanoseconds since 1970, ids are numbers; `parent_id` is 0 at the root.

    `error` is what it failed with, in one word; empty where it did not.
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
    """A span that goes on. `parent` is the one that it is part of, if that is one of this process."""

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
        """End it; returns the seconds that it took. A clock that is set meanwhile makes it no longer or shorter."""
        elapsed = time.monotonic_ns() - self._since
        self.end = self.start + elapsed
        return elapsed / 1e9
