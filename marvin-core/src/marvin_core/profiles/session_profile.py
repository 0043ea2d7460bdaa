"""The profile of a session: its parts for the system prompt and for a new chat, and the log of the chat."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.config import Config
from ..api.errors import MarvinError
from ..api.events import AgentEnd, AgentStart, Event, SessionClear, ToolExecutionEnd
from ..conversation.conversation import Conversation
from ..guard.files.workspace import Workspace
from ..guard.kept_texts import KeptTexts
from ..util.bus import Bus
from ..util.threads import in_thread
from .chat_log import SEEDED, ChatEntry, ChatLogWriter, Speaker, compact, entry, seed
from .personal import Personal
from .store import Profiles

if TYPE_CHECKING:
    from ..api.tool_context import Clock
    from .called_tools import CalledTools

T = TypeVar("T")

_ENDINGS = {
    "cancelled": "[Cancelled]",
    "error": "[Failed]",
    "rounds": "[Ended at the limit of rounds]",
    "budget": "[Ended at the cost ceiling]",
}
_ROLES: Mapping[Speaker, str] = {"you": "user", "assistant": "assistant"}


class SessionProfile:
    """The active profile, which `switch` may change during a session.

    Chats are logged in it, and begin with the newest messages of their folder. A non-interactive run does neither. A
    nested agent, or a run with a given working directory, tells the model nothing personal.
    """

    def __init__(self, config: Config, bus: Bus, clock: Clock, workspace: Workspace, kept: KeptTexts) -> None:
        self._clock = clock
        self._workspace = workspace
        self._kept = kept
        self._seeding = config.seed
        self._chat = not config.non_interactive
        self._personal = config.depth == 0 and not config.rooted
        self._begun = False
        self._logging = True
        self._chronicle = ChatLogWriter(bus.warn)
        # A damaged log may be noticed in a thread, but interfaces are notified only in the session's own.
        self.all = Profiles(config.config_folder, config.timeouts, self._chronicle.report)
        self.name = self.all.active
        self.all.protect(self.name)
        self._timeouts = config.timeouts
        self._stamped: tuple[str, list[str]] = "", []
        """The files on which the personal part of the prompt depends, and the profile that they belong to."""
        self.said_in: Callable[[str], frozenset[tuple[str, str]]] = lambda folder: frozenset()
        """Role and text of the messages of the newest sessions of a folder. Blocks."""
        if self._chat:
            bus.subscribe(self._log)
            bus.subscribe(self._count)

    @cached_property
    def _called(self) -> CalledTools:
        from .called_tools import CalledTools  # needed with many tools, and after calls

        return CalledTools(lambda: self.folder, self._timeouts)

    def calls(self) -> Mapping[str, int]:
        """How often models called each tool in chats of this profile."""
        return self._called.counts()

    def _count(self, event: Event) -> None:
        if isinstance(event, ToolExecutionEnd) and self._logging:
            self._called.listen(event)

    @property
    def folder(self) -> Path:
        """The folder of the profile."""
        return self.all.folder(self.name)

    def switch(self, name: str) -> Path:
        """Switch to another profile, which is created if it does not exist; returns its folder. As
        `Profiles.switch`."""
        self.all.switch(name)
        self.name = name
        self.all.protect(name)
        return self.folder

    def misspelled(self, name: str) -> str:
        """As `Profiles.misspelled`."""
        return self.all.misspelled(name)

    def names(self) -> list[str]:
        """All profiles."""
        return self.all.names()

    def preferences(self) -> Mapping[str, Any]:
        """The preferences in preferences.yaml. Raises as `Profiles.preferences`."""
        return self.all.preferences(self.name)

    def saved_places(self) -> Sequence[Mapping[str, Any]]:
        """The places in saved_places.json. Raises as `Profiles.saved_places`."""
        return self.all.saved_places(self.name)

    def draft_preferences(self) -> tuple[Path, bytes]:
        """A copy of preferences.yaml for editing. As `Profiles.draft_preferences`."""
        return self.all.draft_preferences(self.name)

    def take_draft(self, before: bytes) -> bool:
        """Replace preferences.yaml by the draft. Raises as `Profiles.take_draft`."""
        return self.all.take_draft(self.name, before)

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Change a preference of this profile. Raises as `Profiles.change_preference`."""
        self.all.change_preference(self.name, key, change)

    def stamp(self) -> object:
        """A value that changes with the personal part of the prompt."""
        if not self._personal:
            return self.name
        name, paths = self._stamped
        if name != self.name:  # each request asks, and to make paths takes longer than to look at the files
            folder = self.folder
            paths = [str(folder / file) for file in ("preferences.yaml", "saved_places.json")]
            self._stamped = self.name, paths
        return self.name, *map(_stamp, paths)

    def personal(self) -> Personal:
        """The personal part of the system prompt."""
        if not self._personal:
            return Personal(profile=self.name)
        return Personal(
            profile=self.name,
            preferences=self._read(lambda: tuple(self.all.preferences(self.name).items()), ()),
            places=self._read(lambda: self.all.saved_places(self.name), []),
            history="" if self._chat else self._read(lambda: compact(self._newest()), ""),
        )

    def _newest(self) -> list[ChatEntry]:
        """The last messages in this folder. Messages from other folders may be private from people who answer here.

        Logs of older versions and of other programs lack the folder: then the session files of the folder are used.
        """
        folder = self._folder
        said: frozenset[tuple[str, str]] | None = None

        def is_of_folder(one: ChatEntry) -> bool:
            nonlocal said
            if one.folder or one.role == "system":
                return one.folder == folder
            if said is None:
                said = self.said_in(folder)
            return (_ROLES[one.role], one.text) in said

        return self.all.chat_log(self.name).newest(SEEDED, is_of_folder) if self._seeding else []

    @property
    def _folder(self) -> str:
        return str(self._workspace.root)

    def earlier(self) -> int:
        """How many messages of earlier chats a new one begins with here. Blocks."""
        return len(seed(self._read(self._newest, []))) if self._chat and self._personal and not self._begun else 0

    def _read(self, read: Callable[[], T], otherwise: T) -> T:
        """The readable data of the profile; a damaged profile loses its data, never the conversation."""
        try:
            return read()
        except (MarvinError, OSError) as error:
            self._chronicle.report(f"A file of the profile {self.name} could not be read: {error}")
            return otherwise

    async def seed(self, conversation: Conversation) -> None:
        """Begin a new chat with the newest earlier messages; once, and only if the chat has no messages."""
        if self._begun:
            return
        self._begun = True
        if self._chat and self._personal and not conversation.messages:
            earlier = seed(await in_thread(lambda: self._read(self._newest, [])))
            if earlier and not conversation.messages:  # messages in between are not to be lost
                conversation.replace(earlier)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Neither seed nor log while the context lasts: these messages are not addressed to Marvin."""
        begun, self._begun, self._logging = self._begun, True, False
        try:
            yield
        finally:
            self._begun, self._logging = begun, True

    async def flush(self) -> None:
        """Wait until all messages are on disk, and report errors."""
        await self._chronicle.flush()
        if "_called" in vars(self):
            await self._called.flush()

    def _log(self, event: Event) -> None:
        if not self._logging:
            return
        if isinstance(event, SessionClear):
            self._begun = True
        elif isinstance(event, AgentStart):
            self._add("you", event.prompt)
        elif isinstance(event, AgentEnd):
            self._add("assistant", event.text)
            if event.stop_reason != "done":
                self._add("system", event.error or _ENDINGS[event.stop_reason])

    def _add(self, role: Speaker, text: str) -> None:
        if text.strip():
            text = self._kept.text(text)
            self._chronicle.add(self.all.chat_log(self.name), entry(role, text, self._clock.now(), self._folder))


def _stamp(path: str) -> tuple[int, int] | None:
    if not os.access(path, os.F_OK):  # as usual, and each request asks: an exception takes longer
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
