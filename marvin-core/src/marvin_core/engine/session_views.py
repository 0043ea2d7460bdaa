"""The narrow interfaces of a session for tools and hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.errors import ConfigError, ToolError
from ..api.events import Notice
from ..api.session import ChatSettings, SessionSnapshot
from ..api.tools import Mode, ToolSpec
from ..config.secrets import SecretAccess
from ..conversation.compactor import Compactor
from ..util.text import cut
from .autonomy import Autonomy, ContinueMode
from .hook_runner import HookRunner
from .parts import SessionParts

if TYPE_CHECKING:
    import httpx

    from ..api.agents import AgentProgress, AgentResult, AgentTask, ApartTask
    from ..api.controls import Picking, SessionStanding, UndoEntry
    from ..api.hooks import Hook
    from ..api.messages import UsageSummary
    from ..api.processes import Job, ProcessResult
    from ..api.settings import Settings
    from ..api.tool_context import Clock, PackFolders
    from .agents.service import AgentService
    from .ports import SessionPack, ToolClients
    from .undo import CallsByHand

S = TypeVar("S", bound="Settings")

_LONGEST_NOTICE = 2_000
"""The maximum number of characters of a notice of a hook."""


def snapshot(parts: SessionParts, *, busy: bool) -> SessionSnapshot:
    """The current state of the session."""
    progress = parts.progress
    return SessionSnapshot(
        id=parts.writer.id,
        busy=busy,
        messages=parts.conversation.messages,
        answer=progress.answer.so_far() if progress.answer is not None and progress.answer.started else None,
        calls=tuple(progress.calls.values()),
        waiting=parts.inbox.waiting,
        error=progress.error,
    )


def standing(parts: SessionParts, overhead: int) -> SessionStanding:
    """The status of the session; `overhead` is the number of characters of the last request beside its messages."""
    from ..api.controls import SessionStanding  # for whoever asks

    window, conversation = parts.model.window, parts.conversation
    service: AgentService | None = vars(parts).get("agents")  # asked for by name it would be made
    return SessionStanding(
        tokens=window.tokens(conversation.characters + overhead),
        warn=window.warn,
        compact=window.compact,
        window=window.size,
        messages=len(conversation.messages),
        agents=service.working if service is not None else 0,
    )


def chat_settings(parts: SessionParts) -> ChatSettings:
    """The current profile and terminal."""
    config = parts.config
    return ChatSettings(
        home=config.home,
        config_folder=config.config_folder,
        profile_folder=parts.profile.folder,
        color=config.color,
        terminal=config.terminal,
        plain=config.plain,
        screen_reader=config.screen_reader,
        timeouts=config.timeouts,
        preferences=config.chat,
        editor=config.editor,
        keep=parts.kept.text,
    )


class SessionPerson:
    """The `PersonControl` of a session."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._ui: object = parts.setup.ui
        self.theme = parts.config.theme

    def use_theme(self, name: str) -> None:
        """Switch the theme, now and for later chats. Blocks. Raises as `PersonControl`."""
        from ..config.stored.settings import store_value

        self.theme = name
        store_value(self._parts.config, "theme", name)

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask for free text."""
        asker = self._parts.setup.text_asker
        return None if asker is None else await asker(self._parts.bus.clean(question), choices)

    async def pick(self, picking: Picking) -> str | None:
        """Let the user choose an item of a list with keys."""
        from ..api.ui import PicksChoices

        return await self._ui.pick(picking) if isinstance(self._ui, PicksChoices) else None

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard."""
        from ..api.ui import CopiesText

        return isinstance(self._ui, CopiesText) and self._ui.copy(text)

    async def edit(self, file: Path) -> bool:
        """Open a file in the user's editor. Raises as `PersonControl`."""
        import shlex

        from ..api.ui import OpensEditors

        if not isinstance(self._ui, OpensEditors):
            return False
        editor = self._parts.config.editor
        try:
            command = [*shlex.split(editor), str(file)]
            code = await self._ui.run_editor(command, self._parts.setup.secrets.child_environment())
        except (OSError, ValueError) as error:
            raise ConfigError(f"The editor {editor!r} cannot be started: {error}. Set EDITOR.") from error
        if code:
            raise ConfigError(f"{editor} ended with status {code}, so nothing was changed.")
        return True


class SessionUndo:
    """The `UndoControl` of a session; the implementation is imported on first use.

    `dispatcher` runs undo calls; `check_free` raises while an answer is running.
    """

    def __init__(
        self, parts: SessionParts, dispatcher: Callable[[], CallsByHand], check_free: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._dispatcher = dispatcher
        self._check_free = check_free

    async def listed(self, most: int) -> Sequence[UndoEntry]:
        """The calls that can be undone, newest first."""
        from .undo import Undo

        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).listed(most)

    async def difference(self) -> str:
        """The changes of this session, as a diff."""
        from .undo import Undo

        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).difference()

    async def take_back(self, count: int) -> Sequence[str]:
        """Undo the newest calls; returns a line for each. Raises as `UndoControl`."""
        from .undo import Undo

        self._check_free()
        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).take_back(count)

    async def take_back_since(self, time: float) -> Sequence[str]:
        """Undo the calls of this session since a time. Raises as `UndoControl`."""
        from .undo import Undo

        self._check_free()
        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).take_back_since(time)


