"""Sessions with servers, as the program makes them, without a model."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marvin_core.api.events import Event
from marvin_core.api.messages import Image, Text, ToolOutput
from marvin_core.api.session import SessionControl
from marvin_core.app import App
from marvin_core.config.load import load
from marvin_core.engine.session import Session
from marvin_core.mcp.session import SessionServers

SERVER = Path(__file__).parents[2] / "support" / "mcp_server.py"


class Asked:
    """Answers questions in their order, and remembers them."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []
        self.withdrawn = 0

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """The next answer; none to a question after the last one."""
        self.questions.append(question)
        try:
            if not self._answers:
                await asyncio.Event().wait()
            return self._answers.pop(0)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """The same for any words."""
        return await self.ask(question, choices)

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """A test runs the session."""
        raise NotImplementedError


class Desk:
    """A session that has servers."""

    def __init__(
        self,
        home: Path,
        work: Path,
        config: Mapping[str, Any],
        answers: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        folder = home / ".config" / "marvin"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(json.dumps(config))
        self.warnings: list[str] = []
        self.events: list[Event] = []
        self.asked = Asked(answers)
        own = {"HOME": str(home), "PATH": os.environ["PATH"], **(env or {})}
        loaded, secrets = load(["--working-dir", str(work), "--sandbox", "off"], own, cwd=work)
        self._loop = asyncio.Runner()
        app = App(loaded, secrets, self.warnings.append)
        self.session: Session = app.session(
            asker=self.asked.ask if answers else None, interactive=bool(answers), ui=self.asked
        )
        self.session.subscribe(self.events.append)

    @property
    def source(self) -> SessionServers:
        """Where the tools of the servers come from."""
        found = self.session.parts.setup.tool_source
        assert isinstance(found, SessionServers)
        return found

    def learn(self) -> None:
        """What happens before a prompt."""
        self._loop.run(self.source.ready())

    def call(self, tool: str, **arguments: Any) -> ToolOutput:
        """Call a tool as a person does."""
        return self._loop.run(self.session.call_tool(tool, arguments))

    def run(self, work: Any) -> Any:
        """Run something in the session's loop."""
        return self._loop.run(work)

    def close(self) -> None:
        """End the session."""
        self._loop.run(self.session.close())
        self._loop.close()

    @property
    def notices(self) -> str:
        """What was told."""
        return "\n".join([*self.warnings, *(getattr(event, "text", "") for event in self.events)])


def text_of(output: ToolOutput) -> str:
    """The text of a result."""
    return "\n".join(block.text for block in output.content if isinstance(block, Text))


def images_of(output: ToolOutput) -> int:
    """How many images a result has."""
    return sum(isinstance(block, Image) for block in output.content)


def server(way: str, *more: str, **settings: Any) -> Mapping[str, Any]:
    """The setup of a server that behaves in a way."""
    return {"command": sys.executable, "args": ["-S", "-P", str(SERVER), way, *more], **settings}


@contextmanager
def desk(
    tmp_path: Path,
    way: str,
    *more: str,
    answers: Sequence[str] = (),
    timeouts: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Desk]:
    """A session with one server, `trial`."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    config = {"mcp_servers": {"trial": server(way, *more, **settings)}, "timeouts": dict(timeouts or {})}
    made = Desk(tmp_path / "home", work, config, answers)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def desk_at(
    tmp_path: Path,
    entry: Mapping[str, Any],
    timeouts: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    answers: Sequence[str] = (),
) -> Iterator[Desk]:
    """A session with one server, `trial`, that is set up in these words."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    config = {"mcp_servers": {"trial": dict(entry)}, "timeouts": dict(timeouts or {})}
    made = Desk(tmp_path / "home", work, config, answers, env)
    try:
        yield made
    finally:
        made.close()
