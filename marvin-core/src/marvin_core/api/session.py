"""The interface between a session and a user interface."""

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
    """The result of a prompt: its text, and its error, if it failed."""

    text: str
    error: Exception | None = None
    cancelled: bool = False
    output: str | None = None
    """The JSON value of the last answer, if a schema was set and the answer fits it."""

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error


class Attached(Record):
    """Attachments of a prompt: images, and the names of deferred tools to offer at once."""

    images: tuple[Image, ...] = ()
    tools: tuple[str, ...] = ()


class RunningCall(Record):
    """A running call; `since` is in seconds since the epoch. Secrets are redacted."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    since: float
    origin: CallOrigin


class SessionSnapshot(Record):
    """The state of a session, for an interface that attaches after the first events."""

    id: str
    """Empty before the first prompt."""
    busy: bool
    messages: tuple[Message, ...]
    """The messages of the next request, oldest first; without the answer that is being received."""
    answer: Message | None
    """The part of the current answer received so far; it has no stop reason yet."""
    calls: tuple[RunningCall, ...]
    """The running calls, in the order of their start."""
    waiting: tuple[str, ...]
    """Messages that the next request will carry."""
    error: Exception | None
    """The error of the last prompt, if it failed."""


class ChatSettings(Record):
    """The facts about terminal and profile that an interface needs."""

    home: Path
    config_folder: Path
    profile_folder: Path
    color: bool
    """Whether to use colours on a terminal."""
    terminal: str
    """The type of the terminal (TERM)."""
    plain: bool
    """Whether to write plain lines only, without redrawing."""
    screen_reader: bool
    """Whether to write everything once, as text, from top to bottom (for screen readers)."""
    timeouts: Timeouts
    preferences: ChatPreferences
    editor: str
    """The user's editor: a program with optional arguments."""
    keep: Callable[[str], str]
    """Redacts known keys and passwords in typed text before it is written to disk."""


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
        """The model, and switching it."""
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def working_dir(self) -> Path: ...
    @property
    def configured(self) -> bool:
        """Whether a model is configured; without one only tools can be called."""
        ...

    @property
    def busy(self) -> bool: ...
    @property
    def commands(self) -> Mapping[str, Command]: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    def resources(self) -> Mapping[str, str]:
        """Resources of MCP servers that can be attached: a description by the text behind `@`."""
        ...

    async def context_use(self) -> ContextUse:
        """The contents of the next request, and how much of the context window they take."""
        ...

    def standing(self) -> SessionStanding:
        """How much of the context window is used, and what is running."""
        ...

    @property
    def agents(self) -> Agents:
        """Starts sub-agents, under the rules of this session."""
        ...

    @property
    def toolbox(self) -> ToolControl:
        """Lists the tools, and selects other ones."""
        ...

    def keys(self) -> KeyControl:
        """The API keys of model services, and setting them."""
        ...

    def switch_mode(self, mode: Mode) -> None:
        """Switch coding mode on or off. Raises `MarvinError` while an answer runs."""
        ...

    @property
    def permissions(self) -> PermissionControl:
        """The permission mode, and changing it."""
        ...

    @property
    def autonomy(self) -> AutonomyControl:
        """Auto-continue and play mode."""
        ...

    @property
    def profile(self) -> ProfileControl:
        """The profile, and switching it."""
        ...

    @property
    def sessions(self) -> SessionsControl: ...
    @property
    def undo(self) -> UndoControl:
        """Undo of calls."""
        ...

    @property
    def person(self) -> PersonControl:
        """Questions to the user of the interface."""
        ...

    @property
    def processes(self) -> Processes:
        """Programs and jobs of the session, in its working directory."""
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Resources of tools for the session, for commands of their pack: the same as `ToolContext.resource`."""
        ...

    def pack(self, name: str) -> PackContext:
        """The settings, secrets and folders of a pack, for its commands and interfaces.

        Raises:
            ConfigError: no pack of this name is in use.
        """
        ...

    @property
    def chat(self) -> ChatSettings:
        """The current profile and terminal."""
        ...

    @property
    def farewell(self) -> str | None:
        """The farewell to show when a tool has asked to end the session; check it after each turn."""
        ...

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """The usage since Marvin was started. Blocks to look up prices: call it in a thread."""
        ...

    def snapshot(self) -> SessionSnapshot:
        """The current state. Subscribe in the same step of the event loop to miss no event."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Call the listener with every event from now on. It must not block."""
        ...

    async def submit(self, text: str, attached: Attached | None = None) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        ...

    async def accounted(self) -> None:
        """Wait until the cost of the prompts is stored; for callers whose event loop stops between prompts."""
        ...

    async def retry(self) -> TurnResult:
        """Request the last answer again, without a new message; the earlier answer stays on disk as a branch.

        Calls that were executed do not run again. Otherwise as `submit`.

        Raises:
            SessionError: there is no prompt yet.
        """
        ...

    async def compact(self, target_tokens: int) -> str:
        """Replace older messages with a summary; returns the message to show.

        Raises:
            MarvinError: while an answer runs.
        """
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin = "person") -> ToolOutput:
        """Run one call by hand, in the same way as calls of a model.

        Args:
            origin: who makes it: "typed" if the user typed the exact command, which then needs no approval; "trial"
                to test the services of the tool, each of which is then called.
        """
        ...

    async def close(self) -> None:
        """Stop jobs, connections and resources."""
        ...

    def rescue(self) -> None:
        """Save the session and kill every child process, when the event loop can no longer do so.

        For leaving without `close`, from any thread or signal handler. Blocks for at most `timeouts.release`.
        """
        ...


class Command(Record):
    """A slash command of the interactive interfaces.

    `run` gets the session and the text after the name, and returns the text to show, or None. Exceptions are shown as
    errors; a `MarvinError` by its text alone.
    """

    name: str
    help: str
    run: CommandFunction
    takes: str = ""
    """The arguments, for help: `ID`, or `[NAME]` if optional."""


CommandFunction: TypeAlias = Callable[[SessionControl, str], Awaitable[str | None]]
