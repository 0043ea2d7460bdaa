"""The contract between a session and the interface that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from .config import ChatPreferences
from .events import CallOrigin, Event, Unsubscribe
from .messages import Image, Message, ToolOutput
from .models import KeyControl
from .record import Record
from .timeouts import Timeouts
from .tools import Mode, ToolSpec

if TYPE_CHECKING:
    from .agents import Agents
    from .controls import (
        AutonomyControl,
        ContextUse,
        ModelControl,
        PersonControl,
        ProfileControl,
        SessionsControl,
        SessionStanding,
        ToolControl,
        UndoControl,
    )
    from .messages import UsageSummary
    from .permissions import PermissionControl
    from .processes import Processes
    from .tool_context import PackContext

T = TypeVar("T")


class TurnResult(Record):
    """How a prompt ended: its text, and the error that ended it, if one did."""

    text: str
    error: Exception | None = None
    cancelled: bool = False
    output: str | None = None
    """The JSON value of the last answer, where it had to fit a schema and does."""

    def check(self) -> None:
        """Raise the error that ended it, if one did."""
        if self.error is not None:
            raise self.error


class Attached(Record):
    """What goes along with a prompt: images, and the names of tools that the model is to know of at once."""

    images: tuple[Image, ...] = ()
    tools: tuple[str, ...] = ()


class RunningCall(Record):
    """A call that has no output yet; `since` is in seconds since the epoch. Its secrets are redacted."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    since: float
    origin: CallOrigin


class SessionSnapshot(Record):
    """A session at one moment, for an interface that comes later than its events."""

    id: str
    """Empty before the first prompt."""
    busy: bool
    messages: tuple[Message, ...]
    """What the next request would carry, the oldest first; without the answer that is coming in."""
    answer: Message | None
    """What has come of the answer that is coming in; it has no stop reason yet."""
    calls: tuple[RunningCall, ...]
    """The calls that run, in the order in which they began."""
    waiting: tuple[str, ...]
    """Messages that go along with the next request."""
    error: Exception | None
    """What ended the last prompt, where that was an error."""


class ChatSettings(Record):
    """What an interface may need to know beside the conversation."""

    home: Path
    config_folder: Path
    profile_folder: Path
    color: bool
    """Whether colours are wanted, where there is a terminal to show them."""
    terminal: str
    """What kind of terminal it is (TERM)."""
    plain: bool
    """Whether plain lines were asked for, with nothing that is drawn twice."""
    screen_reader: bool
    """Whether everything is to be written once, in words, from top to bottom."""
    timeouts: Timeouts
    preferences: ChatPreferences
    editor: str
    """The user's editor: a program, and maybe its arguments."""
    keep: Callable[[str], str]
    """What of a text that was typed may be written to disk: no key and no password that is known as one."""


class UISpec(Record):
    """An interface as data; `factory` is `module:callable`, called without arguments."""

    name: str
    factory: str


class SessionControl(Protocol):
    """What an interface can do with a session."""

    @property
    def id(self) -> str: ...
    @property
    def models(self) -> ModelControl:
        """The model, and changing it."""
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def working_dir(self) -> Path: ...
    @property
    def configured(self) -> bool:
        """Whether a model answers; without one only tools can be called."""
        ...

    @property
    def busy(self) -> bool: ...
    @property
    def commands(self) -> Mapping[str, Command]: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    def resources(self) -> Mapping[str, str]:
        """What servers have to attach: what each is, as it is written behind `@`."""
        ...

    async def context_use(self) -> ContextUse:
        """What the next request holds, and how much of the model's window that takes."""
        ...

    def standing(self) -> SessionStanding:
        """How much of the window is taken, and what works, at this moment."""
        ...

    @property
    def agents(self) -> Agents:
        """The way to sub-agents, which run under the rules of this session."""
        ...

    @property
    def toolbox(self) -> ToolControl:
        """The tools, and choosing others."""
        ...

    def keys(self) -> KeyControl:
        """The keys of model services, and setting them."""
        ...

    def switch_mode(self, mode: Mode) -> None:
        """Go over to coding mode, or back. Raises `MarvinError` while an answer runs."""
        ...

    @property
    def permissions(self) -> PermissionControl:
        """How much is asked before calls run, and changing it."""
        ...

    @property
    def autonomy(self) -> AutonomyControl:
        """How the agent goes on by itself."""
        ...

    @property
    def profile(self) -> ProfileControl:
        """The profile, and changing it."""
        ...

    @property
    def sessions(self) -> SessionsControl: ...
    @property
    def undo(self) -> UndoControl:
        """Taking calls back."""
        ...

    @property
    def person(self) -> PersonControl:
        """Whoever sits at the interface."""
        ...

    @property
    def processes(self) -> Processes:
        """Programs and jobs of the session, in its working directory."""
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What tools keep for the session, for the commands of their pack: the same as `ToolContext.resource`."""
        ...

    def pack(self, name: str) -> PackContext:
        """The settings, secrets and folders of a pack, for its commands and interfaces.

        Raises:
            ConfigError: where no pack of this name is in use.
        """
        ...

    @property
    def chat(self) -> ChatSettings:
        """The profile and the terminal, as configured now."""
        ...

    @property
    def farewell(self) -> str | None:
        """What to say on leaving, once a tool asked to leave; to be looked at after each turn."""
        ...

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started. Blocks where a price is looked up: call it in a thread."""
        ...

    def snapshot(self) -> SessionSnapshot:
        """The session as it is now. What is subscribed before, in the same step of the event loop, misses nothing."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Have every event from now on passed to the listener, which must return at once."""
        ...

    async def submit(self, text: str, attached: Attached | None = None) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        ...

    async def accounted(self) -> None:
        """Wait until what the prompts cost is written down, where the event loop stands still between prompts."""
        ...

    async def retry(self) -> TurnResult:
        """Ask the model for its last answer again, without a new message; the earlier one stays on disk as a branch.

        No call that was executed runs again. Otherwise as `submit`.

        Raises:
            SessionError: where nothing was asked yet.
        """
        ...

    async def compact(self, target_tokens: int) -> str:
        """Have a summary take the place of older messages; returns what to tell about it.

        Raises:
            MarvinError: while an answer runs.
        """
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin = "person") -> ToolOutput:
        """Run one call by hand, through the same dispatch as a model's.

        Args:
            origin: who makes it: "typed" where the user typed the very command that runs, so that nothing is asked
                before it; "trial" to see how the services are that the tool asks, so that each of them is asked.
        """
        ...

    async def close(self) -> None:
        """End jobs, connections and resources."""
        ...

    def rescue(self) -> None:
        """Save what there is and kill every child process, where the event loop can no longer do it.

        For leaving without `close`, from any thread or signal handler. Waits for `timeouts.release` at most.
        """
        ...


class Command(Record):
    """A slash command of the interactive interfaces.

    `run` gets the session and the text behind the name, and returns what to show, or None. What it raises is shown as
    an error; `MarvinError` by its text alone.
    """

    name: str
    help: str
    run: CommandFunction
    takes: str = ""
    """What is written behind the name, for help: `ID`, or `[NAME]` where it may be left out."""


CommandFunction: TypeAlias = Callable[[SessionControl, str], Awaitable[str | None]]
