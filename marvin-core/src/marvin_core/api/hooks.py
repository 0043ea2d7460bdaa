"""Hooks: code of packs that observes the agent, and may restrict it further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from .events import Event
from .messages import Message
from .processes import ProcessResult
from .record import Record
from .tool_context import Clock, PackContext
from .tools import Mode, ToolResult, ToolSpec

if TYPE_CHECKING:
    import httpx


class Deny(Record):
    """The call must not run; the model gets the reason."""

    reason: str


class Ask(Record):
    """The call needs the user's approval; `reason` is shown with the question."""

    reason: str


Verdict: TypeAlias = Deny | Ask | None


class HookContext(PackContext, Protocol):
    """The context of each hook call."""

    @property
    def cwd(self) -> Path: ...
    @property
    def config_folder(self) -> Path: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def interactive(self) -> bool:
        """Whether a user is there to answer questions."""
        ...

    @property
    def depth(self) -> int:
        """The nesting depth of this agent; 0 for one that a person started."""
        ...

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile, shared with Marvin and all packs; `folders.profile` is the pack's own."""
        ...

    @property
    def clock(self) -> Clock: ...
    @property
    def http(self) -> httpx.AsyncClient:
        """The HTTP client of tools: `ToolContext.http`."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """JSON data of this pack in this session, saved with the session: the same as `ToolContext.state`."""
        ...

    def notify(self, text: str) -> None:
        """Show the user a line, with the name of the pack. Hooks get no event for it."""
        ...

    def send(self, text: str) -> None:
        """Queue a message for the model. The next request of the running prompt carries it.

        A message sent before `on_stop` returns is answered in the same prompt. A later one waits for the next prompt: a
        chat shows it, and a run that ends without delivering it reports that.
        """
        ...

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        ...


class Hook:
    """The base class; its methods do nothing, so override only what you need.

    Hooks can only restrict: the strictest verdict of all rules and hooks applies. A `before_tool` that raises, or takes
    longer than its limit, denies the call. Any other hook that raises or takes too long is logged and skipped.

    Hooks are called one after the other: those with `tryfirst`, then all others, then those with `trylast`. Within each
    group they are sorted by the name of their distribution, then in the order of their registration; hooks in the
    user's own files come last. Each gets the prompt or result as changed by those before it. Of equally strict
    verdicts the reason of the first one is shown.

    Raises:
        TypeError: the class sets both `tryfirst` and `trylast`.
    """

    tryfirst: ClassVar[bool] = False
    """Whether it is called before the hooks that do not set this."""
    trylast: ClassVar[bool] = False
    """Whether it is called after the hooks that do not set this."""
    chats_only: ClassVar[bool] = False
    """Whether only chats need it. If all hooks of a pack set this, other runs start without them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.tryfirst and cls.trylast:
            raise TypeError(f"The hook {cls.__name__} has tryfirst and trylast; choose one.")

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        """A prompt was submitted. Returns the text to use instead, or None to leave it."""
        return None

    async def system_prompt(self, context: HookContext) -> str | None:
        """Text to add to the system prompt, or None."""
        return None

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        """A request to the model is about to be made."""

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """A validated call is about to run. Returns a `Deny`, an `Ask`, or None for no opinion.

        In a chat it is called twice for a call of an answer with several: before the first of them runs, so that one
        question lists all that need approval, and right before the call itself runs. The second verdict counts.
        """
        return None

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        """A call has its result. Returns the result to use instead, or None to leave it."""
        return None

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        """The model has finished a prompt; `answer` is its last answer. Awaited before the prompt ends.

        Returns a text for the model to answer in the same prompt, or None. Messages sent with `context.send` meanwhile
        are answered as well. This happens at most three times in a prompt. Not called if a prompt fails, is cancelled,
        or has used up its rounds or its cost ceiling.
        """
        return None

    async def on_event(self, context: HookContext, event: Event) -> None:
        """An event of the session. Delivered from a queue; the agent does not wait for it."""
