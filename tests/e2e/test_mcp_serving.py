"""Marvin's tools in other programs: served by MCP to the client of the official SDK, under the user's permissions."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult

from tests.e2e.support_e2e import PROGRAM, Marvin

pytestmark = pytest.mark.slow

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Person:
    """Behind the client: says the same to every question, and remembers them."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.questions: list[str] = []
        self.progress: list[str] = []

    async def elicit(self, context: Any, params: Any) -> ElicitResult:
        """Answer a question."""
        self.questions.append(params.message)
        choices = params.requested_schema["properties"]["answer"]["enum"]
        if self.answer not in choices:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"answer": self.answer})

    async def told(self, progress: float, total: float | None, message: str | None) -> None:
        """Take how far a call is."""
        self.progress.append(message or "")


def called(
    marvin: Marvin, calls: Sequence[tuple[str, dict[str, Any]]], person: Person | None = None
) -> tuple[list[str], list[CallToolResult]]:
    """The names of the tools, and what some calls gave."""
    words = [*PROGRAM[1:], "--working-dir", str(marvin.project), "mcp", "serve", "--tools", "coding"]
    server = StdioServerParameters(command=PROGRAM[0], args=words, env=marvin.env, cwd=marvin.project)
    elicit = None if person is None else person.elicit
    told = None if person is None else person.told

    async def talk() -> tuple[list[str], list[CallToolResult]]:
        async with Client(server, mode="legacy", elicitation_callback=elicit) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, [await client.call_tool(*one, progress_callback=told) for one in calls]

    return asyncio.run(talk())


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def test_tools_are_listed_and_called(marvin: Marvin) -> None:
    (marvin.project / "dot.png").write_bytes(PNG)
    (marvin.project / "a.txt").write_text("hello\n")
    names, (read, picture, wrong, missing) = called(
        marvin,
        [("read_file", {"path": "a.txt"}), ("read_file", {"path": "dot.png"}), ("read_file", {}), ("no_such", {})],
    )
    assert {"read_file", "run_command", "git_status"} <= set(names)
    assert "tool_search" not in names
    assert "hello" in text_of(read)
    assert [block.type for block in picture.content if block.type == "image"] == ["image"]
    assert wrong.is_error
    assert "path: missing" in text_of(wrong)
    assert missing.is_error


def test_what_the_permissions_ask_about_is_asked_of_the_person_behind_the_client(marvin: Marvin) -> None:
    write = ("create_file", {"path": "new.txt", "content": "x"})
    no = Person("no")
    _, (refused,) = called(marvin, [write], no)
    assert refused.is_error
    assert "new.txt" in no.questions[0]
    assert not (marvin.project / "new.txt").exists()
    yes = Person("yes")
    _, (done,) = called(marvin, [write], yes)
    assert not done.is_error, (text_of(done), yes.questions)
    assert (marvin.project / "new.txt").read_text() == "x"


def test_where_the_client_cannot_ask_nothing_is_done(marvin: Marvin) -> None:
    _, (refused,) = called(marvin, [("create_file", {"path": "new.txt", "content": "x"})])
    assert refused.is_error
    assert "needs approval" in text_of(refused)
    assert not (marvin.project / "new.txt").exists()


def test_rules_hold(marvin: Marvin) -> None:
    marvin.config(json.dumps({"permissions": {"deny": ["run_command(git *)"], "allow": ["run_command"]}}))
    person = Person("yes")
    _, (denied, ran) = called(
        marvin, [("run_command", {"command": "git status"}), ("run_command", {"command": "echo one; sleep 1"})], person
    )
    assert denied.is_error
    assert "one" in text_of(ran)
    assert person.questions == []
    assert any("one" in line for line in person.progress)


def test_over_http_only_the_token_opens(marvin: Marvin) -> None:
    (marvin.project / "a.txt").write_text("hello\n")
    running = marvin.start("mcp", "serve", "--http", "0", "--tools", "coding", env={"MARVIN_MCP_TOKEN": "of-this-test"})
    running.until(lambda: b"Serving on" in running.err, "the server to be ready")
    (address,) = re.findall(r"http://\S+/mcp", running.err.decode())
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    assert httpx.post(address, json=message, headers=headers).status_code == 401
    wrong = {**headers, "authorization": "Bearer of-another"}
    assert httpx.post(address, json=message, headers=wrong).status_code == 401
    marvin.env["MARVIN_MCP_TOKEN"] = "of-this-test"
    marvin.config(
        json.dumps(
            {"mcp_servers": {"own": {"url": address, "headers": {"Authorization": "Bearer ${MARVIN_MCP_TOKEN}"}}}}
        )
    )
    tried = marvin.run("mcp", "test", "own")
    assert tried.code == 0, tried.said
    assert "own__read_file" in tried.text
    read = marvin.run("tools", "call", "own__read_file", "path=a.txt")
    assert "hello" in read.text
    running.send(signal.SIGINT)
    running.finish()
    assert "Traceback" not in running.err.decode()


def test_a_server_that_stays_collects_its_garbage(marvin: Marvin) -> None:
    tools = marvin.home / ".config/marvin/tools"
    tools.mkdir(parents=True)
    (tools / "collector.py").write_text(
        "import gc\n\nfrom marvin_core import tool\n\n\n"
        '@tool(access=["read"], sets=["coding"])\n'
        'def collects() -> str:\n    """Say whether garbage is collected."""\n    return str(gc.isenabled())\n'
    )
    _, (answer,) = called(marvin, [("collects", {})])
    assert text_of(answer) == "True"
