"""The agents of the pipeline in a trace."""

from __future__ import annotations

import pytest

from tests.e2e.support_e2e import Marvin
from tests.support.collector import Collector

pytestmark = pytest.mark.slow


def test_the_agents_of_a_pipeline_are_part_of_its_span(marvin: Marvin) -> None:
    with Collector() as collector:
        marvin.config(f"telemetry: {{enabled: on, endpoint: '{collector.url}'}}\n")
        done = marvin.run(
            *("--non-interactive", "--design-first", "--working-dir=.", "--until=1a"),
            *("--prompt", "Build adder, a program that adds two numbers."),
        )
    assert done.code == 0, done.err.decode() + done.text
    run, agents = collector.span("invoke_workflow pipeline"), collector.named("invoke_agent")
    assert run.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert (run.parent_id, run.failed) == ("", False)
    assert agents
    assert {(span.parent_id, span.trace_id) for span in agents} == {(run.id, run.trace_id)}
