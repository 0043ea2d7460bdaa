"""The parts of a session that an interface controls: sessions on disk, model, tools, profile, and taking calls back."""

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
    time: float = 0.0
    """When its last message was said, in seconds since the epoch; 0 where that is not known."""


class PromptEntry(Record):
    """A prompt of this chat that can be gone back to."""

    text: str
    time: float
    """When it was sent, in seconds since the epoch."""
    leaf: str
    """The record of the session file that it followed."""


class SaidEntry(Record):
    """Something that was said before, as it is shown again."""

    role: Literal["user", "assistant"]
    text: str
    time: float
    """When it was said, in seconds since the epoch; 0 where that is not known."""
    calls: tuple[str, ...]
    """The names of the tools that it called."""


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

    async def resume(self, session_id: str) -> int:
        """Go on with the session whose id is, or starts with, this one; returns how many messages it has."""
        ...

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The newest sessions of the working directory, the newest one first."""
        ...

    def prompts(self) -> Sequence[PromptEntry]:
        """The prompts that can be gone back to, the oldest first: those since the conversation was compacted last."""
        ...

    def replay(self) -> Sequence[SaidEntry]:
        """The end of what was said before this session was gone on with, the oldest first.

        Empty where it was begun here, and from its next prompt on.
        """
        ...

    def search(self, text: str, limit: int) -> Sequence[SessionEntry]:
        """The sessions of all folders with a text in their title or a message, the newest one first. Blocks."""
        ...

    def rename(self, title: str, session_id: str = "") -> str:
        """Give a session another title, this one by default; returns it as it is kept. Its id stays. Blocks."""
        ...

    async def export(self, kind: Literal["md", "html", "json"]) -> str:
        """Everything that was said on the branch in use, as a page or as JSON, without known secrets."""
        ...

    async def rewind(self, prompt: PromptEntry) -> int:
        """Go on from before a prompt, in a branch of its own; returns how many messages are left."""
        ...

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, oldest end first."""
        ...

    async def go_to(self, branch: Branch) -> int:
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

    def know(self, name: str | None) -> None:
        """Learn what services have to say of a name, and have its key, before it is used; blocks for a while.

        Without a name the same for `pro`.

        Raises:
            ConfigError: where the system's keyring does not give the key.
        """
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

    def draft_preferences(self) -> tuple[Path, bytes]:
        """A copy of preferences.yaml to be edited, or the one that could not be saved; and what is in the file now."""
        ...

    def take_draft(self, before: bytes) -> bool:
        """Have the draft take the place of preferences.yaml; False where nothing was changed.

        Raises:
            ConfigError: it is no YAML of keys and values, or preferences.yaml is no longer as it was before; the draft
                stays where it is.
        """
        ...

    def earlier(self) -> int:
        """How many messages of earlier chats in this folder a new chat begins with."""
        ...

    def saved_places(self) -> Sequence[Mapping[str, Any]]:
        """The places of saved_places.json."""
        ...


class Choice(Record):
    """Something that can be picked: `key` says which it is, `text` is what it is called, `facts` stand beside it."""

    key: str
    text: str
    facts: str = ""


class Picking(Record):
    """What one of is to be picked. Both functions raise `MarvinError` or `OSError` where they fail."""

    title: str
    find: Callable[[str], Awaitable[Sequence[Choice]]]
    """What there is; with words, all that holds them."""
    rename: Callable[[str, str], Awaitable[str]]
    """Calls the one of a key by another name; returns what is to be told then."""


class PersonControl(Protocol):
    """Whoever sits at the interface: what commands may ask of them, and hand to them."""

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask what may be answered in any words; the choices are numbered suggestions, and there may be none.

        Gives one of the choices, or what was typed instead; empty where there is no answer, and None where the
        interface takes no text as an answer.
        """
        ...

    async def pick(self, picking: Picking) -> str | None:
        """Have one of several picked by keys; gives its key.

        Empty where none was picked, and None where the interface has no such list.
        """
        ...

    def copy(self, text: str) -> bool:
        """Put a text on the clipboard; False where the interface reaches none."""
        ...

    async def edit(self, file: Path) -> bool:
        """Have a file changed in the user's editor, until that ends; False where the interface can open none.

        Raises:
            ConfigError: where the editor cannot be started, or ended with an error.
        """
        ...

    @property
    def theme(self) -> str:
        """The name of the theme in use."""
        ...

    def use_theme(self, name: str) -> None:
        """Draw with another theme from now on, and in later chats. Blocks; the interface knows which there are.

        Raises:
            ConfigError: where it cannot be kept for later chats.
        """
        ...


class ContextUse(Record):
    """What the next request holds, in tokens as they are estimated; names are those of the parts of the prompt.

    `waiting` are tools that are not told of until the model looks for them. From `compact` on a summary takes the place
    of older messages. `window` is what the model takes.
    """

    prompt: Sequence[tuple[str, int]]
    tools: Mapping[str, int]
    waiting: Mapping[str, int]
    messages: int
    message_tokens: int
    compact: int
    window: int


class SessionStanding(Record):
    """How a session stands at this moment; it costs nothing to find out.

    `tokens` is what the next request takes of the model's `window`, as it is estimated; `warn` and `compact` are what a
    warning comes from, and a summary of older messages.
    """

    tokens: int
    warn: int
    compact: int
    window: int
    messages: int
    agents: int
    """How many sub-agents work."""


class UndoEntry(Record):
    """A call that can be taken back."""

    tool: str
    what: str
    """What it did, in one line."""
    time: float
    """When it was made, in seconds since the epoch."""
    session: str
    """The session that it was made in; empty where none had begun."""


class UndoControl(Protocol):
    """Taking calls back that were made in the working directory, the newest first, those of earlier runs too."""

    async def listed(self, most: int) -> Sequence[UndoEntry]:
        """The calls that can be taken back, the newest first."""
        ...

    async def difference(self) -> str:
        """What this session changed: the files that it wrote as they are now, against how they were before it.

        Of what commands changed only that they did. Empty where nothing is different.
        """
        ...

    async def take_back(self, count: int) -> Sequence[str]:
        """Take back the newest calls, as many as there are up to `count`; what was taken back, a line each.

        Raises:
            MarvinError: an answer is running, or a call cannot be taken back, as where somebody changed since then what
                it had done. The text says what was taken back before that one.
        """
        ...

    async def take_back_since(self, time: float) -> Sequence[str]:
        """Take back what this session called from a time on, in seconds since the epoch. Raises as `take_back`."""
        ...
