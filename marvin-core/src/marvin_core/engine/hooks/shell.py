"""Hooks that are the user's commands: the event is JSON on standard input, and the exit code decides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ...api.config import ShellHook
from ...api.errors import ToolError
from ...api.events import Event
from ...api.hooks import Ask, Deny, Hook, HookContext, Verdict
from ...api.messages import Image, Message, Text, to_dict
from ...api.processes import ProcessResult
from ...api.tools import ToolResult, ToolSpec
from ...util.event_lines import event_line
from ...util.terminal_text import without_sequences
from ...util.text import cut, one_line, storable
from ..parts import SessionParts

OBJECTS = 2
"""The exit code of an objection: the call is denied, the result becomes an error, or the model continues."""
ASKS = 3
"""The exit code by which a `before_tool` command requires approval."""

_LONGEST_TEXT = 10_000
"""The maximum length of a command's output for the model, in characters."""
_LONGEST_REASON = 500
_SHOWN = 60


class CommandHook(Hook):
    """One entry below `hooks:`; a subclass for each method defines the meaning of its exit codes."""

    def __init__(self, parts: SessionParts, hook: ShellHook) -> None:
        self._parts = parts
        self._hook = hook
        self.title = f"`{one_line(hook.command, _SHOWN)}` (hooks.{hook.event} in {hook.file})"
        """The name for error messages."""

    def _is_for(self, tool: str) -> bool:
        return not self._hook.tools or any(fnmatchcase(tool, pattern) for pattern in self._hook.tools)

    async def _ended(self, data: Mapping[str, Any], *codes: int) -> ProcessResult:
        """The result of the command, with 0 or one of these exit codes.

        Raises:
            ToolError: if it ended with another exit code or by a signal, or was not started.
        """
        parts = self._parts
        config = parts.config
        surroundings = {
            "event": self._hook.event,
            "session_id": parts.writer.id,
            "cwd": str(parts.workspace.root),
            "config_folder": str(config.config_folder),
            "mode": parts.workspace.mode,
            "interactive": parts.setup.asker is not None,
            "depth": config.depth,
        }
        parts.writer.catch_up()  # the command may look at the session
        await parts.redactor.prepare(data)
        text = json.dumps({**surroundings, **parts.redactor.value(data)}, ensure_ascii=False, default=str)
        outside = not self._hook.sandbox
        result = await parts.processes.run(
            ["/bin/sh", "-c", self._hook.command],
            stdin=f"{storable(text)}\n".encode(),
            output_limit=4 * _LONGEST_TEXT,
            outside=outside,
            as_typed=outside,
            title=self.title,
        )
        if result.exit_code not in (0, *codes):
            raise ToolError(_failure(result))
        return result


class OnPrompt(CommandHook):
    """Adds the command's output to the prompt."""

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        """The prompt with the command's output below it."""
        added = _printed((await self._ended({"text": text})).output)
        return f"{text}\n\n{added}" if added else None


class SystemPrompt(CommandHook):
    """Adds the command's output to the system prompt."""

    async def system_prompt(self, context: HookContext) -> str | None:
        """The output of the command."""
        return _printed((await self._ended({})).output) or None


class BeforeRequest(CommandHook):
    """Notifies the command of each request."""

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        """Send the command the messages for the model."""
        await self._ended({"messages": [to_dict(message) for message in messages]})


class BeforeTool(CommandHook):
    """Lets the command allow, deny or question calls."""

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """The verdict of the exit code on a call; a command that fails denies it."""
        if not self._is_for(spec.name):
            return None
        call = {"tool": spec.name, "access": sorted(spec.access), "arguments": arguments}
        result = await self._ended(call, OBJECTS, ASKS)
        if result.exit_code == 0:
            return None
        said = one_line(_printed(result.stderr) or _printed(result.output), _LONGEST_REASON).rstrip(".")
        if result.exit_code == ASKS:
            return Ask(reason=said or f"{self.title} asks for approval")
        return Deny(reason=said or f"{self.title} denies it")


class AfterTool(CommandHook):
    """Adds the command's output to the result of a call; an objection makes it an error."""

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        """The result with the command's output below it."""
        if not self._is_for(spec.name):
            return None
        told = {"text": _text_of(result), "is_error": result.is_error}
        ended = await self._ended({"tool": spec.name, "arguments": arguments, "result": told}, OBJECTS)
        objects = ended.exit_code == OBJECTS
        added = "\n".join(filter(None, (_printed(ended.output), _printed(ended.stderr) if objects else "")))
        if objects:
            added = added or f"{self.title} rejects this result."
        elif not added:
            return None
        blocks = (*result.blocks, Text(text=f"\n\n{added}"))
        return result.replace(content=blocks, is_error=result.is_error or objects)


class OnStop(CommandHook):
    """Makes the model continue if the command objects."""

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        """The output of an objecting command, for the model to answer."""
        ended = await self._ended({"answer": answer}, OBJECTS)
        if ended.exit_code == 0:
            return None
        added = "\n".join(filter(None, (_printed(ended.output), _printed(ended.stderr))))
        return added or f"{self.title} reports that this is not done yet."


class OnEvent(CommandHook):
    """Notifies the command of events of one type."""

    async def on_event(self, context: HookContext, event: Event) -> None:
        """Send the command an event of its type."""
        if event.type == self._hook.event and self._is_for(getattr(event, "name", "")):
            await self._ended(json.loads(event_line(event)))


_KINDS: Mapping[str, type[CommandHook]] = {
    "on_prompt": OnPrompt,
    "system_prompt": SystemPrompt,
    "before_request": BeforeRequest,
    "before_tool": BeforeTool,
    "after_tool": AfterTool,
    "on_stop": OnStop,
}


def shell_hooks(parts: SessionParts) -> Iterator[Hook]:
    """The commands of config.yaml as hooks, in order."""
    for hook in parts.config.shell_hooks:
        yield _KINDS.get(hook.event, OnEvent)(parts, hook)


def _printed(output: bytes) -> str:
    """The output of a command as a text that is safe for a model and a terminal."""
    return cut(without_sequences(output.decode("utf-8", "replace")).strip(), _LONGEST_TEXT)


def _failure(result: ProcessResult) -> str:
    code = result.exit_code
    ended = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    said = one_line(_printed(result.stderr), _LONGEST_REASON)
    return f"it {ended}{f': {said}' if said else ''}"


def _text_of(result: ToolResult) -> str:
    content: object = result.content
    if isinstance(content, str):
        return content
    return "\n".join("[image]" if isinstance(block, Image) else block.text for block in result.blocks)
