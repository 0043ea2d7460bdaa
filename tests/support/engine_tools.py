"""Tools that the tests of the engine call; dispatch imports this module as it would a pack's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from marvin_core import Call, Field, Image, Text, ToolContext, ToolError, ToolResult, tool
from marvin_core.api.tools import Tool


def _log(context: ToolContext) -> list[str]:
    found: list[str] = context.state.setdefault("log", [])
    return found


async def _step(context: ToolContext, name: str, seconds: float, after: str = "") -> str:
    _log(context).append(f"+{name}")
    await asyncio.sleep(seconds)
    while after and after not in _log(context):  # noqa: ASYNC110  # the log is a list, for tests to look at
        await asyncio.sleep(0.001)
    _log(context).append(f"-{name}")
    return f"{name} done"


@tool(access=["read"], group="files")
async def look(context: ToolContext, name: str, seconds: float = 0.0, after: str = "") -> str:
    """Read something, and take a while, or until the log has an entry."""
    return await _step(context, name, seconds, after)


@tool(access=["net"], group="web")
async def fetch(context: ToolContext, name: str, seconds: float = 0.0, after: str = "") -> str:
    """Fetch something, and take a while, or until the log has an entry."""
    return await _step(context, name, seconds, after)


@tool(access=["write"], group="files")
async def mark(context: ToolContext, name: str, seconds: float = 0.0) -> str:
    """Write something, and take a while."""
    return await _step(context, name, seconds)


@tool(access=["exec"], parallel=True)
async def delegate(context: ToolContext, name: str, seconds: float = 0.0, after: str = "") -> str:
    """Have something done, and take a while, or until the log has an entry."""
    return await _step(context, name, seconds, after)


@tool(access=["exec"], parallel="apart")
async def assign(context: ToolContext, name: str, apart: str = "", after: str = "") -> str:
    """Have something done, in a place of its own or not, and wait until the log has an entry."""
    return await _step(context, name, 0.0, after)


@tool(access=["state"])
async def remember(context: ToolContext, name: str, seconds: float = 0.0) -> str:
    """Change the session's state, and take a while."""
    return await _step(context, name, seconds)


@tool(access=["write", "exec"], group="shell")
async def run_command(context: ToolContext, command: str) -> str:
    """Run a shell command."""
    result = await context.processes.run(["sh", "-c", command], merge_stderr=True)
    return result.output.decode()


@tool(access=["write"], confirm=True)
async def send_mail(to: str, also: list[str] | None = None) -> str:
    """Send a mail; asks first."""
    return f"sent to {to} and {also}"


class Oddity(BaseException):
    """Neither an Exception nor anything that asyncio knows."""


