"""Where a process stands in a trace, and which traces are kept."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import sampling
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from marvin_core.telemetry.trace_context import context_of, parsed

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLERS = {
    "": "parentbased_always_on",
    "something else": "parentbased_always_on",
    **{name: name for name in ("always_on", "always_off", "traceidratio")},
    **{f"parentbased_{name}": f"parentbased_{name}" for name in ("always_on", "always_off", "traceidratio")},
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        "00-" + "a" * 10_000,
    ],
)
def test_what_is_no_traceparent_counts_as_none(text: str) -> None:
    assert parsed(text) is None
    given: dict[str, str | None] = {"TRACEPARENT": text}
    begun = context_of(given.get)
    assert (begun.span_id, begun.sampled) == (0, True)
    assert begun.trace_id != context_of(lambda name: None).trace_id


@pytest.mark.parametrize(
    "text", [f"00-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-09-what comes later", f" 00-{TRACE}-{SPAN}-01\n"]
)
def test_a_traceparent_is_read_and_written(text: str) -> None:
    found = parsed(text)
    assert found is not None
    assert (found.trace_id, found.span_id, found.sampled) == (int(TRACE, 16), int(SPAN, 16), True)
    assert found.traceparent(1) == f"00-{TRACE}-{1:016x}-01"


@pytest.mark.parametrize("argument", ["", "0", "0.3", "1", "2", "much"])
@pytest.mark.parametrize("parent", ["", "-00", "-01"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_trace_is_kept_where_the_library_would_keep_it(name: str, parent: str, argument: str) -> None:
    kind: Any = sampling._KNOWN_SAMPLERS[SAMPLERS[name]]
    try:
        ratio = float(argument)
    except ValueError:
        ratio = 1.0
    ratio = ratio if 0 <= ratio <= 1 else 1.0
    known = kind(ratio) if isinstance(kind, type) or "ratio" in SAMPLERS[name] else kind
    for number in range(1, 60):
        trace = number * 0x0492492492492492 % 2**64 | 1 << 100
        given = {"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument}
        above = None
        if parent:
            given["TRACEPARENT"] = f"00-{trace:032x}-{SPAN}{parent}"
            flags = TraceFlags(int(parent[1:], 16))
            above = set_span_in_context(NonRecordingSpan(SpanContext(trace, 1, is_remote=True, trace_flags=flags)))
        context = context_of(given.get)
        expected = known.should_sample(above, context.trace_id, "span").decision.is_sampled()
        assert context.sampled == expected, (name, parent, argument, trace)
