"""A context for the shell and git tools: a real sandbox and real child processes in one folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from marvin_core import Tool, ToolContext, ToolError, ToolResult
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders

T = TypeVar("T")


class View(NamedTuple):
    """What these tools ask the session for."""

    ticket: str


class Folder:
    """A sandbox with a process runner; git finds no configuration but the one given here."""

    def __init__(self, root: Path, ticket: str = "", **env: str) -> None:
        self.root = root
        self.paths = SandboxPaths(root)
        self.session = View(ticket)
        home = root.parent / "home"
        home.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", **env}
        self.timeouts = Timeouts(output_first=0.0)
        self.told: list[str] = []
        self.told_something = asyncio.Event()
        self.resources: dict[object, Any] = {}
        self.processes: ProcessRunner = self.runner()

    def runner(self) -> ProcessRunner:
        """A runner of this folder."""
        return ProcessRunner(Folders(root=self.root, base=self.root.parent), self.env, self.timeouts)

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Keep what a tool says of how far it is."""
        self.told.append(text)
        self.told_something.set()

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory makes, once a session."""
        if factory not in self.resources:
            self.resources[factory] = await self.stack.enter_async_context(factory())
        return cast("T", self.resources[factory])

    @property
    def context(self) -> ToolContext:
        """This folder, which is as much of a context as these tools use."""
        return cast("ToolContext", self)

    def run(self, use: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine, then end whatever is left."""

        async def go() -> T:
            self.processes = self.runner()
            self.resources.clear()
            async with AsyncExitStack() as self.stack:
                try:
                    return await use()
                finally:
                    await self.processes.close()

        return asyncio.run(go())

    def call(self, tool: Tool, **arguments: Any) -> str:
        """The text that one call gives the model."""
        return text(self.run(lambda: self.called(tool, **arguments)))

    async def called(self, tool: Tool, **arguments: Any) -> str | ToolResult:
        """What one call returns, with the programs in whatever runner is set."""
        given = tool.function(self, **arguments)
        return await given if isawaitable(given) else given

    def error(self, tool: Tool, **arguments: Any) -> str:
        """The text of the error that one call must raise."""
        try:
            got = self.call(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"no error, but: {got}")

    def sh(self, script: str) -> str:
        """What a shell script prints, run here; it must succeed."""
        result = self.run(lambda: self.processes.run(["sh", "-ec", script], merge_stderr=True))
        output = result.output.decode()
        assert result.exit_code == 0, output
        return output


def text(result: str | ToolResult) -> str:
    """What the model reads of a result."""
    if isinstance(result, str):
        return result
    assert isinstance(result.content, str)
    return result.content
