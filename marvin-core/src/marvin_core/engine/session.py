"""A session as interfaces see it: submit, subscribe, call a tool, resume, close."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError
from ..api.events import Event, Unsubscribe
from ..api.messages import ToolCall, ToolOutput
from ..api.session import ChatSettings, Command, TurnResult
from ..api.tool_context import Processes, UsageSummary
from ..api.tools import Mode, ToolSpec
from ..profiles.session_profile import SessionProfile
from ..tools.toolbox import Toolbox
from .active_model import ActiveModel
from .autonomy import Autonomy
from .engine import Engine, Ingredients
from .lifecycle import Lifecycle
from .system_prompt import Part


class Session:
    """One conversation with its tools; `SessionControl` says what interfaces may do with it."""

    def __init__(self, given: Ingredients) -> None:
        self._given = given
        self._engine = Engine(given)
        self._early: list[Event] = []
        self.models: ActiveModel = self._engine.model
        self.toolbox: Toolbox = self._engine.toolbox
        self.autonomy: Autonomy = self._engine.autonomy
        self.profile: SessionProfile = self._engine.profile
        self.archive: Lifecycle = self._engine.lifecycle
        self.processes: Processes = self._engine.processes
        self.compact = self._engine.compact
        self.commands: Mapping[str, Command] = {command.name: command for command in given.commands}

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self._engine.recorder.id

    @property
    def mode(self) -> Mode:
        """Which mode is on."""
        return self._engine.mode

    @property
    def working_dir(self) -> Path:
        """The sandbox root."""
        return self._engine.workspace.root

    @property
    def configured(self) -> bool:
        """Whether a model answers."""
        return self._engine.model.configured

    @property
    def busy(self) -> bool:
        """Whether an answer is running."""
        return self._engine.driver.busy

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools on offer."""
        return self._engine.toolbox.offered

    def switch_mode(self, mode: Mode) -> None:
        """Go over to coding mode, or back. Raises `MarvinError` while an answer runs."""
        self._engine.switch_mode(mode)

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Have every event from now on passed to the listener; the first one also gets those of `resume`."""
        early, self._early = self._early, []
        for event in early:
            listener(event)
        return self._engine.bus.subscribe(listener)

    @property
    def chat(self) -> ChatSettings:
        """The profile and the terminal, as configured now."""
        return self._engine.chat_settings()

    @property
    def farewell(self) -> str | None:
        """What to say on leaving, once a tool asked to leave."""
        return self._engine.farewell

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started. Blocks where a price is looked up: call it in a thread."""
        return self._engine.accounts.usage(lifetime=lifetime)

    async def prompt_parts(self) -> Sequence[Part]:
        """The parts of the system prompt that the next request would carry."""
        return await self._engine.prompt_parts()

    def resume(self, path: Path) -> None:
        """Go on with an earlier session before there is an interface; its interrupted calls are given an output."""
        stop_keeping = self._engine.bus.subscribe(self._early.append)
        try:
            self._engine.lifecycle.open(path)
        finally:
            stop_keeping()

    async def submit(self, text: str) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        if not self.configured:
            return TurnResult(text="", error=ConfigError(self._given.models.how_to))
        self._engine.lifecycle.begin(text)
        await self._engine.profile.seed(self._engine.conversation)
        return await self._engine.driver.submit(text)

    async def retry(self) -> TurnResult:
        """Ask the model for its last answer again, without a new message; otherwise as `submit`."""
        if not self.configured:
            return TurnResult(text="", error=ConfigError(self._given.models.how_to))
        self._engine.lifecycle.before_retry()
        return await self._engine.driver.retry()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run one call by hand, through the same dispatch as a model's."""
        return await self._engine.dispatcher.call(ToolCall(id="by_hand", name=name, arguments=json.dumps(arguments)))

    async def close(self) -> None:
        """End hooks, resources, jobs and connections, in that order, within the time that config allows."""
        await self._engine.close()

    def kill(self) -> None:
        """Kill every child process at once; for leaving without `close`."""
        self._engine.processes.kill()
