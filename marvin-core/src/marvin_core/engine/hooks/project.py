"""Hooks from a trusted working directory, run in a separate process in the sandbox.

The process is `cli/hook_process.py`. Marvin sends pickled data, which only Marvin writes. Answers are JSON and are
checked, since code of the repository writes them.
"""

from __future__ import annotations

import asyncio
import pickle
import re
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...api.config import ProjectFiles
from ...api.errors import ToolError
from ...api.events import Event, Notice
from ...api.hooks import Ask, Deny, Hook, HookContext, Verdict
from ...api.messages import Image, Message, Text
from ...api.processes import Conversation
from ...api.tools import ToolResult, ToolSpec
from ...util.plain_data import plain
from ...util.terminal_text import without_sequences
from ...util.text import cut, one_line, storable
from ...util.untrusted_json import parse_json
from ..parts import SessionParts

OWNER = "this project"
"""The key of these hooks' state in a session, like the distribution of a pack; no distribution can have this name."""
LENGTH = struct.Struct("!Q")
"""The prefix of each request: its size in bytes."""
_PROCESS = "marvin_core.cli.hook_process"
_LONGEST = 32_000_000
"""The maximum size of one answer in bytes; a process that writes more is ended."""
_SHOWN = 300
# These can add a method to a class without its name in the source.
_HIDDEN = re.compile(r"setattr|globals\(|locals\(|vars\(|exec\(|eval\(|__dict__|type\(|import\s*\*")


