"""A collector of OpenTelemetry on loopback, which reads what it is sent with the messages of the protocol itself."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from marvin_core.testing import RecordedRequest, answers
from marvin_core.testing.answers import Answer
from marvin_core.testing.model_server import LoopbackServer

TRACES, METRICS = "/v1/traces", "/v1/metrics"


class CollectedSpan:
    """A span as it came in: ids as hexadecimal text, attributes as plain values."""

    def __init__(self, span: WireSpan, resource: Mapping[str, Any]) -> None:
        self.name = span.name
        self.kind = WireSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower()
        self.trace_id, self.id, self.parent_id = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = _plain(span.attributes)
        self.failed = span.status.code == Status.STATUS_CODE_ERROR
        self.said = span.status.message
        self.resource = resource

    def __repr__(self) -> str:
        return f"{self.name} {self.attributes}"


class Point:
    """A value of a metric: its sum, how many values are in it, and its attributes."""

    def __init__(self, attributes: Mapping[str, Any], total: float, count: int) -> None:
        self.attributes, self.total, self.count = attributes, total, count


class Collector(LoopbackServer):
    """Takes traces and metrics, once `open` is set. `status` is what it answers."""

    def __init__(self, *, hangs: bool = False, status: int = 200) -> None:
        self.open = threading.Event()
        if not hangs:
            self.open.set()
        self.status = status
        super().__init__()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def answer_to(self, request: RecordedRequest) -> Answer:
        """Nothing but that it came, or that it did not."""
        self.hold(self.open)
        return answers.error(self.status, "no") if self.status != 200 else answers.raw(b"")

    @property
    def spans(self) -> list[CollectedSpan]:
        """All spans, the first begun first."""
        found = []
        for request in self.sent(TRACES):
            message = ExportTraceServiceRequest.FromString(content(request))
            for group in message.resource_spans:
                resource = _plain(group.resource.attributes)
                found += [CollectedSpan(span, resource) for scope in group.scope_spans for span in scope.spans]
        return sorted(found, key=lambda span: span.start)

    def span(self, name: str) -> CollectedSpan:
        """The only span of this name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def named(self, beginning: str) -> list[CollectedSpan]:
        """The spans whose names begin so."""
        return [span for span in self.spans if span.name.startswith(beginning)]

    def points(self, metric: str) -> list[Point]:
        """The values of a metric, of all that was sent."""
        found: list[Point] = []
        for request in self.sent(METRICS):
            message = ExportMetricsServiceRequest.FromString(content(request))
            scopes = [scope for group in message.resource_metrics for scope in group.scope_metrics]
            for one in (each for scope in scopes for each in scope.metrics if each.name == metric):
                if one.HasField("histogram"):
                    found += [Point(_plain(at.attributes), at.sum, at.count) for at in one.histogram.data_points]
                else:
                    found += [Point(_plain(at.attributes), at.as_double, 1) for at in one.sum.data_points]
        return found

    def sent(self, path: str) -> list[RecordedRequest]:
        """The requests to a path."""
        return [request for request in self.requests if request.path == path]

    def bytes(self) -> bytes:
        """All that it was sent: what must not be in it, is not."""
        return b"\n".join(map(content, self.requests))

    def tree(self) -> list[str]:
        """The names of the spans, each below what it is part of."""
        spans = self.spans
        ids = {span.id for span in spans}

        def below(parent: str, depth: int) -> list[str]:
            found = []
            for span in spans:
                if span.parent_id == parent or (not depth and span.parent_id not in ids):
                    found += ["  " * depth + span.name, *below(span.id, depth + 1)]
            return found

        return below("", 0)

    def wait_for_spans(self, count: int, seconds: float = 10.0) -> None:
        """Wait until so many spans have come."""
        end = time.monotonic() + seconds
        while len(self.spans) < count and time.monotonic() < end:
            time.sleep(0.02)
        assert len(self.spans) >= count, self.tree()


def content(request: RecordedRequest) -> bytes:
    """What a request holds."""
    return gzip.decompress(request.content) if request.headers.get("content-encoding") == "gzip" else request.content


def _plain(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, str(kind))
