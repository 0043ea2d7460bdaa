"""What a session is made of, and putting it together. `Session` gives these parts their work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..api.config import Config
from ..api.events import MessageEnd, MessageOrigin, MessageStart
from ..api.hooks import Hook
from ..api.messages import Message, ToolOutput, tool
from ..api.models import ModelSource
from ..api.record import Record
from ..api.session import Command, RunningCall
from ..api.tool_context import PackContext
from ..api.tools import ToolSpec
from ..config.secrets import Secrets
from ..conversation.conversation import Conversation
from ..guard.files.workspace import Workspace
from ..guard.processes.runner import ProcessRunner
from ..guard.redaction import redacted
from ..profiles.session_profile import SessionProfile
from ..sessions.writer import SessionWriter
from ..tools.toolbox import Toolbox
from ..usage.meter import UsageMeter
from ..usage.summary import UsageTotals
from ..util.bus import Bus
from ..util.clock import SystemClock
from ..util.failures import is_failure, told
from .active_model import ActiveModel
from .assembly import Assembly
from .inbox import Inbox
from .resources import Resources

if TYPE_CHECKING:
    import httpx

    from ..usage.budget import Budget


class Asker(Protocol):
    """Asks the user a question; the answer is one of the choices."""

    async def __call__(self, question: str, choices: Sequence[str], /) -> str: ...


class ToolClients(Protocol):
    """Where tools get their HTTP client from."""

    def for_tools(self) -> httpx.AsyncClient:
        """The client that all tools share."""
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

    def declares(self, secret: str) -> bool:
        """Whether a variable is among its secrets."""
        ...


class PackSource(Protocol):
    """The packs, by what they bring."""

    def of_tool(self, spec: ToolSpec) -> SessionPack:
        """The pack that brings a tool."""
        ...

    def of_hook(self, hook: Hook) -> SessionPack:
        """The pack that registered a hook."""
        ...

    def named(self, name: str) -> SessionPack:
        """The pack of this name. Raises `ConfigError` where none is in use."""
        ...


class SessionSetup(Record):
    """What a session is given. `asker` is None where nobody is there to ask.

    `packs` is called where the code of a pack asks for what is its own.
    """

    config: Config
    secrets: Secrets
    tools: Sequence[ToolSpec]
    hooks: Sequence[Hook]
    commands: Sequence[Command]
    models: ModelSource
    clients: ToolClients
    packs: Callable[[], PackSource]
    meter: UsageMeter
    budgets: BudgetSource
    asker: Asker | None
    budget: Budget | None = None
    """The cost ceiling of the run, if there is one; the models' requests are paid under it already."""


class Progress:
    """What is under way in a session: the answer that is coming in, the calls that run, and what went wrong last."""

    def __init__(self) -> None:
        self.answer: Assembly | None = None
        self.calls: dict[str, RunningCall] = {}
        self.outputs: tuple[ToolOutput, ...] = ()
        """Those of the round, once its calls are over."""
        self.error: Exception | None = None


class SessionParts(Record):
    """The parts of one session that hold its state."""

    setup: SessionSetup
    bus: Bus
    clock: SystemClock
    workspace: Workspace
    writer: SessionWriter
    conversation: Conversation
    profile: SessionProfile
    usage: UsageTotals
    model: ActiveModel
    processes: ProcessRunner
    toolbox: Toolbox
    resources: Resources
    inbox: Inbox
    progress: Progress
    state: dict[str, dict[str, Any]]
    """What packs keep in the session, by their distribution."""

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.setup.config

    def pack(self, name: str) -> PackContext:
        """What the code of a pack reaches of its own. Raises `ConfigError` where none of this name is in use."""
        return self.setup.packs().named(name)

    def give(self, outputs: Sequence[ToolOutput]) -> None:
        """Add the outputs of the calls of a round to the conversation."""
        self.conversation.append(tool(outputs))
        self.progress.outputs = tuple(outputs)

    def take(self, message: Message, origin: MessageOrigin) -> None:
        """Add a message for the model to the conversation, and tell of it."""
        self.bus.emit(MessageStart(role="user", origin=origin))
        self.conversation.append(message)
        self.bus.emit(MessageEnd(message=message, stop_reason="stop", origin=origin))

    @property
    def meter(self) -> UsageMeter:
        """What counts model requests."""
        return self.setup.meter


def build(setup: SessionSetup) -> SessionParts:
    """The parts of a new session."""
    config = setup.config
    bus = Bus(lambda text: str(redacted(text, setup.secrets.known())))
    clock, workspace = SystemClock(), Workspace(config)
    writer = SessionWriter(config.data_folder / "sessions", config.timeouts, bus.warn, config.limits.session_line)
    profile = SessionProfile(config, bus, clock, workspace)
    usage = UsageTotals(setup.meter, config.config_folder / "usage.json", config.timeouts, setup.budget)
    bus.subscribe(usage.listen)
    processes = _processes(setup, workspace, bus)
    return SessionParts(
        setup=setup,
        bus=bus,
        clock=clock,
        workspace=workspace,
        writer=writer,
        conversation=Conversation(writer),
        profile=profile,
        usage=usage,
        model=ActiveModel(setup.models, writer, bus, config, restarts=setup.asker is not None),
        processes=processes,
        toolbox=Toolbox(setup.tools, config, processes, setup.secrets),
        resources=Resources(),
        inbox=Inbox(bus, chat=setup.asker is not None),
        progress=Progress(),
        state={},
    )


def _processes(setup: SessionSetup, workspace: Workspace, bus: Bus) -> ProcessRunner:
    environment = setup.secrets.child_environment()
    if setup.budget is not None:
        setup.budget.warn = bus.warn
        environment.update(setup.budget.child_environment())
    return ProcessRunner(workspace, environment, setup.config.timeouts)


async def close(parts: SessionParts, *, first: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """End what comes `first`, then resources, jobs and connections, in that order.

    Each may take as long as config allows; the bus is told of what could not be ended.
    """
    setup = parts.setup
    steps: list[Callable[[], Awaitable[Sequence[BaseException] | None]]]
    steps = [*first, parts.inbox.ended, parts.writer.finish]
    steps += [parts.resources.close, parts.processes.close, setup.clients.close, setup.models.aclose]
    for step in [*steps, *([setup.budget.aclose] if setup.budget else [])]:
        try:
            async with asyncio.timeout(parts.config.timeouts.close):
                failures = await step() or ()
        except BaseException as error:  # one that fails must not keep the others open
            if not is_failure(error):
                raise
            failures = (error,)
        for failure in failures:
            parts.bus.warn(f"While closing: {_reason(failure)}")


def _reason(failure: BaseException) -> str:
    if isinstance(failure, TimeoutError) and told(failure) == "TimeoutError":
        return "something took longer than `timeouts.close` in config.yaml allows, and was left as it was."
    return told(failure)
