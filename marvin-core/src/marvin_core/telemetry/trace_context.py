"""The position of this process in a trace, as in W3C Trace Context, and whether the trace is sampled."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ..api.record import Record

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01
_BOUND = 1 << 64
_PAST_PARENT = ("always_on", "always_off", "traceidratio")
"""The samplers that ignore the decision of the parent."""


class TraceContext(Record):
    """The parent span by its IDs. `span_id` is 0 if there is no parent."""

    trace_id: int
    span_id: int
    sampled: bool

    def traceparent(self, span_id: int) -> str:
        """The value of TRACEPARENT for children of a span of this trace."""
        return f"00-{self.trace_id:032x}-{span_id:016x}-{_SAMPLED if self.sampled else 0:02x}"


def parsed(text: str) -> TraceContext | None:
    """Parse TRACEPARENT; None if it is invalid, which counts as unset."""
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceContext(trace_id=int(trace_id, 16), span_id=int(span_id, 16), sampled=bool(int(flags, 16) & _SAMPLED))


def context_of(setting: Callable[[str], str | None]) -> TraceContext:
    """The parent of this process's spans: the one in TRACEPARENT, else the root of a new trace.

    Args:
        setting: returns the value of a variable. OTEL_TRACES_SAMPLER decides about sampling, as for every program.
    """
    parent = parsed(setting("TRACEPARENT") or "")
    trace_id = new_id(16) if parent is None else parent.trace_id
    name, argument = setting("OTEL_TRACES_SAMPLER") or "", setting("OTEL_TRACES_SAMPLER_ARG") or ""
    sampled = _is_sampled(name.strip().lower(), argument, trace_id, parent)
    return TraceContext(trace_id=trace_id, span_id=0 if parent is None else parent.span_id, sampled=sampled)


def new_id(length: int) -> int:
    """A random number of `length` bytes; never 0."""
    return int.from_bytes(os.urandom(length), "big") or 1


def _is_sampled(name: str, argument: str, trace_id: int, parent: TraceContext | None) -> bool:
    """Whether the spans are sampled, by the samplers of the specification. Unknown names are ignored."""
    if parent is not None and name not in _PAST_PARENT:
        return parent.sampled
    root = name.removeprefix("parentbased_")
    if root == "always_off":
        return False
    if root == "traceidratio":
        return trace_id % _BOUND < round(_ratio(argument) * _BOUND)
    return True


def _ratio(argument: str) -> float:
    try:
        ratio = float(argument)
    except ValueError:
        return 1.0
    return ratio if 0 <= ratio <= 1 else 1.0
