"""Sending spans, by runs that share a process."""

from __future__ import annotations

import logging

import pytest

from marvin_core.telemetry.exporting import Destination, Exporter
from marvin_core.telemetry.spans import Span

NOBODY = Destination(endpoint="http://127.0.0.1:1", ca_file="", shown="http://127.0.0.1:1")
SPAN = Span(name="x", kind="internal", trace_id=1, span_id=2, parent_id=0, start=1, end=2, attributes={})


def test_a_run_that_is_over_hears_nothing_of_the_failures_of_the_next(capfd: pytest.CaptureFixture[str]) -> None:
    quiet: list[str] = []
    idle = Exporter(NOBODY, quiet.append)
    idle.prepare()
    idle.close(20)
    for _ in range(2):
        told: list[str] = []
        failing = Exporter(NOBODY, told.append)
        failing.put(SPAN)
        failing.close(20)
        assert len(told) == 1
        assert "do not reach the collector" in told[0]
    assert quiet == []
    assert len(logging.getLogger("opentelemetry").handlers) == 1
    assert capfd.readouterr().err == ""
