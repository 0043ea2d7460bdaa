"""Protocols for the dependencies of a session, so that it imports no implementation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..api.tool_context import PackContext

if TYPE_CHECKING:
    import httpx

    from ..api.hooks import Hook
    from ..api.permissions import Question, Reply
    from ..api.session import Command
    from ..api.tools import Tool, ToolSpec
    from ..http.filter_proxy import NoteRefused
    from ..http.proxy_thread import Decide, ProxyThread
    from ..usage.budget import Budget


class Asker(Protocol):
    """Asks the user a question with fixed choices."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class TextAsker(Protocol):
    """Asks the user for free text; the choices are suggestions."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class ToolSource(Protocol):
    """Loads tools that are in no module of a pack, such as those of servers."""

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a specification; None for one of another source. Blocks."""
        ...

    async def ready(self) -> None:
        """Called before each prompt: may look for new tools, for a short time."""
        ...

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The current slash commands by name."""
        ...

    def resources(self) -> Mapping[str, str]:
        """Resources that can be attached: a description by the text behind `@`."""
        ...


class Permitter(Protocol):
    """Asks the user for approval of calls, in a form of the interface."""

    async def __call__(self, question: Question, /) -> Sequence[Reply]: ...


class ToolClients(Protocol):
    """Creates the HTTP client of tools."""

    def for_tools(self) -> httpx.AsyncClient:
        """The client that all tools share."""
        ...

    def proxy(self, decide: Decide, note_refused: NoteRefused = ...) -> ProxyThread:
        """A proxy for programs, with the network access of the tools, restricted to hosts that `decide` allows."""
        ...

    def refused_host(self, url: str) -> str:
        """The host of a URL, if tools cannot reach it because it is of this machine or a private network. Blocks."""
        ...

    def trust(self, url: str) -> None:
        """Allow tools to reach the server at this URL, which the user named in a setting."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class BudgetSource(Protocol):
    """Creates further budgets beside that of the run."""

    def of(self, dollars: float) -> Budget:
        """A budget of this many USD, which counts under the ceiling of the run as well."""
        ...


class SessionPack(PackContext, Protocol):
    """The identity, settings, secrets and folders of a pack."""

    @property
    def name(self) -> str:
        """Its name, in config.yaml and to people."""
        ...

    @property
    def distribution(self) -> str:
        """Its distribution, the key of its session state."""
        ...

    def given(self) -> Mapping[str, Any]:
        """The values that the user has set."""
        ...

    @property
    def secrets(self) -> Collection[str]:
        """The variables of its secrets."""
        ...


class PackSource(Protocol):
    """Finds packs by their registered objects."""

    def of_tool(self, spec: ToolSpec) -> SessionPack:
        """The pack of a tool."""
        ...

    def of_hook(self, hook: Hook) -> SessionPack:
        """The pack of a hook."""
        ...

    def of_provider(self, name: str) -> str:
        """The name of the pack of a provider; empty for one of the core or of config.yaml."""
        ...

    def named(self, name: str) -> SessionPack:
        """The pack of this name. Raises `ConfigError` if none is in use."""
        ...