class HookProcess:
    """The process of the hooks. It is started with the first request, and restarted after one without an answer.

    `take` gets the messages of hooks meanwhile: mappings with one of `send`, `notify` and `warn`.
    """

    def __init__(self, parts: SessionParts, files: ProjectFiles, take: Callable[[Mapping[str, Any]], None]) -> None:
        self._parts = parts
        self._files = files
        self._take = take
        self._starting: asyncio.Task[_Running] | None = None

    async def ask(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """The answer to a request, and the files that could not be loaded, with the reasons.

        A cancellation ends the process: a hook that hangs would block the next request, too.

        Raises:
            ToolError: if there is no answer; the text says why.
        """
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        starting = self._starting
        try:
            running = await asyncio.shield(starting)
            failures = await asyncio.shield(running.failures)
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                self._starting = None
            raise
        try:
            return await running.ask(request), failures
        except BaseException:
            self._starting = None
            running.end("it was ended, as it gave no answer")
            raise

    async def _start(self) -> _Running:
        files, parts = self._files, self._parts
        running = _Running(self._take)
        talk = await parts.processes.converse(
            [sys.executable, "-P", "-m", _PROCESS],
            on_output=running.came,
            on_end=lambda: running.end("it ended"),
            cwd=files.root,
            env={"PYTHONPATH": ""},
        )
        running.talk = talk
        running.send({"hooks": dict(files.hooks), "root": str(files.root), "timeouts": parts.config.timeouts})
        return running


class _Running:
    """One such process, while it answers."""

    talk: Conversation

    def __init__(self, take: Callable[[Mapping[str, Any]], None]) -> None:
        self._take = take
        self._begun = bytearray()
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._over = ""
        self.failures: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        """The files that could not be loaded, with the reasons, once all were tried."""
        self.failures.add_done_callback(lambda done: done.cancelled() or done.exception())

    def send(self, request: Mapping[str, Any]) -> None:
        """Send data. Raises `ToolError` if that fails."""
        try:
            data = pickle.dumps(request)
        except Exception as error:  # a value of a third-party class
            raise ToolError(f"the event cannot be passed to it: {error}") from error
        self.talk.send(LENGTH.pack(len(data)) + data)

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request. Raises `ToolError` if there is none."""
        if self._over:
            raise ToolError(self._over)
        self._last += 1
        number = self._last
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self.send({**request, "id": number})
            return await answer
        finally:
            del self._waiting[number]

    def came(self, piece: bytes) -> None:
        """Take a part of the output."""
        *lines, rest = piece.split(b"\n")
        if lines:  # a partial line is copied when the line ends, and not for each part
            lines[0] = bytes(self._begun) + lines[0]
            self._begun.clear()
        self._begun += rest
        if len(self._begun) > _LONGEST:
            self.end(f"it wrote more than {_LONGEST:,} bytes in a line")
        for line in lines:
            if not self._over:
                self._understood(line)

    def _understood(self, line: bytes) -> None:
        try:
            found = parse_json(line) if len(line) <= _LONGEST else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.end("it wrote something else than answers")
        elif isinstance(found.get("failures"), dict):
            if not self.failures.done():
                self.failures.set_result({str(name): _text(why) for name, why in found["failures"].items()})
        elif isinstance(found.get("id"), int):
            waiting = self._waiting.get(found["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(found)
        else:
            self._take(found)

    def end(self, why: str) -> None:
        """Give up the process, and fail everything that waits for it."""
        if self._over:
            return
        self._over = f"the process of the hooks in .marvin/hooks gave no answer: {why}"
        self._begun.clear()
        for waiting in (self.failures, *self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(ToolError(self._over))
        closing = asyncio.ensure_future(self.talk.close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())


class _ProjectHooks(Hook):
    """All of them as one hook; its class lacks the methods that none of them has."""

    def __init__(self, parts: SessionParts, files: ProjectFiles) -> None:
        self._parts = parts
        self._process = HookProcess(parts, files, self._take)
        self._told = False
        self.title = f"of .marvin/hooks ({one_line(', '.join(files.hooks), 60)})"
        """The name for error messages."""

    def _take(self, said: Mapping[str, Any]) -> None:
        """Handle a message from a hook; anything else is ignored."""
        bus = self._parts.bus
        if text := _text(said.get("send")):
            self._parts.inbox.send(bus.clean(text), "hook")
        if text := _text(said.get("notify")):
            shown = bus.clean(f".marvin/hooks: {cut(text, _SHOWN)}")
            bus.emit(Notice(level="info", text=shown, pack=OWNER))
        if text := _text(said.get("warn")):
            bus.emit(Notice(level="warning", text=bus.clean(f".marvin/hooks: {cut(text, _SHOWN)}"), pack=OWNER))

    async def _answer(self, method: str, **given: Any) -> Any:
        parts = self._parts
        await parts.redactor.prepare(*given.values())
        state = parts.state.get(OWNER, {})
        around = {
            "mode": parts.workspace.mode,
            "cwd": str(parts.workspace.root),
            "config_folder": str(parts.config.config_folder),
            "interactive": parts.setup.asker is not None,
            "depth": parts.config.depth,
        }
        clean = {name: parts.redactor.value(value) for name, value in given.items()}
        request = {"method": method, "given": clean, "around": around, "state": state}
        answer, failures = await self._process.ask(request)
        if isinstance(answer.get("state"), dict) and (answer["state"] or state):
            parts.state[OWNER] = answer["state"]
        if answer.get("failed"):
            raise ToolError(one_line(_text(answer["failed"]), _SHOWN))
        if failures:
            told = [f"{one_line(name, 60)} cannot be loaded: {one_line(why, _SHOWN)}" for name, why in failures.items()]
            why = "; ".join(told)
            if method == "before_tool":  # the missing one may be a guard
                raise ToolError(f"{why}. Correct it, or revoke your trust: /permissions distrust")
            if not self._told:
                self._told = True
                parts.bus.warn(f".marvin/hooks: {why}")
        return answer.get("result")


async def _on_prompt(self: _ProjectHooks, context: HookContext, text: str) -> str | None:
    return _text(await self._answer("on_prompt", text=text)) or None


async def _system_prompt(self: _ProjectHooks, context: HookContext) -> str | None:
    return _text(await self._answer("system_prompt")) or None


async def _before_request(self: _ProjectHooks, context: HookContext, messages: Sequence[Message]) -> None:
    await self._answer("before_request", messages=tuple(messages))


async def _before_tool(
    self: _ProjectHooks, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]
) -> Verdict:
    found = await self._answer("before_tool", spec=spec.replace(phrases=()), arguments=plain(dict(arguments)))
    if found is None:
        return None
    if isinstance(found, dict) and found.get("verdict") in ("deny", "ask"):
        reason = one_line(_text(found.get("reason")), _SHOWN) or "a hook of .marvin/hooks says so"
        return Deny(reason=reason) if found["verdict"] == "deny" else Ask(reason=reason)
    raise ToolError("it gave no verdict")


async def _after_tool(
    self: _ProjectHooks, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
) -> ToolResult | None:
    shown = ToolResult(content=result.blocks, is_error=result.is_error)
    given = {"spec": spec.replace(phrases=()), "arguments": plain(dict(arguments)), "result": shown}
    found = await self._answer("after_tool", **given)
    if not isinstance(found, dict) or not isinstance(found.get("content"), list):
        return None
    blocks = tuple(filter(None, map(_block, found["content"])))
    return result.replace(content=blocks, is_error=result.is_error or found.get("is_error") is True)


async def _on_stop(self: _ProjectHooks, context: HookContext, answer: str) -> str | None:
    return _text(await self._answer("on_stop", answer=answer)) or None


async def _on_event(self: _ProjectHooks, context: HookContext, event: Event) -> None:
    await self._answer("on_event", event=event)


_METHODS = {
    "on_prompt": _on_prompt,
    "system_prompt": _system_prompt,
    "before_request": _before_request,
    "before_tool": _before_tool,
    "after_tool": _after_tool,
    "on_stop": _on_stop,
    "on_event": _on_event,
}


def project_hooks(parts: SessionParts, files: ProjectFiles) -> Hook:
    """The hooks of a trusted folder as one, with only the methods that their sources mention.

    No process is started for a method that none of them has. A source that may define methods in another way counts as
    having all.
    """
    sources = files.hooks.values()
    may_hide = any(map(_HIDDEN.search, sources))
    named = {name: method for name, method in _METHODS.items() if may_hide or any(name in one for one in sources)}
    kind = type("ProjectHooks", (_ProjectHooks,), named)
    made: Hook = kind(parts, files)
    return made


def block_to_json(block: Text | Image) -> dict[str, str]:
    """A block of a result, as received from the process of the hooks."""
    if isinstance(block, Image):
        return {"media_type": block.media_type, "data": block.data}
    return {"text": block.text}


def _block(found: Any) -> Text | Image | None:
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("data"), str) and isinstance(found.get("media_type"), str):
        return Image(media_type=found["media_type"], data=found["data"])
    return Text(text=_text(found.get("text"))) if isinstance(found.get("text"), str) else None


def _text(found: Any) -> str:
    """A text from the repository without terminal control sequences; empty for an invalid value."""
    return storable(without_sequences(found)) if isinstance(found, str) else ""
