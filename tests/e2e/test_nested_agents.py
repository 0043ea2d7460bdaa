"""Agents that start agents: six may be nested, and each is bound as the one above it."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin

STARTING = shlex.join([sys.executable, "-P", "-m", "marvin_core", "--non-interactive", "--prompt", "Go deeper."])


@pytest.mark.slow
def test_six_are_nested_and_the_seventh_does_not_start(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I7: from depth 0 to depth 5, each started by a command of the one above, under one ceiling and one log."""
    command = {"command": f"echo depth $MARVIN_DEPTH $MARVIN_MAX_COST; {STARTING} 2>&1"}
    marvin_model_server.script(*([calls(("run_command", {**command, "timeout": 600}))] * 6), *([text("Back.")] * 6))
    # In the sandbox of a command, a Marvin finds neither its configuration nor the ledger.
    key = {"OPENAI_COMPAT_API_KEY": "k", "MARVIN_SANDBOX": "off"}
    marvin.config("child_env: [OPENAI_COMPAT_API_KEY]\nprices: {qwen/qwen3-32b: {input: 1, output: 1}}\n")
    log = marvin.project / "logs" / "calls.jsonl"
    done = marvin.ask("--max-cost", "5", env={**key, "MARVIN_SUBAGENT_LOG": "logs/calls.jsonl"})
    assert done.code == 0, done.said
    posts = [request for request in marvin_model_server.requests if request.method == "POST"]
    assert len(posts) == 12
    results = [json.loads(line)["result"] for line in log.read_text().splitlines()]
    assert len(results) == 6
    assert [result.split()[1] for result in results] == ["6", "5", "4", "3", "2", "1"], "the innermost ends first"
    assert "Agents may be nested 5 levels deep; this one would be at level 6" in results[0]
    assert all(result.split()[2] == "5.000000" for result in results)
