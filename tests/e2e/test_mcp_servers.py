"""Servers with tools (MCP) through the whole program: added, called by a model, and gone with it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin, wait_until
from tests.support.money import usage

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mcp-servers.md"


def command(marvin: Marvin, way: str, *more: str) -> list[str]:
    """What starts a server that behaves in a way; it lies where the sandbox shows it."""
    shutil.copy(SERVER, marvin.project / "server.py")
    return [sys.executable, "-S", "-P", str(marvin.project / "server.py"), way, *more]


def entry(words: list[str]) -> dict[str, object]:
    """The setup of a server that this starts."""
    return {"command": words[0], "args": words[1:]}


def test_a_server_is_added_listed_and_removed(marvin: Marvin) -> None:
    marvin.config("# mine\nsandbox: off\n")
    added = marvin.run("mcp", "add", "trial", "--read-only", "look", "--", *command(marvin, "good"))
    assert added.code == 0, added.said
    assert "the server trial was added." in added.text
    assert "  trial__add  Add two numbers.\n" in added.text
    assert "  /trial:greet  Greet.\n" in added.text
    assert (marvin.config_folder / "config.yaml").read_text().startswith("# mine\n")
    listed = marvin.run("mcp", "list")
    assert "3 tools, 1 prompt (config.yaml)" in listed.text
    found = json.loads(marvin.run("mcp", "list", "--json").text)
    assert found[0]["tools"] == ["trial__add", "trial__act", "trial__look"]
    assert marvin.run("tools", "call", "trial__add", "a=2", "b=3").text == "5\n"
    for way in ("login", "logout"):
        refused = marvin.run("mcp", way, "trial")
        assert refused.code == 2
        assert "trial is started as a program, so it has no login." in refused.said
    again = marvin.run("mcp", "add", "trial", "--", *command(marvin, "good"))
    assert again.code == 2
    assert "There is a server trial already." in again.said
    removed = marvin.run("mcp", "remove", "trial")
    assert "the server trial was removed." in removed.text
    assert "There are no servers." in marvin.run("mcp", "list").text
    missing = marvin.run("mcp", "remove", "trail")
    assert missing.code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trial"], "needs either a command or a url"),
        (["trial", "--url", "ftp://x"], "url takes an address such as"),
        (["a__b", "--", "x"], "is not a valid server name"),
        (["trial", "--env", "A", "--", "x"], "--env takes NAME=VALUE"),
    ],
)
def test_what_is_no_server_is_refused(marvin: Marvin, words: list[str], said: str) -> None:
    result = marvin.run("mcp", "add", *words)
    assert result.code == 2
    assert said in result.said
    assert not (marvin.config_folder / "config.yaml").exists()


def test_a_model_calls_a_servers_tool_in_its_first_prompt(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config(json.dumps({"mcp_servers": {"trial": entry(command(marvin, "good"))}}))
    marvin_model_server.script(calls(("trial__add", {"a": 2, "b": 40})), text("42 it is."))
    result = marvin.run("--non-interactive", "--prompt", "add them", "--tool-search", "off")
    assert result.code == 0, result.said
    assert "42 it is." in result.text
    first, second = marvin_model_server.requests
    assert "trial__add" in json.dumps(first.body["tools"])
    assert second.body["messages"][-1]["content"] == "42"


def test_the_servers_of_a_project_wait_for_trust(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    theirs = {**entry(command(marvin, "good")), "sandbox": False, "type": "stdio"}
    (marvin.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": theirs}}))
    marvin_model_server.script(text("Nothing."), text("Something."))
    assert marvin.run("--non-interactive", "--prompt", "hello").code == 0
    assert "theirs__add" not in json.dumps(marvin_model_server.requests[0].body)
    assert "is not used: you were not asked yet" in marvin.run("mcp", "list").text
    trusted = marvin.run("--non-interactive", "--trust-project", "--prompt", "hello", "--tool-search", "off")
    assert trusted.code == 0, trusted.said
    assert "theirs__add" in json.dumps(marvin_model_server.requests[1].body["tools"])


def test_a_linked_file_of_servers_is_never_used_and_says_so(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    elsewhere = marvin.home.parent / "elsewhere.json"
    elsewhere.write_text(json.dumps({"mcpServers": {"theirs": entry(command(marvin, "good"))}}))
    (marvin.project / ".mcp.json").symlink_to(elsewhere)
    marvin_model_server.script(text("Nothing."))
    tried = marvin.run("--trust-project", "--non-interactive", "--prompt", "hello")
    assert "theirs__add" not in json.dumps(marvin_model_server.requests[0].body)
    listed = marvin.run("--trust-project", "mcp", "list")
    for said in (tried.err.decode(), listed.text):
        assert "a link" in said
        assert "replace it by a file" in said
        assert "--trust-project loads it" not in said  # it was given, and does not help


def test_no_server_outlives_a_killed_marvin(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    noted = marvin.project / "pids"
    words = command(marvin, "hang-call", str(noted))
    marvin.config(json.dumps({"mcp_servers": {"trial": entry(words)}}))
    marvin_model_server.script(calls(("trial__act", {})))
    running = marvin.start("--non-interactive", "--prompt", "act", "--tool-search", "off")
    running.until(lambda: marvin_model_server.requests and noted.exists(), "the server to be started")
    wait_until(lambda: b"trial__act" in running.err + running.out or running.process.poll() is not None, "the call", 20)
    running.send(signal.SIGKILL)
    running.finish()
    # In a sandbox the number is one of its own; nothing of the server may be found by what it was started with.
    wait_until(lambda: not any(str(noted) in line for line in commands()), "the server to end")


def commands() -> list[str]:
    """The command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return [line for line in found if "server.py" in line]


