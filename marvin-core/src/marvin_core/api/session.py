"""The contract between a session and the interface that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from .events import CallOrigin, Event, Unsubscribe
from .messages import Message, ToolOutput
from .models import ModelEntry
from .providers import ThinkingLevel
from .record import Record
from .timeouts import Timeouts
from .tool_context import PackContext, Processes, UsageSummary
from .tools import Mode, ToolSpec


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

    profile_folder: Path
    color: bool
    """Whether colours are wanted, where there is a terminal to show them."""
    terminal: str
    """What kind of terminal it is (TERM)."""
    timeouts: Timeouts


class SessionEntry(Record):
    """One session on disk, as lists show it. `messages` counts those of all its branches."""

    id: str
    title: str
    time: float
    """When it was written last, in seconds since the epoch."""
    provider: str
    model: str
    messages: int
    working_dir: str
    parent: str
    """The session that it was forked from, or an empty string."""


class Branch(Record):
    """One way that a session went. `leaf` names its end; `shared` counts the messages it has in common
    with the branch in use."""

    leaf: str
    messages: int
    shared: int
    prompt: str
    """The last request of the branch."""
    answer: str
    """What the model said last, or an empty string."""
    current: bool


class SessionsControl(Protocol):
    """The sessions on disk, and moving between them.

    What changes the session raises `MarvinError` while an answer runs, and `SessionError` where it is not possible.
    """

    def clear(self) -> None:
        """Begin an empty conversation; it gets an id with its first prompt. The old one stays on disk."""
        ...

    def fork(self) -> str:
        """Go on in a copy of this session; returns its id."""
        ...

    def resume(self, session_id: str) -> int:
        """Go on with the session whose id is, or starts with, this one; returns how many messages it has."""
        ...

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The newest sessions of the working directory, the newest one first."""
        ...

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, oldest end first."""
        ...

    def go_to(self, branch: Branch) -> int:
        """Go on at the end of a branch of this session; returns how many messages it has."""
        ...


class ModelControl(Protocol):
    """The model of a session, and changing it between prompts."""

    @property
    def provider_name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def reason(self) -> str:
        """Why this model answers, as in `GROQ_API_KEY is set`; empty without one."""
        ...

    @property
    def thinking(self) -> ThinkingLevel: ...
    def use(self, name: str) -> None:
        """Go on with another model: `PROVIDER/MODEL`, the name of a model, or of a provider.

        Raises:
            UsageError, ConfigError: where there is none, or its provider is not set up.
        """
        ...

    def know(self, name: str) -> None:
        """Learn what services have to say of a name, before it is used; blocks for a while."""
        ...

    def think(self, level: str) -> None:
        """Have the model think so hard from the next prompt on. Raises `UsageError` for an unknown level."""
        ...

    def pro(self) -> AbstractContextManager[None]:
        """The best model that is set up, for as long as the context lasts; says which. Raises as `use`."""
        ...

    def listed(self) -> Sequence[ModelEntry]:
        """Every service, those that are set up first."""
        ...


class AutonomyControl(Protocol):
    """How the agent goes on by itself."""

    @property
    def going(self) -> Literal["off", "auto", "play"]: ...
    def switch(self, going: Literal["off", "auto"]) -> None:
        """Turn auto-continue on or off."""
        ...

    def playing(self, dollars: float | None, turns: int) -> AbstractAsyncContextManager[str]:
        """Play mode: in the playground, for so many turns, and USD where that is given; gives the first prompt."""
        ...

    def send(self, text: str) -> None:
        """Have the model read this along with its next request, in the middle of what it does."""
        ...


class ToolControl(Protocol):
    """The tools of a session, and choosing others."""

    @property
    def selection(self) -> str:
        """The sets, groups and names that were chosen."""
        ...

    @property
    def missing(self) -> Mapping[str, str]:
        """Why each of the others is not offered."""
        ...

    def choose(self, selection: str) -> None:
        """Offer other tools from the next request on, as `--tools` names them.

        Raises:
            UsageError: where it names what does not exist; nothing is changed then.
        """
        ...


class ProfileControl(Protocol):
    """The profile of a session. What reads or writes files blocks: call it in a thread."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    def names(self) -> Sequence[str]:
        """All profiles."""
        ...

    def misspelled(self, name: str) -> str:
        """The question whether another profile is meant, where there is none of this name but one like it."""
        ...

    def switch(self, name: str) -> Path:
        """Go on with another profile, a new one where there is none; returns its folder.

        Raises:
            ConfigError: for a name that cannot be one.
        """
        ...

    def preferences(self) -> Mapping[str, Any]:
        """What is set in preferences.yaml."""
        ...

    def earlier(self) -> int:
        """How many messages of earlier chats in this folder a new chat begins with."""
        ...

    def saved_places(self) -> Sequence[Mapping[str, Any]]:
        """The places of saved_places.json."""
        ...


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
    @property
    def toolbox(self) -> ToolControl:
        """The tools, and choosing others."""
        ...

    def switch_mode(self, mode: Mode) -> None:
        """Go over to coding mode, or back. Raises `MarvinError` while an answer runs."""
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
    def processes(self) -> Processes:
        """Programs and jobs of the session, in its working directory."""
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

    async def submit(self, text: str) -> TurnResult:
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

    async def call_tool(self, name: str, arguments: Mapping[str, Any], *, typed: bool = False) -> ToolOutput:
        """Run one call by hand, through the same dispatch as a model's.

        Args:
            typed: the user typed the very command that runs, so that nothing is asked before it.
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
