"""Runs the hooks of packs: in order, each with a time limit; none can relax permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.errors import ToolError
from ..api.events import Event, MessageUpdate, Notice, ToolExecutionUpdate
from ..api.messages import Message
from ..api.timeouts import Timeouts
from ..api.tools import ToolResult, ToolSpec
from ..util.bus import Bus
from ..util.failures import is_failure, told
from ..util.text import cut
from ..util.watchdog import attributed, pack_of

if TYPE_CHECKING:
    from ..api.hooks import Hook, HookContext, Verdict

T = TypeVar("T")

_PIECES_WAITING = 5_000
"""The maximum number of queued events for hooks before pieces of answers are dropped."""
_EVENTS_WAITING = 10_000
"""The same for all other events."""


_LONGEST = 2_000
"""The maximum number of characters of a hook's error message."""
_SHOWN = 100


def _rank(hook: Hook) -> int:
    """The position of a hook; within each group the order of the packs is kept."""
    return 0 if hook.tryfirst else 2 if hook.trylast else 1


class HookRunner:
    """Calls the hooks of a session. Hooks that are skipped are reported on the bus.

    `context` creates the context of a hook.
    """

    def __init__(
        self, hooks: Sequence[Hook], context: Callable[[Hook], HookContext], timeouts: Timeouts, bus: Bus
    ) -> None:
        self._hooks = tuple(sorted(hooks, key=_rank))
        self._contexts = {id(hook): context(hook) for hook in self._hooks}
        self._timeouts = timeouts
        self._bus = bus
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._too_slow = False
        self._told: set[int] = set()
        self._feeder: asyncio.Task[None] | None = None
        self._at: Hook | None = None
        """The hook of an event."""

    async def on_prompt(self, text: str) -> str:
        """The prompt after all hooks."""
        for hook in self._with("on_prompt"):
            changed = await self._guarded(hook, "on_prompt", str, text)
            text = text if changed is None else self._bus.clean(changed)
        return text

    async def system_prompt(self) -> list[str]:
        """The text that hooks add to the system prompt."""
        added = [await self._guarded(hook, "system_prompt", str) for hook in self._with("system_prompt")]
        return [self._bus.clean(text) for text in added if text]

    async def before_request(self, messages: Sequence[Message]) -> None:
        """Notify the hooks that a request is about to be made."""
        for hook in self._with("before_request"):
            await self._guarded(hook, "before_request", object, messages)

    def _with(self, what: str) -> Sequence[Hook]:
        """The hooks that override this method; a call of the others would only cost time."""
        if not self._hooks:
            return ()
        from ..api.hooks import Hook  # not imported in a session without hooks

        nothing = getattr(Hook, what)
        return [hook for hook in self._hooks if what in vars(hook) or getattr(type(hook), what) is not nothing]

    @property
    def judges(self) -> bool:
        """Whether any hook overrides `before_tool`."""
        return bool(self._with("before_tool"))

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """The strictest verdict of all hooks; one that fails or takes too long denies."""
        judging = self._with("before_tool")
        if not judging:
            return None
        from ..api.hooks import Ask, Deny
        from ..guard.permissions.verdicts import strongest

        verdicts = [await self._verdict(hook, spec, arguments) for hook in judging]
        found = strongest(*verdicts)
        return found if isinstance(found, (Deny, Ask)) else None

    async def _verdict(self, hook: Hook, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        from ..api.hooks import Ask, Deny  # not imported in a session without hooks

        try:
            async with asyncio.timeout(self._timeouts.hook_decision):
                # Each gets its own copy: changes to it are neither seen by another hook nor run.
                decides = hook.before_tool(self._contexts[id(hook)], spec, deepcopy(dict(arguments)))
                verdict: object = await attributed(_owner(hook, "before_tool"), decides)
        except TimeoutError:
            return Deny(reason=f"the hook {_name(hook)} did not decide within {self._timeouts.hook_decision:g} s")
        except BaseException as error:  # a hook that guards something must fail closed
            if not is_failure(error):
                raise
            return Deny(reason=f"the hook {_name(hook)} failed: {_why(error)}")
        if verdict is None or isinstance(verdict, (Deny, Ask)):
            return verdict
        return Deny(reason=f"the hook {_name(hook)} returned {_shown(verdict)} instead of Deny, Ask or None")

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult) -> ToolResult:
        """The result after all hooks."""
        for hook in self._with("after_tool"):
            changed = await self._guarded(hook, "after_tool", ToolResult, spec, arguments, result)
            result = result if changed is None else changed
        return result

    async def on_stop(self, answer: str) -> list[str]:
        """The messages of hooks that the model answers before the prompt ends."""
        texts = [await self._guarded(hook, "on_stop", str, answer) for hook in self._with("on_stop")]
        return [text for text in texts if text]

    async def _guarded(self, hook: Hook, what: str, kind: type[T], *arguments: object) -> T | None:
        """The result of a method of a hook; None if it fails, takes too long or has another type."""
        try:
            async with asyncio.timeout(self._timeouts.hook):
                returned = await attributed(
                    _owner(hook, what), getattr(hook, what)(self._contexts[id(hook)], *arguments)
                )
            if returned is None or isinstance(returned, kind):
                return returned
            self._skip(hook, what, f"returned {_shown(returned)}")
        except TimeoutError:
            self._skip(hook, what, f"took longer than {self._timeouts.hook:g} s")
        except BaseException as error:  # third-party code must not end the prompt
            if not is_failure(error):
                raise
            self._skip(hook, what, f"failed: {_why(error)}")
        return None

    def _skip(self, hook: Hook, what: str, why: str) -> None:
        if what == "on_event":
            if id(hook) in self._told:
                return  # a notice is an event itself: a failure for it would cause another one
            self._told.add(id(hook))
        self._bus.warn(f"The hook {_name(hook, what)} {why}; skipped.")

    @property
    def waiting(self) -> int:
        """The number of queued events."""
        return self._events.qsize()

    def feed(self, event: Event) -> None:
        """Queue an event for the hooks; returns at once."""
        if not self._with("on_event") or (isinstance(event, Notice) and event.pack):
            return  # otherwise a hook that sends a notice for each event would never end
        if not self._has_room(event):
            return
        self._events.put_nowait(event)
        if self._feeder is None:
            try:
                self._feeder = asyncio.get_running_loop().create_task(self._feed())
            except RuntimeError:
                return  # the loop does not run yet: the first event inside of it starts the feeding

    def _has_room(self, event: Event) -> bool:
        """Whether slow hooks still get an event; pieces of answers are dropped first."""
        most = _PIECES_WAITING if isinstance(event, (MessageUpdate, ToolExecutionUpdate)) else _EVENTS_WAITING
        if self.waiting < most:
            return True
        if not self._too_slow:
            self._too_slow = True
            self._bus.warn("Hooks of packs are too slow, so some events were not delivered to them.")
        return False

    async def _feed(self) -> None:
        while True:
            event = await self._events.get()
            for hook in self._with("on_event"):
                self._at = hook
                await self._guarded(hook, "on_event", object, event)
            self._at = None
            self._events.task_done()

    async def close(self) -> None:
        """Deliver the queued events, for at most the time limit of one hook; then stop."""
        if self._feeder is None:
            return
        try:
            async with asyncio.timeout(self._timeouts.hook):
                await self._events.join()
        except TimeoutError:
            held = f"{_owner(self._at, 'on_event')} held up the end by" if self._at else "The end was held up by"
            seconds = f"{self._timeouts.hook:g} s"
            self._bus.warn(
                f"{held[:1].upper()}{held[1:]} {seconds}; the hooks did not receive the last events in time."
            )
        self._feeder.cancel()
        await asyncio.wait([self._feeder])


def _name(hook: Hook, what: str = "") -> str:
    """The name of a hook: its title, if it comes from a setting, otherwise its class."""
    title = vars(hook).get("title")
    return title if isinstance(title, str) else ".".join(filter(None, (type(hook).__name__, what)))


def _why(error: BaseException) -> str:
    """The error of a hook as text; errors of Marvin need no type before their text."""
    return cut(str(error) if type(error) is ToolError else told(error), _LONGEST)


def _shown(value: object) -> str:
    """The error text for a result of a wrong type."""
    try:
        return cut(repr(value), _SHOWN)
    except Exception:  # the `repr` of third-party code
        return f"a {type(value).__name__}"


def _owner(hook: Hook, what: str) -> str:
    return f"the hook {_name(hook, what)} of {pack_of(hook)}"
