"""The sessions of one editor: which of them are open, and that every one of them ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from marvin_core.acp.agent import EditorAgent
from marvin_core.acp.session import Opened
from marvin_core.api.config import McpServer
from marvin_core.api.ui import UI
from marvin_core.app import App
from marvin_core.config.load import load
from marvin_core.testing import ModelServer, answers


class Sessions:
    """Opens sessions of a home folder, and counts those that were opened and ended."""

    def __init__(self, home: Path, url: str) -> None:
        self.variables = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_COMPAT_URL": url}
        self.count: Counter[str] = Counter()
        self.folder = load((), self.variables, cwd=home)[0].data_folder / "sessions"

    def __call__(self, cwd: Path, servers: Mapping[str, McpServer], ui: UI, warn: Callable[[str], None], /) -> Opened:
        config, secrets = load((), self.variables, cwd=cwd)
        session = App(config, secrets, warn, chat=True).session(asker=ui.ask, interactive=True, ui=ui)
        self.count["opened"] += 1
        return Opened(session=session, saved=lambda: self.count.update(ended=1))


class Line:
    """An editor that speaks the protocol by hand."""

    def __init__(self, answers: BinaryIO, writing: int) -> None:
        self._answers = answers
        self._writing = writing

    def send(self, number: int, method: str, **params: Any) -> None:
        """Send a request."""
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        os.write(self._writing, json.dumps(asked).encode() + b"\n")

    async def answer(self, *numbers: int) -> Any:
        """The answer to the last of these requests, once all are answered; what comes besides is passed over."""
        found: dict[int, Any] = {}
        while len(found) < len(numbers):
            message = json.loads(await asyncio.to_thread(self._answers.readline))
            if message.get("id") in numbers and "method" not in message:
                found[message["id"]] = message.get("result", message.get("error"))
        return found[numbers[-1]]

    def prompted(self, number: int, session: str) -> None:
        """Send a prompt."""
        self.send(number, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hi."}])


@asynccontextmanager
async def edited(sessions: Sessions) -> AsyncIterator[Line]:
    """An agent that serves an editor, until the editor hangs up at the end."""
    agent = EditorAgent(sessions, sessions.folder, "")
    (reading, sending), (taking, writing) = os.pipe(), os.pipe()
    served = asyncio.ensure_future(agent.serve(reading, writing, 1.0))
    with os.fdopen(taking, "rb") as answered:
        yield Line(answered, sending)
        os.close(sending)
        await served
        await agent.close()
        os.close(writing)
        os.close(reading)


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """An agent is its process's own: it quietens what logs there."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


def test_of_two_loads_of_one_session_the_later_ends_the_earlier(tmp_path: Path) -> None:
    async def talk(sessions: Sessions) -> None:
        async with edited(sessions) as editor:
            editor.send(1, "initialize", protocolVersion=1)
            await editor.answer(1)
            editor.send(2, "session/new", cwd=str(tmp_path), mcpServers=[])
            session = (await editor.answer(2))["sessionId"]
            editor.prompted(3, session)
            assert (await editor.answer(3))["stopReason"] == "end_turn"
            for number in (4, 5):
                editor.send(number, "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
            await editor.answer(4, 5)
            assert sessions.count == {"opened": 3, "ended": 2}

    with ModelServer(answers.text("Hello.")) as server:
        sessions = Sessions(tmp_path, server.url)
        asyncio.run(talk(sessions))
    assert sessions.count == {"opened": 3, "ended": 3}


@pytest.mark.slow
@pytest.mark.parametrize("said", [[], "all", None, {"terminal": "maybe"}, {"_meta": [1], "fs": {}}])
def test_an_editor_that_says_oddly_what_it_can_do_has_a_session(tmp_path: Path, said: Any) -> None:
    async def talk(sessions: Sessions) -> None:
        async with edited(sessions) as editor:
            editor.send(1, "initialize", protocolVersion=1, clientCapabilities=said)
            await editor.answer(1)
            editor.send(2, "session/new", cwd=str(tmp_path), mcpServers=[])
            session = (await editor.answer(2)).get("sessionId")
            assert session
            editor.prompted(3, session)
            assert (await editor.answer(3))["stopReason"] == "end_turn"

    with ModelServer(answers.text("Hello.")) as server:
        asyncio.run(talk(Sessions(tmp_path, server.url)))
