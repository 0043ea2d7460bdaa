"""Marvin as the client that the conformance suite drives: `client.py URL`, the scenario in MCP_CONFORMANCE_SCENARIO.

It does what a person would do who set the server up: log in where it wants that, list what it brings, and call a tool.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from marvin_core.api.config import McpServer
from marvin_core.api.session import SessionControl
from marvin_core.app import App
from marvin_core.config.load import load
from marvin_core.config.mcp_servers import filled_in
from marvin_core.engine.session import Session
from marvin_core.mcp.login.by_hand import LoggingIn
from marvin_core.mcp.session import SessionServers
from marvin_core.util.threads import in_thread

NAME = "suite"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""Where the suite supposes the document that describes the client: whoever hosts one sets it as the `client_id`."""


class Person:
    """Whoever sits in front: leaves fields as they are, and logs in on each page that is shown."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Nothing is shown here."""
        return 0

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Log in where the question is that; else the answer that says least."""
        if "/authorize?" in question:
            await in_thread(lambda: visit(question.split()[-1]))
            return choices[0]
        return choices[-1]

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Say nothing."""
        return ""


def visit(page: str) -> None:
    """What the browser does: go where the page leads."""
    with urlopen(page, timeout=10) as found:
        found.read()


def settings(url: str, scenario: str) -> dict[str, Any]:
    """What the user would have written down of the server."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    entry: dict[str, Any] = {"url": url, "sampling": "allow"}
    if scenario == "auth/pre-registration":
        entry |= {name: given[name] for name in ("client_id", "client_secret")}
    if scenario == "auth/basic-cimd":
        entry["client_id"] = DOCUMENT
    return entry


async def log_in(server: McpServer, app: App) -> None:
    """`marvin mcp login`."""

    def say(text: str) -> None:
        print(text, flush=True)
        shown = [word for word in text.split() if "/authorize?" in word]
        pages.extend(asyncio.ensure_future(in_thread(partial(visit, word))) for word in shown)

    pages: list[asyncio.Future[None]] = []
    print(await LoggingIn(server, app.config, say, None, app.secrets.setting).run())
    await asyncio.gather(*pages)


async def drive(session: Session, app: App, server: McpServer, scenario: str) -> None:
    """What the scenario is about."""
    source = session.parts.setup.tool_source
    assert isinstance(source, SessionServers)
    if scenario.startswith("auth/"):
        await log_in(server, app)
    listing = await source.servers.ask(NAME)
    tool, arguments = CALLS.get(scenario, ("test-tool", {}))
    for found in listing.tools:
        if found.called == tool:
            said = await session.call_tool(found.name, arguments)
            print(said.text)
    await session.close()


def main(url: str, scenario: str) -> None:
    """Set Marvin up in a home of its own, and do it."""
    with tempfile.TemporaryDirectory(prefix="marvin-conformance-") as home:
        folder = Path(home) / ".config" / "marvin"
        work = Path(home) / "work"
        for each in (folder, work):
            each.mkdir(parents=True)
        config = {"mcp_servers": {NAME: settings(url, scenario)}, "sandbox": "off"}
        (folder / "config.yaml").write_text(json.dumps(config))
        loaded, secrets = load(["--working-dir", str(work)], {"HOME": home, "PATH": os.environ["PATH"]}, cwd=work)
        app = App(loaded, secrets, lambda text: print(text, file=sys.stderr))
        person = Person()
        session = app.session(asker=person.ask, interactive=True, ui=person)
        server = filled_in(loaded.mcp_servers[NAME], secrets)
        asyncio.run(drive(session, app, server, scenario))


if __name__ == "__main__":
    main(sys.argv[-1], os.environ["MCP_CONFORMANCE_SCENARIO"])
