"""Exports spans and metrics to a collector, in a separate thread. Only this module imports OpenTelemetry."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.record import Record
from ..util.failures import told
from ..version import __version__
from . import names
from .spans import Measurement, Span

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter

_WAITING = 1_024
"""The maximum number of queued spans and measurements; more are dropped, for instance if a collector hangs."""
_TOGETHER = 256
_IMPORTS = 3.0
"""The timeout for imports at the end of a run, in seconds."""
_PAUSE = 1.0
"""The seconds for which spans are collected into a batch."""
_LIBRARY = "opentelemetry"
_SENDERS = ("opentelemetry.exporter", "opentelemetry.sdk.metrics")
"""The logger of export failures; the other loggers may repeat values of variables."""
_SCOPE = "marvin"
_LARGE = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_HISTOGRAMS: Mapping[str, tuple[str, str, Sequence[float]]] = {
    names.USAGE: ("{token}", "Tokens that a request to a model used", _LARGE),
    names.DURATION: ("s", "How long a request to a model took", _SECONDS),
    names.TOOL_DURATION: ("s", "How long a call of a tool took", _SECONDS),
}
"""Unit, description and bucket boundaries, which OpenTelemetry's conventions specify for their own metrics."""


class Destination(Record):
    """The target. With an empty `endpoint` the variables of OpenTelemetry decide."""

    endpoint: str
    ca_file: str
    shown: str
    """The address as shown to the user."""


class Exporter:
    """The `Sink` of a run. A thread exports the data; only `close` waits for it.

    Args:
        warn: called once if the collector cannot be reached.
    """

    def __init__(self, destination: Destination, warn: Callable[[str], None]) -> None:
        self._destination = destination
        self._warn = warn
        self._items: queue.Queue[Span | Measurement | None] = queue.Queue(_WAITING)
        self._told = False
        self._closing = False
        self._ready, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def prepare(self) -> None:
        """Import the exporter in advance, for instance while a model thinks."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
            self._thread.start()

    def put(self, item: Span | Measurement) -> None:
        """Queue data for export; dropped if the queue is full."""
        self.prepare()
        try:
            self._items.put_nowait(item)
        except queue.Full:
            self._tell("it accepts data more slowly than the data arises")

    def close(self, patience: float) -> None:
        """Export the rest, within `patience` seconds. Blocks; unsent data is dropped."""
        if self._thread is None:
            return
        self._closing = True
        try:
            self._items.put_nowait(None)
        except queue.Full:
            self._over.set()
        self._ready.wait(_IMPORTS)  # imports do not count as time of the collector
        if not self._over.wait(patience):
            self._tell(f"it did not answer within {patience:g} s")
        _FAILURES.leave(self)

    def failed(self, reason: str) -> None:
        """Record a failed export. At the end there is no retry."""
        self._tell(reason)
        if self._closing:
            self._over.set()

    def _tell(self, reason: str) -> None:
        if not self._told:
            self._told = True
            self._warn(
                f"Traces and metrics do not reach the collector at {self._destination.shown}: {reason}. "
                "The session continues without them."
            )

    def _run(self) -> None:
        try:
            _FAILURES.tell(self)
            self._send_all()
        except Exception as error:  # a library may raise anything; the run continues
            self.failed(told(error))
        finally:
            _FAILURES.leave(self)
            self._ready.set()
            self._over.set()

    def _send_all(self) -> None:
        resource = _resource()
        spans, meters = _span_exporter(self._destination), _meter_provider(self._destination, resource)
        metrics = _Metrics(meters)
        self._ready.set()
        batch: list[Span] = []
        ending, due = False, 0.0
        while not ending:
            try:
                item = self._items.get(timeout=max(0.0, due - time.monotonic()) if batch else None)
            except queue.Empty:
                self._send(spans, batch, resource)
                batch = []
                continue
            if item is None:
                ending = True
            elif isinstance(item, Measurement):
                metrics.record(item)
            else:
                due = due if batch else time.monotonic() + _PAUSE
                batch.append(item)
            if len(batch) >= _TOGETHER:
                self._send(spans, batch, resource)
                batch = []
        last = threading.Thread(target=meters.shutdown, name="telemetry-metrics", daemon=True)
        last.start()
        if batch:
            self._send(spans, batch, resource)
        last.join()
        spans.shutdown()

    def _send(self, exporter: SpanExporter, batch: Sequence[Span], resource: Resource) -> None:
        exporter.export([_readable(span, resource) for span in batch])


class _Failures(logging.Handler):
    """Receives the log messages of OpenTelemetry, which are its only report of failed exports.

    All runs of a process share it, for example those of an editor. A log message names no run, so every run gets it.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._runs: set[Exporter] = set()

    def tell(self, run: Exporter) -> None:
        """Report failures to a run from now on."""
        self._runs.add(run)
        logger = logging.getLogger(_LIBRARY)
        logger.addHandler(self)
        logger.propagate = False

    def leave(self, run: Exporter) -> None:
        """Stop reporting failures to a run."""
        self._runs.discard(run)

    def emit(self, record: logging.LogRecord) -> None:
        """Report a log message to all runs."""
        if record.name.startswith(_SENDERS):
            for run in tuple(self._runs):
                run.failed(_reason(record))


_FAILURES = _Failures()


def _reason(record: logging.LogRecord) -> str:
    """Why an export failed, in one line: without the address, which may hold a password."""
    causes = [one for one in (record.args if isinstance(record.args, tuple) else ()) if isinstance(one, Exception)]
    if causes:
        return type(causes[0]).__name__
    return " ".join(record.getMessage().split())[:200].rstrip(".")


class _Metrics:
    """The instruments by their names."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(_SCOPE, __version__)
        self._histograms = {
            name: meter.create_histogram(name, unit, meaning, explicit_bucket_boundaries_advisory=list(boundaries))
            for name, (unit, meaning, boundaries) in _HISTOGRAMS.items()
        }
        self._cost = meter.create_counter(names.COST, "USD", "What requests to models cost, as far as that is known")

    def record(self, item: Measurement) -> None:
        """Add a value."""
        if item.metric == names.COST:
            self._cost.add(item.value, item.attributes)
        else:
            self._histograms[item.metric].record(item.value, item.attributes)


def _resource() -> Resource:
    """The resource: the service is Marvin, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES set another one."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {"service.name": "marvin", "service.version": __version__}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


def _span_exporter(destination: Destination) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(**_given(destination, "v1/traces"))


def _meter_provider(destination: Destination, resource: Resource) -> MeterProvider:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(**_given(destination, "v1/metrics")))
    return MeterProvider([reader], resource=resource, shutdown_on_exit=False)


def _given(destination: Destination, path: str) -> dict[str, Any]:
    endpoint = f"{destination.endpoint.rstrip('/')}/{path}" if destination.endpoint else None
    return {"endpoint": endpoint, "certificate_file": destination.ca_file or None}


def _readable(span: Span, resource: Resource) -> Any:
    """A span as an object of the library."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(span_id: int) -> SpanContext:
        return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    return ReadableSpan(
        name=span.name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        kind=SpanKind.CLIENT if span.kind == "client" else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=span.start,
        end_time=span.end,
        instrumentation_scope=InstrumentationScope(_SCOPE, __version__),
    )
