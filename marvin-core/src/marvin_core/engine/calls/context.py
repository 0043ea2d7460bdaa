"""The context that a tool receives: one for each call, over services that live as long as the session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...api.errors import ConfigError, MarvinError, ToolError
from ...api.events import CallOrigin, ToolExecutionUpdate
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...api.tool_context import Clock, PackFolders, Paths, SessionView, ToolContext
from ...api.tools import Mode, ToolSpec
from ...config.secrets import SecretAccess
from ...guard.files.watching import WatchedPaths
from ...guard.undo.changes import Changes
from ...util.numbers import amount
from ...util.text import storable
from ...util.threads import in_thread
from ..parts import SessionParts
from ..session_views import trust_addresses
from .folders import FoldersOfCall
from .processes import CallProcesses
from .timer import CallTimer

if TYPE_CHECKING:
    import httpx

    from ...api.agents import Agents
    from ...api.settings import Settings
    from ..ports import Asker, SessionPack

T = TypeVar("T")

_LET = ("yes", "no")
_OF_PERSONS = ("person", "typed", "router")
"""The origins of calls whose arguments a person wrote."""
S = TypeVar("S", bound="Settings")


class ContextOfCall(Record):
    """The properties of one call: its id, its caller, its time, and whether its programs leave the sandbox."""

    id: str
    origin: CallOrigin
    timer: CallTimer
    outside: bool = False


class CallContext(SecretAccess):
    """The `ToolContext` of one call."""

    def __init__(
        self,
        parts: SessionParts,
        session: SessionView,
        spec: ToolSpec,
        call: ContextOfCall,
    ) -> None:
        self._parts = parts
        self._processes = CallProcesses(parts.processes, call.timer, outside=call.outside)
        self._session = session
        self._spec = spec
        self._call_id = call.id
        self._origin = call.origin
        self._timer = call.timer
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False
        self.changes = Changes(parts.config.limits.undo_file)

    def end(self) -> None:
        """The call has its output: suppress later reports, including those of a thread that it left running."""
        self._over = True

    @property
    def processes(self) -> CallProcesses:
        """The programs of this call."""
        return self._processes

    @property
    def agents(self) -> Agents:
        """Access to sub-agents."""
        from .agents import CallAgents

        return CallAgents(self._parts, self._timer)

    @property
    def paths(self) -> Paths:
        """The sandbox."""
        return WatchedPaths(self._parts.workspace.paths, self.changes)

    @property
    def http(self) -> httpx.AsyncClient:
        """The shared HTTP client."""
        return self._parts.setup.clients.for_tools()

    async def may_reach(self, url: str) -> None:
        """Let tools reach an address that a person typed or approves."""
        clients = self._parts.setup.clients
        host = await in_thread(lambda: clients.refused_host(url))
        if not host:
            return
        if self._origin not in _OF_PERSONS:
            question = (
                f"{self._spec.name} wants to reach {url}, which is on this machine or in a private network. Allow "
                f"tools to reach {host} in this session?"
            )
            try:
                if await self.ask(question, _LET) != _LET[0]:
                    return
            except ToolError:  # nobody can be asked: the request itself reports the error
                return
        clients.trust(url)

    async def proxied(self) -> Mapping[str, str]:
        """The variables that direct a program's requests to a proxy."""
        from .proxied import Leading

        try:
            return dict(await self._parts.resources.get(Leading(self._parts.setup.clients)))
        except (ConfigError, OSError) as error:
            raise ToolError(f"Programs cannot be connected to the network: {error} Tell the user.") from error

    @property
    def origin(self) -> CallOrigin:
        """The origin of the call."""
        return self._origin

    @property
    def time_left(self) -> float:
        """Seconds until the call is stopped."""
        return self._timer.left

    @property
    def mode(self) -> Mode:
        """The mode: chat or coding."""
        return self._parts.workspace.mode

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return self._parts.config.home

    @property
    def config_folder(self) -> Path:
        """The folder of config.yaml."""
        return self._parts.config.config_folder

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
        """The state of this pack in the session."""
        return self._parts.state.setdefault(self._spec.source, {})

    @property
    def session(self) -> SessionView:
        """The session, as far as tools may see it."""
        return self._session

    @property
    def _pack(self) -> SessionPack:
        return self._parts.setup.packs().of_tool(self._spec)

    @property
    def timeouts(self) -> Timeouts:
        """The user's time limits."""
        return self._parts.config.timeouts

    @property
    def folders(self) -> PackFolders:
        """The folders of the pack."""
        return FoldersOfCall(self._pack.folders)

    def settings(self, model: type[S]) -> S:
        """The settings of the pack. Tools may reach the addresses in them."""
        pack = self._pack
        try:
            found = pack.settings(model)
        except MarvinError as error:
            raise ToolError(str(error)) from error
        trust_addresses(pack.given(), self._parts.setup.clients)
        return found

    async def fetch_secrets(self) -> None:
        """Load the tool's secrets from the keyring in advance, since tools read them in the event loop."""
        if self._parts.setup.secrets.in_keyring:
            await self._parts.fetch_secrets((*self._spec.secrets, *self._pack.secrets))

    def _secret(self, name: str, default: Any) -> Any:
        try:
            if name in self._spec.secrets:
                return self._parts.setup.secrets.value(name, default=default)
            pack = self._pack
            if name in pack.secrets:
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
        """Report the progress of the call to the user; an invalid number is left out."""
        told = self._parts.redactor.text(_text(text))
        done, total = amount(done), amount(total)
        if done is not None and total is not None:
            done = min(done, total)
        update = ToolExecutionUpdate(call_id=self._call_id, name=self._spec.name, text=told, done=done, total=total)
        if threading.get_ident() == self._thread:
            self._tell(update)
        else:
            with suppress(RuntimeError):  # the loop is closed: the session has ended
                self._loop.call_soon_threadsafe(self._tell, update)

    def _tell(self, update: ToolExecutionUpdate) -> None:
        if not self._over:
            self._parts.bus.emit(update)

    def reading(self, folder: Path) -> ToolContext:
        """The same context for another folder, which is read-only."""
        if not folder.is_dir():
            raise ToolError(f"{str(folder)!r} is not a folder.")
        return ContextElsewhere(self, self._parts.workspace.paths_of(folder, reading=True))

    def writing(self, folder: Path) -> ToolContext:
        """The same context for another folder, whose files are written and undone like those of the session's own."""
        if self._parts.workspace.playing:
            raise ToolError(f"In play mode, {folder} is neither read nor changed. Work in the playground.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"{folder} cannot be created: {error.strerror}. Ask the user to create it.") from error
        return ContextElsewhere(self, WatchedPaths(self._parts.workspace.paths_of(folder), self.changes))

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the call's time-out is paused meanwhile."""
        return await self._asked(self._parts.setup.asker, question, choices)

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user for free text; the call's time-out is paused meanwhile."""
        setup = self._parts.setup
        if setup.asker is not None and setup.text_asker is None and not choices:
            raise ToolError("The current interface accepts no free text as an answer. Ask with choices.")
        return await self._asked(setup.text_asker or setup.asker, question, choices)

    async def _asked(self, ask: Asker | None, question: str, choices: Sequence[str]) -> str:
        if self._parts.setup.asker is None or ask is None or self._parts.workspace.playing:
            raise ToolError(
                f"Nobody can answer {question!r} in this run. Continue without an answer, or say what is missing."
            )
        with self._timer.stopped():
            from ...util.terminal_text import exact

            clean = self._parts.redactor.text
            asked, shown = exact(clean(question)), [exact(clean(choice)) for choice in choices]
            answer = await ask(asked, shown)
        return choices[shown.index(answer)] if answer in shown else answer

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """The resource that the factory yields, created once per session."""
        return await self._parts.resources.get(factory)


class ContextElsewhere(CallContext):
    """Everything that the context of a call provides, except the files: those of another folder."""

    def __init__(self, context: CallContext, paths: Paths) -> None:
        self.__dict__.update(vars(context))
        self._call = context
        self._elsewhere = paths

    @property
    def paths(self) -> Paths:
        """The files of the folder."""
        return self._elsewhere

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Called by the call itself when it has ended."""
        self._call.progress(text, done, total)


def _text(given: object) -> str:
    """A tool's report as text that every interface can show: packs sometimes give numbers and None."""
    if isinstance(given, str):
        return storable(given)
    from ...util.plain_data import as_text

    return as_text(given)
