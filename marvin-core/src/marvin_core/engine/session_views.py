"""The narrow views of a session that tools and hooks get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..api.config import Config
from ..api.tool_context import Processes, ProcessResult, UsageSummary
from ..api.tools import Mode
from ..conversation.compactor import Compactor
from ..conversation.conversation import Conversation
from ..guard.files.workspace import Workspace
from ..profiles.session_profile import SessionProfile
from ..sessions.writer import Recorder
from ..usage.summary import Accounts
from .autonomy import Going


class ToolView:
    """The `SessionView` of tools."""

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        conversation: Conversation,
        recorder: Recorder,
        accounts: Accounts,
        profile: SessionProfile,
        compactor: Compactor,
        finish: Callable[[Going], None],
        leave: Callable[[str], None],
        asks: bool,
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._conversation = conversation
        self._recorder = recorder
        self._accounts = accounts
        self._leave = leave
        self.finish = finish
        self.compact = compactor.compact_later
        self.search_backups = compactor.search
        self.switch_profile = profile.switch
        self.change_preference = profile.change_preference
        self.interactive = asks

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self._recorder.id

    @property
    def ticket(self) -> str:
        """The ticket this agent works on, or an empty string."""
        return self._config.ticket

    @property
    def depth(self) -> int:
        """How deep this agent is nested."""
        return self._config.depth

    @property
    def memory_folder(self) -> Path:
        """Where dumps of what did not fit go."""
        return self._workspace.folder("memories")

    def output_characters(self, tool_name: str) -> int:
        """How many characters of this tool's outputs are in the live context."""
        return self._conversation.output_characters(tool_name)

    def set_working_dir(self, path: Path) -> None:
        """Move the sandbox root."""
        self._workspace.move(path)

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started."""
        return self._accounts.usage(lifetime=lifetime)

    def leave(self, farewell: str) -> None:
        """Have the interface say this and end, once the turn is over."""
        self._leave(farewell)


class HookView:
    """The `HookContext` of hooks."""

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        processes: Processes,
        mode: Callable[[], Mode],
        send: Callable[[str], None],
    ) -> None:
        self._workspace = workspace
        self._processes = processes
        self.config_folder = config.config_folder
        self._mode = mode
        self.send = send

    @property
    def mode(self) -> Mode:
        """The mode of the session as it is now."""
        return self._mode()

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self._workspace.root

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program in the working directory."""
        return await self._processes.run(argv)
