"""`marvin mcp serve` used by opencode, another agent, whose client is that of the TypeScript library."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from marvin_core.testing import ModelServer, answers
from tests.e2e.support_e2e import PROGRAM, Marvin, conversation
from tests.real.components import REAL, required

pytestmark = pytest.mark.real

OPENCODE = REAL / "npm" / "node_modules" / ".bin" / "opencode"
TOKEN = "of-this-test"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@contextmanager
def by_program(marvin: Marvin) -> Iterator[dict[str, Any]]:
    """The entry of a server that opencode starts."""
    words = ["--working-dir", str(marvin.project), "mcp", "serve", "--tools", "coding"]
    yield {"type": "local", "command": [*PROGRAM, *words], "environment": marvin.env}


@contextmanager
def by_http(marvin: Marvin) -> Iterator[dict[str, Any]]:
    """The entry of a server that runs already."""
    running = marvin.start("mcp", "serve", "--http", "0", "--tools", "coding", env={"MARVIN_MCP_TOKEN": TOKEN})
    running.until(lambda: b"Serving on" in running.err, "the server to be ready")
    (address,) = re.findall(r"http://\S+/mcp", running.err.decode())
    yield {"type": "remote", "url": address, "headers": {"Authorization": f"Bearer {TOKEN}"}, "oauth": False}
    running.send(signal.SIGINT)
    running.finish()


@pytest.mark.parametrize("reached", [by_program, by_http])
def test_another_agent_uses_the_tools(marvin: Marvin, marvin_model_server: ModelServer, reached: Any) -> None:
    required(OPENCODE)
    (marvin.project / "dot.png").write_bytes(base64.b64decode(PNG))
    marvin.config(json.dumps({"permissions": {"allow": ["run_command(seq *)"]}}))
    marvin_model_server.script(
        answers.calls(("marvin_read_file", {"path": "notes.txt"})),
        answers.calls(("marvin_read_file", {"path": "dot.png"})),
        answers.calls(("marvin_run_command", {"command": "seq 3"})),
        answers.calls(("marvin_create_file", {"path": "new.txt", "content": "x"})),
        answers.text("The word is heron."),
    )
    with reached(marvin) as entry:
        said = asked(marvin, marvin_model_server, entry)
    assert "The word is heron." in said
    asks = [request.body for request in marvin_model_server.requests if request.method == "POST"]
    assert {"marvin_read_file", "marvin_run_command"} <= {tool["function"]["name"] for tool in asks[0]["tools"]}
    _, word, picture, counted, refused = (str(conversation(marvin_model_server, number)) for number in range(5))
    assert "heron" in word
    assert PNG in picture  # the other agent got an image
    assert "1\\n2\\n3" in counted
    assert "needs approval" in refused  # nobody can be asked there
    assert not (marvin.project / "new.txt").exists()


def asked(marvin: Marvin, server: ModelServer, entry: dict[str, Any]) -> str:
    """What opencode prints when it is asked something."""
    models = {"scripted": {"name": "scripted", "attachment": True, "modalities": {"input": ["text", "image"]}}}
    service = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": server.url, "apiKey": "none"},
        "models": models,
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"trial": service},
        "mcp": {"marvin": {**entry, "timeout": 60_000}},
    }
    (marvin.project / "opencode.json").write_text(json.dumps(config))
    off = dict.fromkeys(("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"), "1")
    done = subprocess.run(
        [OPENCODE, "run", "--model", "trial/scripted", "--title", "a trial", "Which word?"],
        env={**marvin.env, **{f"OPENCODE_DISABLE_{name}": value for name, value in off.items()}},
        cwd=marvin.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
