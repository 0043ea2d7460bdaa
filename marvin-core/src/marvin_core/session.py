"""A session as interfaces see it: submit, subscribe, call a tool, resume, close."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .engine import Engine, Ingredients
from .errors import ConfigError
from .events import AppStart, Event, SessionResume, SessionStart, Unsubscribe
from .messages import ToolCall, ToolOutput
from .toolbox import Toolbox
from .tools import ToolSpec
from .transcript import heal, load
from .ui.base import Command, TurnResult


class Session:
    """One conversation with its tools; `SessionControl` says what interfaces may do with it."""

    def __init__(self, given: Ingredients) -> None:
        self._given = given
        self._engine = Engine(given)
        self._early: list[Event] = []
        self.commands: Mapping[str, Command] = {command.name: command for command in given.commands}

    @property
    def id(self) -> str:
        """The session's id; empty before its first prompt."""
        return self._engine.recorder.id

    @property
    def provider_name(self) -> str:
        """The model service, or an empty string."""
        return self._given.provider.name if self._given.provider else ""

    @property
    def model(self) -> str:
        """The model, or an empty string."""
        return self._given.provider.model if self._given.provider else ""

    @property
    def working_dir(self) -> Path:
        """The sandbox root."""
        return self._engine.workspace.root

    @property
    def configured(self) -> bool:
        """Whether a model answers."""
        return self._given.provider is not None

    @property
    def busy(self) -> bool:
        """Whether an answer is running."""
        return self._engine.driver.busy

    @property
    def toolbox(self) -> Toolbox:
        """The tools on offer, and why the others are not."""
        return self._engine.toolbox

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools on offer."""
        return self._engine.toolbox.offered

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Have every event from now on passed to the listener; the first one also gets those of `resume`."""
        early, self._early = self._early, []
        for event in early:
            listener(event)
        return self._engine.bus.subscribe(listener)

    def resume(self, path: Path) -> None:
        """Go on with an earlier session; its interrupted calls are given an output."""
        loaded = load(path)
        messages, healed = heal(loaded.messages)
        self._engine.recorder.resume(path, loaded)
        self._engine.conversation.load(messages)
        self._engine.state.update(loaded.state)
        # A session is resumed before there is an interface that could listen.
        stop_keeping = self._engine.bus.subscribe(self._early.append)
        self._engine.bus.emit(AppStart(version=__version__))
        for problem in loaded.problems:
            self._engine.warn(problem)
        self._engine.bus.emit(
            SessionResume(
                session_id=self.id,
                provider=self.provider_name,
                model=self.model,
                messages=len(messages),
                healed=healed,
            )
        )
        stop_keeping()

    async def submit(self, text: str) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        if not self.configured:
            return TurnResult(text="", error=ConfigError(self._given.how_to))
        if not self.id:
            root = str(self.working_dir)
            self._engine.bus.emit(AppStart(version=__version__))
            self._engine.recorder.begin(self._engine.clock.now(), text, self.provider_name, self.model, root)
            self._engine.bus.emit(
                SessionStart(session_id=self.id, provider=self.provider_name, model=self.model, working_dir=root)
            )
        return await self._engine.driver.submit(text)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run one call by hand, through the same dispatch as a model's."""
        return await self._engine.dispatcher.call(ToolCall(id="by_hand", name=name, arguments=json.dumps(arguments)))

    async def close(self) -> None:
        """End hooks, resources, jobs and connections, in that order, within the time that config allows."""
        await self._engine.close()

    def kill(self) -> None:
        """Kill every child process at once; for leaving without `close`."""
        self._engine.processes.kill()
