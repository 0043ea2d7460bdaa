"""Running the hooks of packs: in order, each within its time, none able to loosen anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from .events import Event
from .hooks import Ask, Deny, Hook, HookContext, Verdict
from .messages import Message
from .policy import strongest
from .tools import ToolResult, ToolSpec
from .waits import Waits

T = TypeVar("T")


class HookRunner:
    """Calls the hooks of a session. `warn` is told of each one that is skipped."""

    def __init__(self, hooks: Sequence[Hook], context: HookContext, waits: Waits, warn: Callable[[str], None]) -> None:
        self._hooks = tuple(hooks)
        self._context = context
        self._waits = waits
        self._warn = warn
        self._events: asyncio.Queue[Event] | None = None
        self._feeder: asyncio.Task[None] | None = None

    async def on_prompt(self, text: str) -> str:
        """The prompt as the hooks leave it."""
        for hook in self._hooks:
            changed = await self._guarded(hook, "on_prompt", hook.on_prompt(self._context, text))
            text = text if changed is None else changed
        return text

    async def system_prompt(self) -> list[str]:
        """What the hooks add to the system prompt."""
        added = [await self._guarded(h, "system_prompt", h.system_prompt(self._context)) for h in self._hooks]
        return [text for text in added if text]

    async def before_request(self, messages: Sequence[Message]) -> None:
        """Tell the hooks that a request is about to be made."""
        for hook in self._hooks:
            await self._guarded(hook, "before_request", hook.before_request(self._context, messages))

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """The strongest verdict of all hooks; one that fails or takes too long denies."""
        verdicts = [await self._verdict(hook, spec, arguments) for hook in self._hooks]
        found = strongest(*verdicts)
        return found if isinstance(found, (Deny, Ask)) else None

    async def _verdict(self, hook: Hook, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        name = type(hook).__name__
        try:
            async with asyncio.timeout(self._waits.hook_decision):
                verdict: object = await hook.before_tool(self._context, spec, arguments)
        except TimeoutError:
            return Deny(reason=f"the hook {name} did not decide within {self._waits.hook_decision:g} s")
        except Exception as error:  # a hook that guards something must fail closed
            return Deny(reason=f"the hook {name} failed: {type(error).__name__}: {error}")
        if verdict is None or isinstance(verdict, (Deny, Ask)):
            return verdict
        return Deny(reason=f"the hook {name} returned {verdict!r} instead of Deny, Ask or None")

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult) -> ToolResult:
        """The result as the hooks leave it."""
        for hook in self._hooks:
            changed = await self._guarded(hook, "after_tool", hook.after_tool(self._context, spec, arguments, result))
            result = changed if isinstance(changed, ToolResult) else result
        return result

    async def _guarded(self, hook: Hook, what: str, call: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(self._waits.hook):
                return await call
        except TimeoutError:
            self._warn(f"The hook {type(hook).__name__}.{what} took longer than {self._waits.hook:g} s; skipped.")
        except Exception as error:  # a stranger's hook must not end the prompt
            self._warn(f"The hook {type(hook).__name__}.{what} failed: {type(error).__name__}: {error}; skipped.")
        return None

    def feed(self, event: Event) -> None:
        """Queue an event for the hooks; returns at once."""
        if not self._hooks:
            return
        if self._feeder is None:
            self._events = asyncio.Queue()
            self._feeder = asyncio.ensure_future(self._feed(self._events))
        assert self._events is not None
        self._events.put_nowait(event)

    async def _feed(self, events: asyncio.Queue[Event]) -> None:
        while True:
            event = await events.get()
            for hook in self._hooks:
                await self._guarded(hook, "on_event", hook.on_event(self._context, event))
            events.task_done()

    async def close(self) -> None:
        """Let the hooks see the events that wait, for as long as one hook may take; then stop."""
        if self._feeder is None or self._events is None:
            return
        try:
            async with asyncio.timeout(self._waits.hook):
                await self._events.join()
        except TimeoutError:
            self._warn("Some hooks did not see the last events in time.")
        self._feeder.cancel()
        await asyncio.wait([self._feeder])
