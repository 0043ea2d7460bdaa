"""The parts of a session that an interface controls: saved sessions, model, tools, profile and undo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from .models import ModelEntry
from .providers import ThinkingLevel
from .record import Record


class SessionEntry(Record):
    """One session on disk, as lists show it. `messages` counts those of all its branches."""

    id: str
    title: str
    time: float
    """When it was last written, in seconds since the epoch."""
    provider: str
    model: str
    messages: int
    working_dir: str
    parent: str
    """The session that it is a fork of, or an empty string."""


class Branch(Record):
    """One branch of a session. `leaf` names its last message; `shared` counts the messages it has in common
    with the current branch."""

    leaf: str
    messages: int
    shared: int
    prompt: str
    """The last request of the branch."""
    answer: str
    """The last answer of the model, or an empty string."""
    current: bool
    time: float = 0.0
    """The time of its last message, in seconds since the epoch; 0 if unknown."""


class PromptEntry(Record):
    """A prompt of this chat to which the conversation can be rewound."""

    text: str
    time: float
    """When it was sent, in seconds since the epoch."""
    leaf: str
    """The record of the session file that precedes it."""


class SaidEntry(Record):
    """An earlier message, for display."""

    role: Literal["user", "assistant"]
    text: str
    time: float
    """When it was sent, in seconds since the epoch; 0 if unknown."""
    calls: tuple[str, ...]
    """The names of the tools that it calls."""


class SessionsControl(Protocol):
    """The saved sessions, and switching between them.

    Methods that change the session raise `MarvinError` while an answer runs, and `SessionError` if they fail.
    """

    def clear(self) -> None:
        """Begin an empty conversation; it gets an ID with its first prompt. The old one stays on disk."""
        ...

    def fork(self) -> str:
        """Continue in a copy of this session; returns the ID of the copy."""
        ...

    async def resume(self, session_id: str) -> int:
        """Resume the session with this ID or ID prefix; returns the number of its messages."""
        ...

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The most recent sessions of the working directory, newest first."""
        ...

    def prompts(self) -> Sequence[PromptEntry]:
        """The prompts that can be rewound to, oldest first: those since the last compaction."""
        ...

    def replay(self) -> Sequence[SaidEntry]:
        """The last messages of a resumed session, oldest first.

        Empty for a session that was begun here, and after its next prompt.
        """
        ...

    def search(self, text: str, limit: int) -> Sequence[SessionEntry]:
        """The sessions of all folders with a text in their title or a message, newest first. Blocks."""
        ...

    def rename(self, title: str, session_id: str = "") -> str:
        """Rename a session, this one by default; returns the title as it is stored. Its ID stays. Blocks."""
        ...

    async def export(self, kind: Literal["md", "html", "json"]) -> str:
        """The whole current branch as an HTML page or as JSON, with known secrets redacted."""
        ...

    async def rewind(self, prompt: PromptEntry) -> int:
        """Rewind to before a prompt, in a new branch; returns the number of messages that are left."""
        ...

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, the one with the oldest end first."""
        ...

    async def go_to(self, branch: Branch) -> int:
        """Switch to the end of a branch of this session; returns the number of its messages."""
        ...


class ModelControl(Protocol):
    """The model of a session, and switching it between prompts."""

    @property
    def provider_name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def reason(self) -> str:
        """Why this model was chosen, as in `GROQ_API_KEY is set`; empty without a model."""
        ...

    @property
    def thinking(self) -> ThinkingLevel: ...
    def use(self, name: str) -> None:
        """Switch to another model: `PROVIDER/MODEL`, the name of a model, or of a provider.

        Raises:
            UsageError, ConfigError: there is no such model, or its provider is not set up.
        """
        ...

    def know(self, name: str | None) -> None:
        """Fetch what services know about a name, and read its key, before `use`. Blocks.

        Without a name it does so for `pro`.

        Raises:
            ConfigError: the system's keyring does not return the key.
        """
        ...

    def think(self, level: str) -> None:
        """Set how hard the model thinks, from the next prompt on. Raises `UsageError` for an unknown level."""
        ...

    def pro(self) -> AbstractContextManager[None]:
        """Switch to the best configured model while the context is active; returns its name. Raises as `use`."""
        ...

    def listed(self) -> Sequence[ModelEntry]:
        """Every service; those that are set up come first."""
        ...


class AutonomyControl(Protocol):
    """Auto-continue and play mode: turns that the agent runs without a prompt."""

    @property
    def going(self) -> Literal["off", "auto", "play"]: ...
    def switch(self, going: Literal["off", "auto"]) -> None:
        """Turn auto-continue on or off."""
        ...

    def playing(self, dollars: float | None, turns: int) -> AbstractAsyncContextManager[str]:
        """Begin play mode in the playground, with a maximum of turns and of USD if given; returns the first prompt."""
        ...

    def send(self, text: str) -> None:
        """Add a message to the next model request of the running turn."""
        ...


class ToolControl(Protocol):
    """Lists the tools of a session, and selects other ones."""

    @property
    def selection(self) -> str:
        """The selected sets, groups and names."""
        ...

    @property
    def missing(self) -> Mapping[str, str]:
        """The tools that are not offered, each with the reason."""
        ...

    def choose(self, selection: str) -> None:
        """Offer other tools from the next request on; the selection is written as for `--tools`.

        Raises:
            UsageError: the selection names something that does not exist; nothing is changed.
        """
        ...


class ProfileControl(Protocol):
    """The profile of a session. Methods that read or write files block: call them in a thread."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    def names(self) -> Sequence[str]:
        """All profiles."""
        ...

    def misspelled(self, name: str) -> str:
        """A question for a probable typo: the profile does not exist, but one with a similar name does."""
        ...

    def switch(self, name: str) -> Path:
        """Switch to another profile, which is created if it does not exist; returns its folder.

        Raises:
            ConfigError: the name is not valid.
        """
        ...

    def preferences(self) -> Mapping[str, Any]:
        """The values in preferences.yaml."""
        ...

    def draft_preferences(self) -> tuple[Path, bytes]:
        """A copy of preferences.yaml to edit, or the draft that was not saved, and the current content of the file."""
        ...

    def take_draft(self, before: bytes) -> bool:
        """Replace preferences.yaml with the draft; False if nothing was changed.

        Raises:
            ConfigError: the draft is not a YAML mapping, or preferences.yaml was changed in the meantime.
                The draft is kept.
        """
        ...

    def earlier(self) -> int:
        """The number of messages of earlier chats in this folder that a new chat begins with."""
        ...

    def saved_places(self) -> Sequence[Mapping[str, Any]]:
        """The places in saved_places.json."""
        ...


