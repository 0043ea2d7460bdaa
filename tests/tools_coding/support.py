"""A context for the file tools: a real sandbox, real child processes and a session that asks and answers."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, cast

from marvin_core import CallOrigin, Tool, ToolContext, ToolError, ToolResult
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders


class SessionFacts:
    """What the file tools may know of a session, and the one thing they may change."""

    def __init__(self, folder: Path) -> None:
        self.id = "session"
        self.interactive = True
        self.ticket = ""
        self.depth = 0
        self.memory_folder = folder / ".marvin" / "memories"
        self.read_characters = 0
        self.moved_to: Path | None = None

    def output_characters(self, tool_name: str) -> int:
        return self.read_characters if tool_name == "read_file" else 0

    def set_working_dir(self, path: Path) -> None:
        self.moved_to = path


class Project:
    """A folder to work in, and the tools' context for it. `programs` are the only ones its children find."""

    def __init__(self, root: Path, programs: Sequence[str] = ("git", "rg")) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.paths = SandboxPaths(root)
        self.session = SessionFacts(root)
        self.state: dict[str, Any] = {}
        self.origin: CallOrigin = "model"
        self.answers: list[str] = []
        self.told: list[str] = []
        self.questions: list[str] = []
        self._env = {"PATH": str(self._only(programs)), "HOME": str(self._beside("home")), "GIT_CONFIG_NOSYSTEM": "1"}
        self.timeouts = Timeouts(output_first=0.0)
        self.processes = self._runner()

    @property
    def context(self) -> ToolContext:
        """This project, which is as much of a context as the file tools use."""
        return cast("ToolContext", self)

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Keep what a tool says of how far it is."""
        self.told.append(text)

    def _beside(self, name: str) -> Path:
        folder = self.root.parent / name
        folder.mkdir(exist_ok=True)
        return folder

    def _only(self, programs: Sequence[str]) -> Path:
        folder = self._beside("programs-" + "-".join(programs))
        for program in programs:
            found = shutil.which(program)
            if found and not (folder / program).exists():
                (folder / program).symlink_to(found)
        return folder

    def _runner(self) -> ProcessRunner:
        return ProcessRunner(Folders(root=self.root, base=self._beside("marvin")), self._env, self.timeouts)

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        self.questions.append(question)
        answer = self.answers.pop(0)
        assert answer in choices
        return answer

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Put a file there, by hand."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def result(self, tool: Tool, **arguments: Any) -> ToolResult:
        """What one call returns."""

        async def go() -> str | ToolResult:
            self.processes = self._runner()
            try:
                given = tool.function(self, **arguments)
                return await given if isawaitable(given) else given
            finally:
                await self.processes.close()

        returned = asyncio.run(go())
        return returned if isinstance(returned, ToolResult) else ToolResult(content=returned)

    def call(self, tool: Tool, **arguments: Any) -> str:
        """The text that one call gives the model."""
        content = self.result(tool, **arguments).content
        assert isinstance(content, str)
        return content

    def error(self, tool: Tool, **arguments: Any) -> str:
        """The text of the error that one call must raise."""
        try:
            got = self.call(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"no error, but: {got}")

    def git(self, *arguments: str, stdin: bytes | None = None) -> None:
        """Run git here; it must succeed."""
        argv = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments]

        async def go() -> None:
            runner = self._runner()
            result = await runner.run(argv, stdin=stdin)
            await runner.close()
            assert result.exit_code == 0, result.stderr.decode()

        asyncio.run(go())


def files_below(root: Path) -> dict[str, bytes]:
    """Every file with its content, to tell that nothing else was changed."""
    return {
        os.path.relpath(path, root): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