class ToolSessionView:
    """The `SessionView` of tools."""

    def __init__(self, parts: SessionParts, compactor: Compactor, autonomy: Autonomy) -> None:
        self._parts = parts
        self._compactor = compactor
        self._autonomy = autonomy
        self.farewell: str | None = None

    @property
    def interactive(self) -> bool:
        """Whether the session is interactive."""
        return self._parts.setup.asker is not None and not self._parts.workspace.playing

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self._parts.writer.id

    @property
    def ticket(self) -> str:
        """The ticket of this agent, or an empty string."""
        return self._parts.config.ticket

    @property
    def depth(self) -> int:
        """The nesting depth of this agent."""
        return self._parts.config.depth

    @property
    def memory_folder(self) -> Path:
        """The folder for output that did not fit."""
        return self._parts.workspace.folder("memories")

    def output_characters(self, tool_name: str) -> int:
        """The number of characters of this tool's results in the conversation."""
        return self._parts.conversation.output_characters(tool_name)

    def set_working_dir(self, path: Path) -> None:
        """Move the root of the sandbox. Raises `ToolError` while a recording is played."""
        self._check_not_playing("the playground stays the working directory")
        self._parts.workspace.move(path)

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """The usage since Marvin was started."""
        return self._parts.usage.usage(lifetime=lifetime)

    def compact(self, target_tokens: int) -> str:
        """Compact older messages before the next request; returns a description of what will happen."""
        return self._compactor.compact_later(target_tokens)

    def search_backups(self, query: str, most: int) -> str:
        """Search messages that were removed from conversations for all words, as text."""
        return self._compactor.search(query, most)

    def read_skill(self, name: str) -> str:
        """The text of a skill, or of one of its files. Raises `ToolError` if there is none."""
        from .instructions.skills import session_skills

        finder, skills = session_skills(self._parts)
        return finder.read(skills, name)

    def find_tools(self, query: str, most: int) -> Sequence[ToolSpec]:
        """The offered tools that match a query, best first."""
        return self._parts.carried.find(query, most)

    def switch_profile(self, name: str) -> Path:
        """Switch the profile; returns its folder. Raises `ToolError` in play mode."""
        self._check_not_playing("the profile stays as it is")
        return self._parts.profile.switch(name)

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference of the profile to `change(value)`. Raises `ToolError` in play mode."""
        self._check_not_playing("preferences stay as they are")
        self._parts.profile.change_preference(key, change)

    def _check_not_playing(self, what: str) -> None:
        if self._parts.workspace.playing:
            raise ToolError(f"In play mode {what}. Do something else in the playground.")

    def finish(self, way: ContinueMode) -> None:
        """End auto-continue or play mode with the next answer."""
        self._autonomy.finish(way)

    def leave(self, farewell: str) -> None:
        """End the interface after this turn, with this farewell."""
        self.farewell = farewell


class HookSessionView(SecretAccess):
    """The `HookContext` of one hook."""

    def __init__(self, parts: SessionParts, hook: Hook) -> None:
        self._parts = parts
        self._hook = hook
        self.config_folder = parts.config.config_folder
        self.timeouts = parts.config.timeouts
        self.interactive = parts.setup.asker is not None
        self.depth = parts.config.depth
        self.clock: Clock = parts.clock

    @property
    def mode(self) -> Mode:
        """The current mode of the session."""
        return self._parts.workspace.mode

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self._parts.workspace.root

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile."""
        return self._parts.profile.folder

    @property
    def http(self) -> httpx.AsyncClient:
        """The HTTP client of tools."""
        return self._parts.setup.clients.for_tools()

    @property
    def _pack(self) -> SessionPack:
        return self._parts.setup.packs().of_hook(self._hook)

    @property
    def folders(self) -> PackFolders:
        """The folders of the pack."""
        return self._pack.folders

    @property
    def state(self) -> dict[str, Any]:
        """The session state of the pack."""
        return self._parts.state.setdefault(self._pack.distribution, {})

    def settings(self, model: type[S]) -> S:
        """The settings of the pack. Its hooks can reach the addresses in them."""
        found = self._pack.settings(model)
        trust_addresses(self._pack.given(), self._parts.setup.clients)
        return found

    def _secret(self, name: str, default: Any) -> Any:
        return self._pack.secret(name, default)

    def notify(self, text: str) -> None:
        """Show the user a line, with the name of the pack."""
        told = cut(self._parts.bus.clean(text), _LONGEST_NOTICE)
        self._parts.bus.emit(Notice(level="info", text=f"{self._pack.name}: {told}", pack=self._pack.name))

    def send(self, text: str) -> None:
        """Queue a message for the next model request."""
        if not isinstance(text, str):
            raise TypeError(f"send() takes a text, not {type(text).__name__}")
        self._parts.inbox.send(self._parts.bus.clean(text), "hook")

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        return await self._parts.processes.run(argv)


class SessionAgents:
    """The `Agents` of a session for code outside of tools; imported on first use."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end, as `Agents.run` says."""
        return await self._parts.agents.run(task, progress)

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a background Marvin, as `Agents.start_apart` says."""
        return await self._parts.agents.start_apart(task)


def hook_runner(parts: SessionParts) -> HookRunner:
    """The runner for the hooks of a session: of packs, of the user, of a trusted folder, and in config.yaml."""
    hooks = parts.setup.hooks
    if (project := parts.config.project) is not None and project.hooks:
        from .hooks.project import project_hooks

        hooks = (*hooks, project_hooks(parts, project))
    if parts.config.shell_hooks:
        from .hooks.shell import shell_hooks

        hooks = (*hooks, *shell_hooks(parts))
    return HookRunner(hooks, lambda hook: HookSessionView(parts, hook), parts.config.timeouts, parts.bus)


def trust_addresses(values: Any, clients: ToolClients) -> None:
    """Allow the code of packs to reach the URLs in their settings, which the user named."""
    if isinstance(values, str):
        if "://" in values:
            clients.trust(values)
    elif isinstance(values, (Mapping, list)):
        for value in values.values() if isinstance(values, Mapping) else values:
            trust_addresses(value, clients)
