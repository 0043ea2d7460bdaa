"""Marvin and the official programs of the Model Context Protocol: its conformance suite, and its inspector.

`make conformance` runs all of the suite, which takes minutes; here are those scenarios that stand for the others.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.run import SUITE, node, run_client, run_server
from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.real.components import REAL, required

pytestmark = pytest.mark.real

INSPECTOR = REAL / "npm" / "node_modules" / ".bin" / "mcp-inspector"
CLIENT = (
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/scope-step-up",
    "auth/pre-registration",
)
SERVER = (
    "server-initialize",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


def test_as_a_client_marvin_conforms() -> None:
    required(SUITE)
    assert [each for each in run_client(CLIENT) if not each.passed] == []


def test_as_a_server_marvin_conforms() -> None:
    required(SUITE)
    assert [each for each in run_server(SERVER) if not each.passed] == []


def inspected(marvin: Marvin, *words: str) -> Any:
    """What the inspector's command line prints of `marvin mcp serve`."""
    folder = str(marvin.project)
    catalog = marvin.home / "catalog.json"
    server = {
        "command": PROGRAM[0],
        "args": [*PROGRAM[1:], "--working-dir", folder, "mcp", "serve", "--tools", "coding"],
    }
    patient = {"connectionTimeout": 100_000}  # milliseconds: a busy machine takes longer than the usual ones
    catalog.write_text(json.dumps({"mcpServers": {"marvin": {**server, "env": marvin.env, **patient}}}))
    env: Mapping[str, str] = {**marvin.env, "PATH": f"{os.path.dirname(node())}{os.pathsep}{os.environ['PATH']}"}
    command = [node(), str(INSPECTOR.resolve()), "--cli", "--config", str(catalog), "--server", "marvin", *words]
    done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.stdout, done.stderr.decode()
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls_the_tools(marvin: Marvin) -> None:
    required(INSPECTOR)
    listed = inspected(marvin, "--method", "tools/list")
    assert {"read_file", "run_command"} <= {tool["name"] for tool in listed["tools"]}
    read = inspected(marvin, "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=notes.txt")
    assert "heron" in read["content"][0]["text"]


def test_what_needs_a_yes_is_not_done_for_the_inspector(marvin: Marvin) -> None:
    required(INSPECTOR)
    words = ("--tool-arg", "path=new.txt", "--tool-arg", "content=x")
    refused = inspected(marvin, "--method", "tools/call", "--tool-name", "create_file", *words)
    assert refused["isError"]
    assert not (marvin.project / "new.txt").exists()