class Choice(Record):
    """An item of a list: `key` identifies it, `text` is its label, `facts` are shown beside it."""

    key: str
    text: str
    facts: str = ""


class Picking(Record):
    """A list to choose one item from. Both functions raise `MarvinError` or `OSError` if they fail."""

    title: str
    find: Callable[[str], Awaitable[Sequence[Choice]]]
    """The items; with words, all that contain them."""
    rename: Callable[[str, str], Awaitable[str]]
    """Renames the item with a key; returns the message to show."""


class PersonControl(Protocol):
    """What slash commands can ask of the user through the interface."""

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask for free text; the choices are numbered suggestions, and may be empty.

        Returns one of the choices or the typed text, an empty string without an answer, and None if the interface
        does not support free text.
        """
        ...

    async def pick(self, picking: Picking) -> str | None:
        """Let the user choose an item of a list with keys; returns its key.

        Returns an empty string if none was chosen, and None if the interface has no such list.
        """
        ...

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard; False if the interface has no clipboard."""
        ...

    async def edit(self, file: Path) -> bool:
        """Open a file in the user's editor and wait for it to end; False if the interface cannot open an editor.

        Raises:
            ConfigError: the editor cannot be started, or ended with an error.
        """
        ...

    @property
    def theme(self) -> str:
        """The name of the current theme."""
        ...

    def use_theme(self, name: str) -> None:
        """Switch the theme, now and for later chats. Blocks. The interface knows the available themes.

        Raises:
            ConfigError: the choice cannot be saved for later chats.
        """
        ...


class ContextUse(Record):
    """The contents of the next request, in estimated tokens, by the names of the parts of the prompt.

    `waiting` are deferred tools, which are not described until the model searches for them. Above `compact` a summary
    replaces older messages. `window` is the context window of the model.
    """

    prompt: Sequence[tuple[str, int]]
    tools: Mapping[str, int]
    waiting: Mapping[str, int]
    messages: int
    message_tokens: int
    compact: int
    window: int


class SessionStanding(Record):
    """The status of a session at this moment; it is cheap to compute.

    `tokens` is the estimated size of the next request, `window` the context window. Above `warn` a warning is shown,
    above `compact` a summary replaces older messages.
    """

    tokens: int
    warn: int
    compact: int
    window: int
    messages: int
    agents: int
    """The number of running sub-agents."""


class UndoEntry(Record):
    """A call that can be undone."""

    tool: str
    what: str
    """What it did, in one line."""
    time: float
    """When it was made, in seconds since the epoch."""
    session: str
    """The ID of the session that made it; empty if no session had begun."""


class UndoControl(Protocol):
    """Undo of calls that were made in the working directory, newest first, including those of earlier runs."""

    async def listed(self, most: int) -> Sequence[UndoEntry]:
        """The calls that can be undone, newest first."""
        ...

    async def difference(self) -> str:
        """The changes of this session: a diff of the files that it wrote, from before the session to now.

        Changes by commands are named without a diff. Empty if nothing differs.
        """
        ...

    async def take_back(self, count: int) -> Sequence[str]:
        """Undo the newest calls, at most `count`; returns a line for each.

        Raises:
            MarvinError: an answer is running, or a call cannot be undone, as where its files were changed since.
                The text says what was undone before that one.
        """
        ...

    async def take_back_since(self, time: float) -> Sequence[str]:
        """Undo the calls of this session since a time, in seconds since the epoch. Raises as `take_back`."""
        ...
