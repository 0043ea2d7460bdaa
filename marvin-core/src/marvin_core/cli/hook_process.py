"""The process in which the hooks of a repository run: in the sandbox, and started by `engine/hooks/project.py`.

Requests arrive on standard input. Each is pickled, which is safe as Marvin wrote it, and preceded by its length.
Answers are written to standard output as lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ..api.errors import ToolError
from ..api.events import Event, Notice
from ..api.hooks import Deny, Hook
from ..api.processes import ProcessResult
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..engine.hook_runner import HookRunner
from ..engine.hooks.project import LENGTH, block_to_json
from ..guard.processes.runner import ProcessRunner
from ..plugins.user_files import hooks_of
from ..util.bus import Bus
from ..util.clock import SystemClock
from ..util.failures import is_failure, told

_PR_SET_DUMPABLE = 4
_NOTHING = "A hook of a repository runs in the sandbox, and has no"


class _Folders(Record):
    """The folders of programs that hooks run."""

    root: Path

    def folder(self, name: str) -> Path:
        """A folder for logs; nothing is written there."""
        return self.root / ".marvin" / name


class _Context:
    """The `HookContext` of hooks in this process."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self.clock = SystemClock()
        self.timeouts = process.timeouts

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return Path(self._process.around["cwd"])

    @property
    def config_folder(self) -> Path:
        """The configuration folder, which the sandbox hides."""
        return Path(self._process.around["config_folder"])

    @property
    def mode(self) -> Any:
        """The permission mode of the session."""
        return self._process.around["mode"]

    @property
    def interactive(self) -> bool:
        """Whether the run is interactive."""
        return bool(self._process.around["interactive"])

    @property
    def depth(self) -> int:
        """The nesting depth of this agent."""
        return int(self._process.around["depth"])

    @property
    def state(self) -> dict[str, Any]:
        """The state that these hooks keep in the session."""
        return self._process.state

    def notify(self, text: str) -> None:
        """Show the user a text."""
        self._process.write({"notify": str(text)})

    def send(self, text: str) -> None:
        """Add a text to the next request to the model."""
        if not isinstance(text, str):
            raise TypeError(f"send() takes a text, not {type(text).__name__}")
        self._process.write({"send": text})

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        return await self._process.programs.run(argv)

    def secret(self, name: str, default: Any = None) -> NoReturn:
        """Raise `ToolError`: hooks of repositories get no secrets."""
        raise ToolError(f"{_NOTHING} secrets.")

    def settings(self, model: object) -> NoReturn:
        """Raise `ToolError`: hooks of repositories have no settings."""
        raise ToolError(f"{_NOTHING} settings.")

    @property
    def folders(self) -> NoReturn:
        """Raise `ToolError`: hooks of repositories have no folders."""
        raise ToolError(f"{_NOTHING} folders of its own. Use context.state.")

    @property
    def profile_folder(self) -> NoReturn:
        """Raise `ToolError`: hooks of repositories have no profile."""
        raise ToolError(f"{_NOTHING} profile.")

    @property
    def http(self) -> NoReturn:
        """Raise `ToolError`: hooks of repositories have no HTTP client."""
        raise ToolError(f"{_NOTHING} client of Marvin's. Run a program that reaches the network.")


