"""What a session is given from outside, as protocols; nothing of it is imported where a session runs."""

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
    from ..http.proxy_thread import Decide, ProxyThread
    from ..usage.budget import Budget


class Asker(Protocol):
    """Asks the user a question; the answer is one of the choices."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class TextAsker(Protocol):
    """Asks the user a question that may be answered in any words; the choices are suggestions."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class ToolSource(Protocol):
    """Where tools come from that no module of a pack has, such as servers."""

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a spec; None for one of somebody else's. Blocks."""
        ...

    async def ready(self) -> None:
        """Called before each prompt: what is not known yet may be looked for, for a short time."""
        ...

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The slash commands by their names: the session's own, and those that it brings at the moment of each look."""
        ...

    def resources(self) -> Mapping[str, str]:
        """What can be attached of it: what each is, as it is written behind `@`."""
        ...


class Permitter(Protocol):
    """Asks the user about calls, in a form of the interface's own."""

    async def __call__(self, question: Question, /) -> Sequence[Reply]: ...


class ToolClients(Protocol):
    """Where tools get their HTTP client from."""

    def for_tools(self) -> httpx.AsyncClient:
        """The client that all tools share."""
        ...

    def proxy(self, decide: Decide) -> ProxyThread:
        """A proxy for programs, on the network as the tools have it and no further than `decide` lets them."""
        ...

    def refused_host(self, url: str) -> str:
        """The host of a URL that tools do not reach, as it is of this machine or a private network. Blocks."""
        ...

    def trust(self, url: str) -> None:
        """Let tools reach the server at this URL, which the user named in a setting."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class BudgetSource(Protocol):
    """Where budgets beside the one of the run come from."""

    def of(self, dollars: float) -> Budget:
        """A budget of this many USD; what is spent counts under the ceiling of the run as well."""
        ...


class SessionPack(PackContext, Protocol):
    """What the code of a pack reaches of its own, and which pack that is."""

    @property
    def name(self) -> str:
        """Its name, in config.yaml and to people."""
        ...

    @property
    def distribution(self) -> str:
        """The distribution that brings it; what it keeps in a session goes by that."""
        ...

    def given(self) -> Mapping[str, Any]:
        """What the user set of its settings."""
        ...

    @property
    def secrets(self) -> Collection[str]:
        """The variables that are its secrets."""
        ...


class PackSource(Protocol):
    """The packs, by what they bring."""

    def of_tool(self, spec: ToolSpec) -> SessionPack:
        """The pack that brings a tool."""
        ...

    def of_hook(self, hook: Hook) -> SessionPack:
        """The pack that registered a hook."""
        ...

    def of_provider(self, name: str) -> str:
        """The name of the pack that brings a provider; empty where that is the core, or config.yaml."""
        ...

    def named(self, name: str) -> SessionPack:
        """The pack of this name. Raises `ConfigError` where none is in use."""
        ...
