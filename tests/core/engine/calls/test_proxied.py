"""Programs of tools that make their own requests reach what tools reach, and no address of this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from marvin_core import ToolCall, ToolContext, ToolOutput, tool
from marvin_core.testing import LoopbackServer, ToolRunner, document
from marvin_core.testing.answers import Answer
from marvin_core.testing.model_server import RecordedRequest

ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


class Server(LoopbackServer):
    """Answers everything with one word."""

    def answer_to(self, request: RecordedRequest) -> Answer:
        return document({"it is": "reached"})


@tool(access=["net", "exec"])
async def ask_by_program(url: str, *, context: ToolContext) -> str:
    """Ask by a program."""
    result = await context.processes.run([sys.executable, "-c", ASK, url], env=await context.proxied())
    return result.output.decode()


def test_a_program_does_not_reach_this_machine(marvin_home: Path, marvin_workdir: Path) -> None:
    server = Server()
    try:
        with ToolRunner(marvin_home, marvin_workdir) as tools:
            for host in ("127.0.0.1", "localhost", "127.1"):
                text = tools.call(ask_by_program, url=f"http://{host}:{server.port}/").text
                assert text.startswith("403 "), text
                assert "is an address of this machine" in text
    finally:
        server.close()


def test_a_program_reaches_what_the_user_allows(marvin_home: Path, marvin_workdir: Path) -> None:
    config = marvin_home / ".config/marvin/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("allow_addresses: [127.0.0.1]\n")
    server = Server()
    try:
        with ToolRunner(marvin_home, marvin_workdir) as tools:
            for _ in range(2):
                assert "reached" in tools.call(ask_by_program, url=f"http://127.0.0.1:{server.port}/").text
    finally:
        server.close()


@tool(access=["net"])
async def ask_it(url: str, *, context: ToolContext) -> str:
    """Ask an address."""
    await context.may_reach(url)
    return (await context.http.get(url)).text


def by_model(tools: ToolRunner, url: str) -> ToolOutput:
    """What a model's call gives."""

    async def called() -> ToolOutput:
        session = await tools._started()
        tools._know(session.parts, ask_it)
        call = ToolCall(id="call_1", name="ask_it", arguments=json.dumps({"url": url}))
        return await session.dispatcher.call(call, "model")

    return tools._loop.run(called())


@pytest.mark.parametrize(("answers", "reached"), [(["yes"], True), (["no", "no"], False)])
def test_an_address_that_a_model_names_is_asked_about_once(
    marvin_home: Path, marvin_workdir: Path, answers: list[str], reached: bool
) -> None:
    server = Server()
    url = f"http://127.0.0.1:{server.port}/"
    try:
        with ToolRunner(marvin_home, marvin_workdir, answers=answers) as tools:
            for _ in range(2):
                output = by_model(tools, url)
                assert output.is_error is not reached
                assert ("reached" if reached else "is an address of this machine") in output.text
            assert len(tools.questions) == len(answers)
            assert url in tools.questions[0][0]
    finally:
        server.close()


def test_where_nobody_is_there_it_is_refused_and_what_a_person_typed_is_not(
    marvin_home: Path, marvin_workdir: Path
) -> None:
    server = Server()
    url = f"http://127.0.0.1:{server.port}/"
    try:
        with ToolRunner(marvin_home, marvin_workdir, interactive=False) as tools:
            assert "is an address of this machine" in by_model(tools, url).text
            assert "reached" in tools.call(ask_it, url=url).text
            assert "is an address of this machine" in by_model(tools, "http://10.0.0.1/").text
            for nothing in ("", "file:///etc/passwd", "http://[", "http://a:99999/"):
                assert by_model(tools, nothing).is_error
    finally:
        server.close()