class SpeechlessError(Exception):
    """Fails to say what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")


class SpeechlessToolError(ToolError):
    """The same, as an error for the model."""

    def __str__(self) -> str:
        raise ValueError("no words")


_RAISED: dict[str, BaseException] = {
    "tool": ToolError("The shelf is empty. Fill it first."),
    "value": ValueError("bad value"),
    "no text": RuntimeError(),
    "time": TimeoutError("inner"),
    "exit": SystemExit(3),
    "stop": StopIteration(1),
    "cancelled": asyncio.CancelledError(),
    "odd": Oddity("odd"),
    "keyboard": KeyboardInterrupt(),
    "generator": GeneratorExit(),
    "speechless": SpeechlessError(),
    "speechless tool": SpeechlessToolError(),
    "group": BaseExceptionGroup("many", [Oddity("one"), ValueError("two")]),
}


@tool(access=["read"])
async def fails(kind: str) -> str:
    """Raise what was asked for."""
    raise _RAISED[kind]


class _NoText:
    def __str__(self) -> str:
        raise ValueError("no text form")


_RETURNED: dict[str, Any] = {
    "none": None,
    "number": 7,
    "bytes": b"\xff",
    "no text": _NoText(),
    "content none": ToolResult(content=None),  # type: ignore[arg-type]
    "content number": ToolResult(content=5),  # type: ignore[arg-type]
    "content of strings": ToolResult(content=("a", "b")),  # type: ignore[arg-type]
    "content list": ToolResult(content=[Text(text="x")]),  # type: ignore[arg-type]
    "text that is a number": ToolResult(content=(Text(text=5),)),  # type: ignore[arg-type]
    "surrogate": "broken \ud83d",
}


_CYCLE: dict[str, Any] = {"inner": []}
_CYCLE["inner"].append(_CYCLE)
_TWICE: list[Any] = ["x"]
for _ in range(60):
    _TWICE = [_TWICE, _TWICE]
_DEEP: list[Any] = []
for _ in range(5_000):
    _DEEP = [_DEEP]
DETAILS: dict[str, Any] = {
    "cycle": _CYCLE,
    "deep": {"v": _DEEP},
    "doubled again and again": {"v": _TWICE},
    "no mapping": 5,
    "keys": {("a", 1): {None: 1, 2: 3}},
    "half a character": {"v": "a\ud83d"},
    "no finite number": {"v": [float("nan"), float("inf")]},
    "large number": {"v": 10**5_000},
    "no text": {"v": _NoText()},
}


@tool(access=["read"])
async def detailed(kind: str) -> ToolResult:
    """Return details that no interface can be sure to understand."""
    return ToolResult(content="seen", details=DETAILS[kind])


@tool(access=["read"])
async def junk(kind: str) -> Any:
    """Return what no tool should return."""
    return _RETURNED[kind]


@tool(access=["read"], timeout=0.05)
async def stuck() -> str:
    """Never return."""
    await asyncio.Event().wait()
    return "never"


@tool(access=["exec"], timeout=lambda arguments: float(arguments["seconds"]))
async def patient(seconds: float, work: float) -> str:
    """Work for a while, under a time-out of its own."""
    await asyncio.sleep(work)
    return "worked"


@tool(access=["read"])
async def reluctant(context: ToolContext, name: str, cleanup: float) -> str:
    """Wait for ever, and take a while to stop."""
    _log(context).append(f"+{name}")
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(cleanup)
    return "never"


@tool(access=["read"])
async def big(size: Annotated[int, Field(ge=1)]) -> str:
    """Return much text."""
    return "x" * size


@tool(access=["read"])
async def picture() -> ToolResult:
    """Return text and an image."""
    return ToolResult(content=(Text(text="a dot"), Image(media_type="image/png", data="aGk=")))


@tool(access=["write"])
async def change() -> ToolResult:
    """Change something, with details for the interface and a way back."""
    return ToolResult(content="changed", details={"diff": "-a\n+b"}, undo=Call(name="change", arguments={}))


@tool(access=["read"], secrets=["DECLARED_KEY"])
async def tells(context: ToolContext, name: str) -> ToolResult:
    """Return a secret in every way a tool can."""
    value = context.secret(name)
    context.progress(f"key {value}")
    return ToolResult(content=f"the key is {value}!", details={"lines": [f"key={value}"], "n": 1})


@tool(access=["read"])
async def question(context: ToolContext) -> str:
    """Ask the user."""
    return await context.ask("Which way?", ["left", "right"])


@tool(access=["read"], secrets=["DECLARED_KEY"])
async def chooses_a_secret(context: ToolContext) -> str:
    """Ask a person, with a secret among the choices."""
    secret = context.secret("DECLARED_KEY")
    answer = await context.ask("Which one?", ["left", secret])
    return "it was the secret" if answer == secret else answer


@tool(access=["read"], timeout=0.3)
async def questions(context: ToolContext, stuck: bool) -> str:
    """Ask the user two things at once, then maybe never return."""
    answers = await asyncio.gather(*(context.ask(f"Which way, {n}?", ["left", "right"]) for n in range(2)))
    if stuck:
        await asyncio.Event().wait()
    return " ".join(answers)


@tool(access=["state"])
async def keep(context: ToolContext, value: str) -> str:
    """Keep a value in the session; return the one before."""
    before = context.state.get("kept", "nothing")
    context.state["kept"] = value
    return f"before: {before}"


@tool(access=["state"])
async def hoard(context: ToolContext) -> str:
    """Keep what no session file can hold."""
    context.state["odd"] = {("a", "b"): 1}
    return "hoarded"


@asynccontextmanager
async def _server() -> AsyncIterator[list[str]]:
    held = ["up"]
    yield held
    held.append("down")


@tool(access=["exec"])
async def serve(context: ToolContext) -> str:
    """Use what lives as long as the session."""
    held = await context.resource(_server)
    held.append("used")
    return ",".join(held)


ALL: tuple[Tool, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Tool))