def test_the_page_names_keys_and_commands_that_there_are(marvin: Marvin) -> None:
    page = PAGE.read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    marvin.config(block)
    marvin.env |= {"ISSUES_TOKEN": "x", "DOCS_TOKEN": "y"}
    listed = marvin.run("mcp", "list")
    assert listed.code == 0, listed.said
    assert "https://mcp.example.com/mcp" in listed.text
    said = marvin.run("mcp", "--help").text
    for name in re.findall(r"`marvin mcp (\w+)", page):
        assert name in said


def test_the_values_of_variables_and_headers_are_not_shown(marvin: Marvin) -> None:
    started = {"command": "x", "env": {"KEY": "secret-of-mine-1"}}
    reached = {"url": "https://a.example/mcp", "headers": {"X": "secret-of-mine-2"}}
    marvin.config(json.dumps({"mcp_servers": {"a": started, "b": reached}}))
    assert "secret-of-mine" not in marvin.run("config", "show").text


def sampling(marvin: Marvin, server: ModelServer, how: str) -> tuple[str, int]:
    """What a server is told that asks the model in a call, and how many requests the run cost."""
    setup = {**entry(command(marvin, "samples")), "sampling": how}
    marvin.config(json.dumps({"mcp_servers": {"trial": setup}, "sandbox": "off"}))
    server.script(calls(("trial__act", {})), *[text("Words for the server.")] * (how == "allow"), text("Done."))
    result = marvin.ask("--tool-search", "off")
    assert result.code == 0, result.said
    return str(server.requests[-1].body["messages"][-1]["content"]), result.cost()["llm_turns"]


def test_a_server_asks_the_model_where_the_user_lets_it(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    told, requests = sampling(marvin, marvin_model_server, "allow")
    assert '"Words for the server."' in told
    asked = marvin_model_server.requests[1].body
    assert [message["content"] for message in asked["messages"] if message["role"] == "user"] == ["hi"]
    assert not asked.get("tools")
    assert requests == 3, "it is counted like an answer"


@pytest.mark.parametrize("how", ["deny", "ask"])
def test_a_server_that_may_not_ask_is_refused(marvin: Marvin, marvin_model_server: ModelServer, how: str) -> None:
    told, requests = sampling(marvin, marvin_model_server, how)
    assert '"error"' in told
    assert requests == 2


def test_what_a_server_asks_is_paid_under_the_ceiling(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.env["OPENAI_COMPAT_MODEL"] = "scripted"
    setup = {**entry(command(marvin, "samples")), "sampling": "allow"}
    prices = {"scripted": {"input": 1.0, "output": 10.0}}
    marvin.config(json.dumps({"mcp_servers": {"trial": setup}, "sandbox": "off", "prices": prices}))
    used = usage(10_000, 1_000)
    marvin_model_server.script(
        calls(("trial__act", {}), usage=used), text("Yes!", usage=usage(100, 10)), text("Done.", usage=used)
    )
    result = marvin.ask("--tool-search", "off", "--max-cost", "1")
    assert result.code == 0, (result.said, result.text)
    assert result.cost()["session_cost"] == pytest.approx(0.0402)
