"""The context that a tool receives: one for each call, over services that live as long as the session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...api.errors import ConfigError, MarvinError, ToolError
from ...api.events import ToolExecutionUpdate
from ...api.tool_context import Clock, PackFolders, Paths, Processes, SessionView
from ...api.tools import Mode, ToolSpec
from ...config.secrets import REQUIRED
from ...guard.redaction import redacted
from ...util.numbers import amount
from ...util.text import storable
from ..parts import SessionPack, SessionParts
from ..session_views import trust_addresses
from .timer import CallTimer

if TYPE_CHECKING:
    import httpx

    from ...api.settings import Settings

T = TypeVar("T")
D = TypeVar("D")
S = TypeVar("S", bound="Settings")


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
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False

    def end(self) -> None:
        """The call has its output: nothing more is told of it, by a thread that it left behind either."""
        self._over = True

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

    @property
    def _pack(self) -> SessionPack:
        return self._parts.setup.packs().of_tool(self._spec)

    @property
    def folders(self) -> PackFolders:
        """The folders of the pack."""
        return self._pack.folders

    def settings(self, model: type[S]) -> S:
        """The settings of the pack. Tools reach the addresses that the user set there."""
        pack = self._pack
        try:
            found = pack.settings(model)
        except MarvinError as error:
            raise ToolError(str(error)) from error
        trust_addresses(pack.given(), self._parts.setup.clients)
        return found

    @overload
    def secret(self, name: str) -> str: ...
    @overload
    def secret(self, name: str, default: None) -> str | None: ...
    @overload
    def secret(self, name: str, default: D) -> str | D: ...
    def secret(self, name: str, default: Any = REQUIRED) -> Any:
        """The value of a declared secret."""
        try:
            if name in self._spec.secrets:
                return self._parts.setup.secrets.value(name, default=default)
            pack = self._pack
            if pack.declares(name):
                return pack.secret(name, default)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        raise self._undeclared(name, "secrets")

    def setting(self, name: str) -> str | None:
        """The value of a declared setting."""
        if name not in self._spec.settings:
            raise self._undeclared(name, "settings")
        value = self._parts.setup.secrets.setting(name)
        if value and "://" in value:
            self._parts.setup.clients.trust(value)
        return value

    def _undeclared(self, name: str, declaration: str) -> ToolError:
        return ToolError(
            f"{self._spec.name} asked for {name}, which it does not declare. Add it to @tool({declaration}=[...])."
        )

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell the user how far the call is; a number that cannot be one is left out."""
        told = redacted(_text(text), self._parts.setup.secrets.known())
        done, total = amount(done), amount(total)
        if done is not None and total is not None:
            done = min(done, total)
        update = ToolExecutionUpdate(call_id=self._call_id, name=self._spec.name, text=told, done=done, total=total)
        if threading.get_ident() == self._thread:
            self._tell(update)
        else:
            with suppress(RuntimeError):  # the loop is closed: the session is over
                self._loop.call_soon_threadsafe(self._tell, update)

    def _tell(self, update: ToolExecutionUpdate) -> None:
        if not self._over:
            self._parts.bus.emit(update)

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the call's time-out waits for the answer."""
        if self._parts.setup.asker is None:
            raise ToolError(f"Nobody is there to answer {question!r}. Go on without it, or say what is missing.")
        with self._timer.stopped():
            return await self._parts.setup.asker(question, choices)

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory yields, once a session."""
        return await self._parts.resources.get(factory)


def _text(given: object) -> str:
    """What a tool tells as text that every interface can show: packs give numbers and None at times."""
    if isinstance(given, str):
        return storable(given)
    from ...util.plain_data import as_text

    return as_text(given)
