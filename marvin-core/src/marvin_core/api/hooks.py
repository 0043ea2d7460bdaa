"""Hooks: code of packs that watches, and may tighten, what the agent does."""

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
    """The call must not run; the model is told the reason."""

    reason: str


class Ask(Record):
    """The call needs a yes from the user; `reason` is shown with the question."""

    reason: str


Verdict: TypeAlias = Deny | Ask | None


class HookContext(PackContext, Protocol):
    """What a hook gets with each call."""

    @property
    def cwd(self) -> Path: ...
    @property
    def config_folder(self) -> Path: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def interactive(self) -> bool:
        """Whether somebody is there to answer questions."""
        ...

    @property
    def depth(self) -> int:
        """How deep this agent is nested; 0 for one that a person started."""
        ...

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile, shared with Marvin and all packs; `folders.profile` is the pack's own."""
        ...

    @property
    def clock(self) -> Clock: ...
    @property
    def http(self) -> httpx.AsyncClient:
        """The client of tools: `ToolContext.http`."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """JSON data of this pack in this session, saved with the session: the same as `ToolContext.state`."""
        ...

    def notify(self, text: str) -> None:
        """Tell the person something, in a line that names the pack. Hooks get no event of it."""
        ...

    def send(self, text: str) -> None:
        """Queue a message for the model. It goes along with the next request of the prompt that runs.

        What is sent before `on_stop` returns is still answered in that prompt. What comes later, or while no prompt
        runs, waits for the next one; a chat shows it, and a run that ends without delivering it says so.
        """
        ...

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        ...


class Hook:
    """A base class of no-ops; override what you need.

    Hooks only tighten: the strongest of the rules' and all hooks' verdicts holds. A `before_tool`
    that raises or takes longer than its limit denies the call; anything else that raises or takes
    too long is logged and skipped.

    Hooks are called one after the other: those with `tryfirst`, then all others, then those with
    `trylast`; among equals by the name of their distribution, then in the order in which a pack
    registers them, those of the user's own files last. Each sees what those before it made of a
    prompt or a result, so the last one has the last word. Of equally strong verdicts the reason of
    the first one is told.

    Raises:
        TypeError: where a class has both.
    """

    tryfirst: ClassVar[bool] = False
    """Whether it comes before the hooks that do not say so."""
    trylast: ClassVar[bool] = False
    """Whether it comes after the hooks that do not say so."""
    chats_only: ClassVar[bool] = False
    """Whether it is of use in chats alone. Where that is so of all hooks of a pack, other runs start without them."""

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
        """A validated call is about to run. Returns a `Deny`, an `Ask`, or None to have no opinion.

        In a chat it is asked twice about a call of an answer with several: before the first of them runs, so that one
        question lists all that need a yes, and right before the call itself runs. The second verdict counts.
        """
        return None

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        """A call has its result. Returns the result to use instead, or None to leave it."""
        return None

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        """The model is done with a prompt; `answer` is its last answer. Awaited before the prompt ends.

        Returns a text for the model to answer in the same prompt, or None. What was sent with `context.send` meanwhile
        is answered as well. That is done three times at most in a prompt. Not called where a prompt fails, is cancelled
        or has used up its rounds or its cost ceiling.
        """
        return None

    async def on_event(self, context: HookContext, event: Event) -> None:
        """Something happened. Fed from a queue; the loop never waits for it."""
