"""The context that a tool receives: one for each call, over services that live as long as the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...api.errors import ToolError
from ...api.events import ToolExecutionUpdate
from ...api.tool_context import Clock, Paths, Processes, SessionView
from ...api.tools import Mode, ToolSpec
from ...guard.redaction import redacted
from ...util.numbers import amount
from ..parts import SessionParts
from .timer import CallTimer

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class CallContext:
    """The `ToolContext` of one call."""

    def __init__(
        self, parts: SessionParts, session: SessionView, spec: ToolSpec, call_id: str, timer: CallTimer
    ) -> None:
        self._parts = parts
        self._session = session
        self._spec = spec
        self._call_id = call_id
        self._timer = timer

    @property
    def paths(self) -> Paths:
        """The sandbox."""
        return self._parts.workspace.paths

    @property
    def processes(self) -> Processes:
        """The way to child processes."""
        return self._parts.processes

    @property
    def http(self) -> httpx.AsyncClient:
        """The shared HTTP client."""
        return self._parts.setup.clients.for_tools()

    @property
    def mode(self) -> Mode:
        """chat or coding."""
        return self._parts.workspace.mode

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return self._parts.config.home

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile."""
        return self._parts.profile.folder

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._parts.clock

    @property
    def state(self) -> dict[str, Any]:
        """What this pack keeps in the session."""
        return self._parts.state.setdefault(self._spec.source, {})

    @property
    def session(self) -> SessionView:
        """The session, as far as tools may know it."""
        return self._session

    def secret(self, name: str) -> str | None:
        """The value of a declared secret."""
        self._check_declared(name, "secrets", self._spec.secrets)
        self._parts.setup.secrets.declare([name])  # what a tool takes as a secret is redacted from now on
        return self._parts.setup.secrets.get(name).reveal() or None

    def setting(self, name: str) -> str | None:
        """The value of a declared setting."""
        self._check_declared(name, "settings", self._spec.settings)
        value = self._parts.setup.secrets.setting(name)
        if value and "://" in value:
            self._parts.setup.clients.trust(value)
        return value

    def _check_declared(self, name: str, declaration: str, declared: Sequence[str]) -> None:
        if name not in declared:
            raise ToolError(
                f"{self._spec.name} asked for {name}, which it does not declare. Add it to @tool({declaration}=[...])."
            )

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell the user how far the call is; a number that cannot be one is left out."""
        told = redacted(text, self._parts.setup.secrets.known())
        done, total = amount(done), amount(total)
        if done is not None and total is not None:
            done = min(done, total)
        self._parts.bus.emit(
            ToolExecutionUpdate(call_id=self._call_id, name=self._spec.name, text=told, done=done, total=total)
        )

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the call's time-out waits for the answer."""
        if self._parts.setup.asker is None:
            raise ToolError(f"Nobody is there to answer {question!r}. Go on without it, or say what is missing.")
        with self._timer.stopped():
            return await self._parts.setup.asker(question, choices)

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory yields, once a session."""
        return await self._parts.resources.get(factory)
