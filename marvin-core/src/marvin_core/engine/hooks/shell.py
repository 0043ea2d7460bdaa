"""Hooks that are commands of the user's: the event as JSON on standard input, the exit code decides."""

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
"""The exit code of a command that objects: the call is denied, the result is an error, or the model goes on."""
ASKS = 3
"""The exit code of a `before_tool` that wants a person's yes."""

_LONGEST_TEXT = 10_000
"""Characters of what a command prints that a model reads."""
_LONGEST_REASON = 500
_SHOWN = 60


class CommandHook(Hook):
    """One entry below `hooks:`; a class for each method says what its exit codes mean."""

    def __init__(self, parts: SessionParts, hook: ShellHook) -> None:
        self._parts = parts
        self._hook = hook
        self.title = f"`{one_line(hook.command, _SHOWN)}` (hooks.{hook.event} in {hook.file})"
        """What it is called where it fails."""

    def _is_for(self, tool: str) -> bool:
        return not self._hook.tools or any(fnmatchcase(tool, pattern) for pattern in self._hook.tools)

    async def _ended(self, data: Mapping[str, Any], *codes: int) -> ProcessResult:
        """How the command ended, with 0 or one of these exit codes.

        Raises:
            ToolError: where it ended with another one, by a signal, or was not started.
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
    """What it prints goes along with the prompt."""

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        """The prompt with what the command prints below it."""
        added = _printed((await self._ended({"text": text})).output)
        return f"{text}\n\n{added}" if added else None


class SystemPrompt(CommandHook):
    """What it prints stands in the system prompt."""

    async def system_prompt(self, context: HookContext) -> str | None:
        """What the command prints."""
        return _printed((await self._ended({})).output) or None


class BeforeRequest(CommandHook):
    """It is told of each request."""

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        """Tell the command which messages go to the model."""
        await self._ended({"messages": [to_dict(message) for message in messages]})


class BeforeTool(CommandHook):
    """It lets calls pass, denies them, or has a person asked."""

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """What the exit code says of a call; a command that fails denies it."""
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
    """What it prints is read with the result of a call; where it objects, the result is an error."""

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        """The result with what the command prints below it."""
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
    """Where it objects, the model goes on."""

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        """What a command that objects prints, for the model to answer."""
        ended = await self._ended({"answer": answer}, OBJECTS)
        if ended.exit_code == 0:
            return None
        added = "\n".join(filter(None, (_printed(ended.output), _printed(ended.stderr))))
        return added or f"{self.title} reports that this is not done yet."


class OnEvent(CommandHook):
    """It is told of the events of one type."""

    async def on_event(self, context: HookContext, event: Event) -> None:
        """Tell the command of an event that it waits for."""
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
    """The commands of config.yaml as hooks, in their order."""
    for hook in parts.config.shell_hooks:
        yield _KINDS.get(hook.event, OnEvent)(parts, hook)


def _printed(output: bytes) -> str:
    """What a command printed, as a text that a model may read and a terminal show."""
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