class _Process:
    """Answers requests. `output` is the descriptor for answers."""

    def __init__(self, first: Mapping[str, Any], output: int) -> None:
        self._output = output
        self.timeouts: Timeouts = first["timeouts"]
        self.state: dict[str, Any] = {}
        self.around: Mapping[str, Any] = {}
        root = Path(first["root"])
        self.programs = ProcessRunner(_Folders(root=root), dict(os.environ), self.timeouts)
        hooks, failures = _loaded(first["hooks"])
        bus = Bus()
        bus.subscribe(self._noticed)
        context = _Context(self)
        self._runner = HookRunner(hooks, lambda hook: context, self.timeouts, bus)
        self.write({"failures": failures})

    def write(self, answer: Mapping[str, Any]) -> None:
        """Write an answer as a line of JSON."""
        data = memoryview(json.dumps(answer).encode() + b"\n")
        while data:
            data = data[os.write(self._output, data) :]

    def _noticed(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.write({"warn": event.text})

    async def answer(self, request: Mapping[str, Any]) -> None:
        """Answer one request."""
        self.around = request["around"]
        self.state.clear()
        self.state.update(request["state"])
        answer = {"id": request["id"]}
        try:
            answer["result"] = await self._result(request["method"], request["given"])
        except Exception as error:  # a hook may return an object that raises when it is used
            answer["failed"] = told(error)
        try:
            self.write({**answer, "state": self.state})
        except (TypeError, ValueError) as error:  # a hook put a value into the state that JSON cannot represent
            self.write({"warn": f"What a hook keeps in context.state is no JSON: {told(error)}"})
            self.write(answer)

    async def _result(self, method: str, given: Mapping[str, Any]) -> Any:
        runner = self._runner
        if method == "on_prompt":
            text = await runner.on_prompt(given["text"])
            return None if text == given["text"] else text
        if method == "system_prompt":
            return "\n\n".join(await runner.system_prompt()) or None
        if method == "before_request":
            return await runner.before_request(given["messages"])
        if method == "before_tool":
            verdict = await runner.before_tool(given["spec"], given["arguments"])
            if verdict is None:
                return None
            return {"verdict": "deny" if isinstance(verdict, Deny) else "ask", "reason": verdict.reason}
        if method == "after_tool":
            result = await runner.after_tool(given["spec"], given["arguments"], given["result"])
            if result is given["result"]:
                return None
            return {"content": [block_to_json(block) for block in result.blocks], "is_error": result.is_error}
        if method == "on_stop":
            return "\n".join(await runner.on_stop(given["answer"])) or None
        runner.feed(given["event"])
        return None


def _loaded(files: Mapping[str, str]) -> tuple[list[Hook], dict[str, str]]:
    """The hooks of all files, and the errors of files that cannot be loaded, by file name."""
    hooks: list[Hook] = []
    failures: dict[str, str] = {}
    for name, source in files.items():
        module = ModuleType("marvin_project_" + "".join(c if c.isalnum() else "_" for c in name))
        module.__file__ = f".marvin/hooks/{name}"
        sys.modules[module.__name__] = module
        try:
            exec(compile(source.encode("latin-1"), module.__file__, "exec"), vars(module))  # noqa: S102  # the user trusts it
            found = hooks_of(module)
            if not found and not name.startswith("_"):
                raise TypeError("it defines no class that derives from marvin_core.Hook, so it guards nothing")
            hooks += found
        except BaseException as error:  # third-party code: only its file is left out, and reported
            if not is_failure(error):
                raise
            failures[name] = told(error)
    return hooks, failures


async def _serve(output: int) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", buffering=0))
    process: _Process | None = None
    answering: set[asyncio.Task[None]] = set()
    while True:
        try:
            (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
            request = pickle.loads(await reader.readexactly(length))  # noqa: S301  # Marvin itself wrote it
        except asyncio.IncompleteReadError:  # Marvin has ended, or no longer needs these hooks
            os._exit(0)
        if process is None:
            process = _Process(request, output)
            continue
        task = asyncio.ensure_future(process.answer(request))
        answering.add(task)
        task.add_done_callback(answering.discard)


def _close_to_others() -> None:
    """Deny other processes access to the memory and the pipes of this process (`PR_SET_DUMPABLE`, Linux only).

    Commands in the same sandbox run as the same user, and could otherwise answer in place of the hooks.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def main() -> None:
    """Answer requests until standard input ends. The output of hooks is discarded."""
    _close_to_others()
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    asyncio.run(_serve(output))


if __name__ == "__main__":
    main()
