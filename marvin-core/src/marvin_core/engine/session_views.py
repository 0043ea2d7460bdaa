"""The narrow views of a session that tools and hooks get."""

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
"""Characters of what a hook tells the person at once."""


def snapshot(parts: SessionParts, *, busy: bool) -> SessionSnapshot:
    """The session as it is now."""
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
    """How the session stands; `overhead` are the characters of the newest request beside its messages."""
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
    """The profile and the terminal, as configured now."""
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
        """Draw with another theme from now on, and in later chats. Blocks. Raises as `PersonControl`."""
        from ..config.stored.settings import store_value

        self.theme = name
        store_value(self._parts.config, "theme", name)

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask what may be answered in any words."""
        asker = self._parts.setup.text_asker
        return None if asker is None else await asker(self._parts.bus.clean(question), choices)

    async def pick(self, picking: Picking) -> str | None:
        """Have one of several picked by keys."""
        from ..api.ui import PicksChoices

        return await self._ui.pick(picking) if isinstance(self._ui, PicksChoices) else None

    def copy(self, text: str) -> bool:
        """Put a text on the clipboard."""
        from ..api.ui import CopiesText

        return isinstance(self._ui, CopiesText) and self._ui.copy(text)

    async def edit(self, file: Path) -> bool:
        """Have a file changed in the user's editor. Raises as `PersonControl`."""
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
    """The `UndoControl` of a session; what does the work is imported where somebody asks for it.

    `dispatcher` runs calls that take others back; `check_free` raises where an answer is running.
    """

    def __init__(
        self, parts: SessionParts, dispatcher: Callable[[], CallsByHand], check_free: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._dispatcher = dispatcher
        self._check_free = check_free

    async def listed(self, most: int) -> Sequence[UndoEntry]:
        """The calls that can be taken back, the newest first."""
        from .undo import Undo

        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).listed(most)

    async def difference(self) -> str:
        """What this session changed, as a difference of files."""
        from .undo import Undo

        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).difference()

    async def take_back(self, count: int) -> Sequence[str]:
        """Take back the newest calls; what was taken back, a line each. Raises as `UndoControl`."""
        from .undo import Undo

        self._check_free()
        await self._parts.progress.settled()
        return await Undo(self._parts, self._dispatcher).take_back(count)

    async def take_back_since(self, time: float) -> Sequence[str]:
        """Take back the calls that this session made from then on. Raises as `UndoControl`."""
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
        """Whether somebody is there to answer."""
        return self._parts.setup.asker is not None and not self._parts.workspace.playing

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self._parts.writer.id

    @property
    def ticket(self) -> str:
        """The ticket this agent works on, or an empty string."""
        return self._parts.config.ticket

    @property
    def depth(self) -> int:
        """How deep this agent is nested."""
        return self._parts.config.depth

    @property
    def memory_folder(self) -> Path:
        """Where dumps of what did not fit go."""
        return self._parts.workspace.folder("memories")

    def output_characters(self, tool_name: str) -> int:
        """How many characters of this tool's outputs are in the live context."""
        return self._parts.conversation.output_characters(tool_name)

    def set_working_dir(self, path: Path) -> None:
        """Move the sandbox root. Raises `ToolError` in play mode."""
        self._check_not_playing("the playground stays the working directory")
        self._parts.workspace.move(path)

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started."""
        return self._parts.usage.usage(lifetime=lifetime)

    def compact(self, target_tokens: int) -> str:
        """Have older messages make room before the next request; returns what will happen."""
        return self._compactor.compact_later(target_tokens)

    def search_backups(self, query: str, most: int) -> str:
        """Where all words of the query stand in what was taken out of conversations, as text."""
        return self._compactor.search(query, most)

    def read_skill(self, name: str) -> str:
        """The text of a skill, or of a file of it. Raises `ToolError` where there is none."""
        from .instructions.skills import session_skills

        finder, skills = session_skills(self._parts)
        return finder.read(skills, name)

    def find_tools(self, query: str, most: int) -> Sequence[ToolSpec]:
        """The tools on offer that a query means, the best first."""
        return self._parts.carried.find(query, most)

    def switch_profile(self, name: str) -> Path:
        """Go on with another profile; returns its folder. Raises `ToolError` in play mode."""
        self._check_not_playing("the profile stays as it is")
        return self._parts.profile.switch(name)

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference of the profile to what `change` makes of its value. Raises `ToolError` in play mode."""
        self._check_not_playing("preferences stay as they are")
        self._parts.profile.change_preference(key, change)

    def _check_not_playing(self, what: str) -> None:
        if self._parts.workspace.playing:
            raise ToolError(f"In play mode {what}. Do something else in the playground.")

    def finish(self, way: ContinueMode) -> None:
        """End auto-continue or play mode with the next answer."""
        self._autonomy.finish(way)

    def leave(self, farewell: str) -> None:
        """Have the interface say this and end, once the turn is over."""
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
        """The mode of the session as it is now."""
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
        """The client of tools."""
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
        """What the pack keeps in the session."""
        return self._parts.state.setdefault(self._pack.distribution, {})

    def settings(self, model: type[S]) -> S:
        """The settings of the pack. Its hooks reach the addresses that the user set there."""
        found = self._pack.settings(model)
        trust_addresses(self._pack.given(), self._parts.setup.clients)
        return found

    def _secret(self, name: str, default: Any) -> Any:
        return self._pack.secret(name, default)

    def notify(self, text: str) -> None:
        """Tell the person something, in a line that names the pack."""
        told = cut(self._parts.bus.clean(text), _LONGEST_NOTICE)
        self._parts.bus.emit(Notice(level="info", text=f"{self._pack.name}: {told}", pack=self._pack.name))

    def send(self, text: str) -> None:
        """Have the model read this along with its next request."""
        if not isinstance(text, str):
            raise TypeError(f"send() takes a text, not {type(text).__name__}")
        self._parts.inbox.send(self._parts.bus.clean(text), "hook")

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        return await self._parts.processes.run(argv)


class SessionAgents:
    """The `Agents` of a session for whatever works without a tool; imported where the first one is started."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end, as `Agents.run` says."""
        return await self._parts.agents.run(task, progress)

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a Marvin that goes on when this one ends, as `Agents.start_apart` says."""
        return await self._parts.agents.start_apart(task)


def hook_runner(parts: SessionParts) -> HookRunner:
    """What calls the hooks of a session: those of packs and the user, of a trusted folder, and of config.yaml."""
    hooks = parts.setup.hooks
    if (project := parts.config.project) is not None and project.hooks:
        from .hooks.project import project_hooks

        hooks = (*hooks, project_hooks(parts, project))
    if parts.config.shell_hooks:
        from .hooks.shell import shell_hooks

        hooks = (*hooks, *shell_hooks(parts))
    return HookRunner(hooks, lambda hook: HookSessionView(parts, hook), parts.config.timeouts, parts.bus)


def trust_addresses(values: Any, clients: ToolClients) -> None:
    """Let the code of packs reach the URLs among settings, which the user named."""
    if isinstance(values, str):
        if "://" in values:
            clients.trust(values)
    elif isinstance(values, (Mapping, list)):
        for value in values.values() if isinstance(values, Mapping) else values:
            trust_addresses(value, clients)
