"""A session as interfaces see it: submit, subscribe, call a tool, resume, close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import ConfigError
from ..api.messages import ToolOutput
from ..api.session import Attached, ChatSettings, Command, SessionSnapshot, TurnResult
from ..api.tools import Mode, ToolSpec
from ..conversation.compactor import Compactor
from . import session_views as views
from .agent import Agent
from .autonomy import Autonomy
from .driver import Driver
from .lifecycle import Lifecycle, rescue
from .parts import SessionParts, close
from .requests.request_builder import RequestBuilder

if TYPE_CHECKING:
    from ..api.events import CallOrigin
    from ..api.processes import Processes
    from .calls.control import SessionPermissions
    from .calls.dispatch import Dispatcher


class Session:
    """One conversation with its tools; `SessionControl` documents the methods."""

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self._hooks = views.hook_runner(parts)
        parts.bus.subscribe(self._hooks.feed)
        self.compactor, self.autonomy = Compactor(parts), Autonomy(parts)
        self._view = views.ToolSessionView(parts, self.compactor, self.autonomy)
        self._requests = RequestBuilder(parts, self._hooks, self.compactor)
        agent = Agent(parts, self._requests, self.compactor, lambda: self.dispatcher, self.autonomy)
        self._driver = Driver(parts, self._hooks, agent, self.compactor)
        self.prompt_parts, self.context_use = self._requests.prompt_parts, self._requests.context_use
        self.accounted, self.standing = self._driver.accounted, self._requests.standing
        self.undo = views.SessionUndo(parts, lambda: self.dispatcher, self._driver.check_free)
        self.sessions = Lifecycle(parts, self._driver)
        self.models, self.toolbox, self.profile, self.pack = parts.model, parts.toolbox, parts.profile, parts.pack
        self.processes: Processes = parts.processes
        self.keys, self.agents, self.person = parts.setup.keys, views.SessionAgents(parts), views.SessionPerson(parts)
        self.usage, self.rescue, self.resource = parts.usage.usage, partial(rescue, parts), parts.resources.get
        own, source = {command.name: command for command in parts.setup.commands}, parts.setup.tool_source
        self.commands: Mapping[str, Command] = own if source is None or not own else source.commands(own)
        self.subscribe, self.resources = self.sessions.subscribe, dict if source is None else source.resources

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Runs calls of tools; not imported in a session without one."""
        from .calls.dispatch import Dispatcher

        return Dispatcher(self.parts, self._hooks, self.compactor, self._view, self.permissions.standing)

    @cached_property
    def permissions(self) -> SessionPermissions:
        """The permission mode; imported on first use."""
        from .calls.control import SessionPermissions

        return SessionPermissions(self.parts)

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self.parts.writer.id

    @property
    def mode(self) -> Mode:
        """The current mode."""
        return self.parts.workspace.mode

    @property
    def working_dir(self) -> Path:
        """The sandbox root."""
        return self.parts.workspace.root

    @property
    def configured(self) -> bool:
        """Whether a model is configured."""
        return self.parts.model.configured

    @property
    def busy(self) -> bool:
        """Whether an answer is running."""
        return self._driver.busy

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The offered tools."""
        return self.parts.toolbox.offered

    def switch_mode(self, mode: Mode) -> None:
        """Switch coding mode on or off. Raises `MarvinError` while an answer runs."""
        self._driver.check_free()
        self.parts.workspace.mode = mode
        self.parts.setup.models.patient(mode == "coding")

    def snapshot(self) -> SessionSnapshot:
        """The current state of the session."""
        return views.snapshot(self.parts, busy=self.busy)

    @property
    def chat(self) -> ChatSettings:
        """The current profile and terminal."""
        return views.chat_settings(self.parts)

    @property
    def farewell(self) -> str | None:
        """The farewell to show when a tool has asked to end the session."""
        return self._view.farewell

    def resume(self, path: Path) -> None:
        """Resume an earlier session before there is an interface; its interrupted calls are given a result."""
        self.sessions.go_on(path)

    async def submit(self, text: str, attached: Attached | None = None) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        if not self.configured:
            return TurnResult(text="", error=ConfigError(self.parts.setup.models.how_to))
        self.sessions.begin(text)
        await self.parts.profile.seed(self.parts.conversation)
        return await self._driver.submit(text, attached or Attached())

    async def retry(self) -> TurnResult:
        """Request the last answer again, without a new message; otherwise as `submit`."""
        if not self.configured:
            return TurnResult(text="", error=ConfigError(self.parts.setup.models.how_to))
        self.sessions.before_retry()
        return await self._driver.submit(None, Attached())

    async def compact(self, target_tokens: int) -> str:
        """Compact the conversation now; returns the message to show. Raises `MarvinError` while an answer runs."""
        self._driver.check_free()
        return await self.compactor.compact(target_tokens)

    async def call_tool(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin = "person") -> ToolOutput:
        """Run one call by hand, in the same way as calls of a model."""
        return await self.dispatcher.by_hand(name, arguments, origin)

    async def close(self) -> None:
        """Close hooks, resources, jobs and connections, in that order, within the configured time limit."""
        await self._driver.settled(self.parts.config.timeouts.close)
        await close(self.parts, first=[self.parts.profile.flush, self._hooks.close])
