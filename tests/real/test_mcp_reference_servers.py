"""The reference servers of the Model Context Protocol, called by a scripted model through the whole program."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin
from tests.real.components import REAL, required

pytestmark = pytest.mark.real

NPM = REAL / "npm" / "node_modules" / ".bin"


def of_python(name: str, *arguments: str) -> Mapping[str, Any]:
    """The setup of a server that is a Python module."""
    path = {"PYTHONPATH": str(REAL / "mcp-servers")}
    return {"command": sys.executable, "args": ["-m", f"mcp_server_{name}", *arguments], "env": path}


SERVERS: Mapping[str, Mapping[str, Any]] = {
    "everything": {"command": str(NPM / "mcp-server-everything")},
    "filesystem": {"command": str(NPM / "mcp-server-filesystem"), "args": ["."]},
    "memory": {"command": str(NPM / "mcp-server-memory"), "env": {"MEMORY_FILE_PATH": "/tmp/memory.json"}},
    "git": of_python("git"),
    "time": of_python("time"),
    # Commands in the sandbox do not reach this machine's own loopback.
    "fetch": {**of_python("fetch", "--allow-private-ips", "--ignore-robots-txt"), "sandbox": False},
}
CALLS = [
    ("everything", "echo", {"message": "hi"}, "Echo: hi"),
    ("everything", "get-sum", {"a": 20, "b": 22}, "The sum of 20 and 22 is 42."),
    ("everything", "get-structured-content", {"location": "Chicago"}, "temperature"),
    ("everything", "trigger-long-running-operation", {"duration": 1, "steps": 2}, "completed"),
    ("filesystem", "read_text_file", {"path": "a.txt"}, "hello"),
    ("filesystem", "write_file", {"path": "../out.txt", "content": "x"}, "Access denied"),
    ("filesystem", "edit_file", {"path": "a.txt", "edits": "none"}, "was not run, because its arguments are wrong"),
    ("memory", "read_graph", {}, "entities"),
    ("git", "git_log", {"repo_path": "."}, "The first commit"),
    (
        "time",
        "convert_time",
        {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "T",
    ),
]


@pytest.fixture(autouse=True)
def _installed() -> None:
    required(NPM / "mcp-server-everything", REAL / "mcp-servers" / "mcp_server_git")


@pytest.fixture
def project(marvin: Marvin) -> Path:
    """A repository with a file."""
    folder = marvin.project
    (folder / "a.txt").write_text("hello\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "The first commit"]):
        subprocess.run([shutil.which("git") or "git", *words], cwd=folder, check=True)
    return folder


def answered(marvin: Marvin, server: ModelServer, name: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """What the model is told of a call in its first prompt with a server that nobody has asked before."""
    marvin.config(json.dumps({"mcp_servers": {name: SERVERS[name]}}))
    marvin.env |= {"OPENAI_COMPAT_URL": server.url, "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b"}
    server.script(calls((f"{name}__{tool}", arguments)), text("Done."))
    result = marvin.run("--non-interactive", "--prompt", "go", "--tool-search", "off")
    assert result.code == 0, result.said
    assert f"{name}__{tool}" in json.dumps(server.requests[0].body["tools"])
    return str(server.requests[-1].body["messages"][-1]["content"])


@pytest.mark.parametrize(("name", "tool", "arguments", "expected"), CALLS)
def test_a_model_calls_a_reference_server(
    marvin: Marvin,
    marvin_model_server: ModelServer,
    project: Path,
    name: str,
    tool: str,
    arguments: Mapping[str, Any],
    expected: str,
) -> None:
    assert expected in answered(marvin, marvin_model_server, name, tool, arguments)
    assert not (project.parent / "out.txt").exists()


def test_an_image_of_a_server_reaches_the_model_as_one(
    marvin: Marvin, marvin_model_server: ModelServer, project: Path
) -> None:
    told = answered(marvin, marvin_model_server, "everything", "get-tiny-image", {})
    assert "MCP logo" in told or "image" in json.dumps(marvin_model_server.requests[-1].body)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The address of a page."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "p.html").write_text("<html><body><h1>A heading</h1><p>Words.</p></body></html>")

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "web"))

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/p.html"
        server.shutdown()


def test_a_page_is_fetched_by_a_server(
    marvin: Marvin, marvin_model_server: ModelServer, project: Path, page: str
) -> None:
    assert "Words." in answered(marvin, marvin_model_server, "fetch", "fetch", {"url": page})
