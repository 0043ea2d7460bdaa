"""The context that a tool receives: one for each call, over services that live as long as the session."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..api.config import Config
from ..api.errors import ToolError
from ..api.record import Record
from ..api.tool_context import Clock, Paths, Processes
from ..api.tools import Mode, ToolSpec
from ..config.secrets import Secrets
from .resources import Resources

if TYPE_CHECKING:
    import httpx

    from ..api.tool_context import SessionView

T = TypeVar("T")


class Asker(Protocol):
    """Asks the user a question; the answer is one of the choices."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()


class Services(Record):
    """What all calls of a session share. `asker` is None where there is nobody to ask."""

    config: Config
    secrets: Secrets
    paths: Callable[[], Paths]
    processes: Processes
    http: Callable[[], httpx.AsyncClient]
    clock: Clock
    resources: Resources
    session: SessionView
    state: dict[str, dict[str, Any]]
    asker: Asker | None
    mode: Callable[[], Mode]
    profile_folder: Callable[[], Path]


class CallContext:
    """The `ToolContext` of one call."""

    def __init__(self, services: Services, spec: ToolSpec, report: Callable[[str], None]) -> None:
        self._services = services
        self._spec = spec
        self._report = report

    @property
    def paths(self) -> Paths:
        """The sandbox."""
        return self._services.paths()

    @property
    def processes(self) -> Processes:
        """The way to child processes."""
        return self._services.processes

    @property
    def http(self) -> httpx.AsyncClient:
        """The shared HTTP client."""
        return self._services.http()

    @property
    def mode(self) -> Mode:
        """chat or coding."""
        return self._services.mode()

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return self._services.config.home

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile."""
        return self._services.profile_folder()

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._services.clock

    @property
    def state(self) -> dict[str, Any]:
        """What this pack keeps in the session."""
        return self._services.state.setdefault(self._spec.source, {})

    @property
    def session(self) -> SessionView:
        """The session, as far as tools may know it."""
        return self._services.session

    def secret(self, name: str) -> str | None:
        """The value of a declared secret."""
        self._check_declared(name, "secrets", self._spec.secrets)
        self._services.secrets.declare([name])  # what a tool takes as a secret is redacted from now on
        return self._services.secrets.get(name).reveal() or None

    def setting(self, name: str) -> str | None:
        """The value of a declared setting."""
        self._check_declared(name, "settings", self._spec.settings)
        return self._services.secrets.setting(name)

    def _check_declared(self, name: str, declaration: str, declared: Sequence[str]) -> None:
        if name not in declared:
            raise ToolError(
                f"{self._spec.name} asked for {name}, which it does not declare. Add it to @tool({declaration}=[...])."
            )

    def progress(self, text: str) -> None:
        """Tell the user how far the call is."""
        self._report(text)

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user."""
        if self._services.asker is None:
            raise ToolError(f"Nobody is there to answer {question!r}. Go on without it, or say what is missing.")
        return await self._services.asker(question, choices)

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory yields, once a session."""
        return await self._services.resources.get(factory)
