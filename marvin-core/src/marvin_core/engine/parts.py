"""What a session is made of, and putting it together. `Session` gives these parts their work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..api.errors import ConfigError
from ..api.events import MessageEnd, MessageOrigin, MessageStart
from ..api.messages import Message, ToolOutput, tool
from ..api.record import Record
from ..conversation.conversation import Conversation
from ..conversation.window import ToolSizes
from ..guard.files.workspace import Workspace
from ..guard.gates.agents import child_variables
from ..guard.kept_texts import KeptTexts
from ..guard.processes.runner import ProcessRunner
from ..guard.redaction import Redactor
from ..guard.sandbox.lazily import LazySandbox
from ..profiles.session_profile import SessionProfile
from ..sessions.writer import SessionWriter
from ..tools.carried_tools import CarriedTools, Surroundings
from ..tools.toolbox import Offer, Toolbox
from ..usage.meter import UsageMeter
from ..usage.summary import UsageTotals
from ..util.bus import Bus
from ..util.clock import SystemClock
from ..util.failures import is_failure, told
from ..util.threads import in_thread
from .active_model import ActiveModel
from .assembly import Assembly
from .inbox import Inbox
from .resources import Resources

if TYPE_CHECKING:
    from pathlib import Path

    from ..api.config import Config
    from ..api.controls import SaidEntry
    from ..api.hooks import Hook
    from ..api.models import KeyControl, ModelSource
    from ..api.session import Command, RunningCall
    from ..api.tool_context import PackContext
    from ..api.tools import ToolSpec
    from ..api.ui import UI
    from ..config.secrets import Secrets
    from ..guard.processes.apart import ApartJobs
    from ..usage.budget import Budget
    from .agents.service import AgentService
    from .network import SessionNetwork
    from .ports import Asker, BudgetSource, PackSource, Permitter, TextAsker, ToolClients, ToolSource


def _no_keys() -> KeyControl:
    raise ConfigError("Keys cannot be set here. Set the variable of the key, and restart Marvin.")


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
    permit: Permitter | None = None
    """How calls are asked about; without it, as text by `asker`."""
    text_asker: TextAsker | None = None
    """How a text is asked for; without it there are choices alone."""
    ui: UI | None = None
    """The interface, for what only some of them can do."""
    lost_tools: Mapping[str, str] = MappingProxyType({})
    """By the names of tools whose packs could not be loaded: which pack, and why."""
    data_folders: Mapping[str, str] = MappingProxyType({})
    """The folders of packs that may have data, by the names of the packs."""
    foreign_tools: Collection[str] = frozenset()
    """The names of tools whose descriptions neither Marvin nor the user wrote."""
    budget: Budget | None = None
    """The cost ceiling of the run, if there is one; the models' requests are paid under it already."""
    tool_source: ToolSource | None = None
    """Where tools come from that no module of a pack has."""
    keys: Callable[[], KeyControl] = _no_keys
    """The keys of the services; called where the user wants to change one."""


class Progress:
    """What is under way in a session: the answer that is coming in, the calls that run, and what went wrong last."""

    def __init__(self) -> None:
        self.answer: Assembly | None = None
        self.calls: dict[str, RunningCall] = {}
        self.outputs: tuple[ToolOutput, ...] = ()
        """Those of the round, once its calls are over."""
        self.error: Exception | None = None
        self.replay: Sequence[SaidEntry] = ()
        """The end of what was said before, until the first prompt here."""
        self.prompts: list[tuple[str, float, str]] = []
        """Text, time and place in the session file of those that can be gone back to."""
        self.settle: Callable[[], Awaitable[None]] | None = None
        """What has to be done before the prompt is over, once there is something."""

    async def settled(self) -> None:
        """Have it done."""
        if self.settle is not None:
            await self.settle()


class SessionParts(Record):
    """The parts of one session that hold its state."""

    setup: SessionSetup
    bus: Bus
    redactor: Redactor
    kept: KeptTexts
    clock: SystemClock
    workspace: Workspace
    writer: SessionWriter
    conversation: Conversation
    profile: SessionProfile
    usage: UsageTotals
    model: ActiveModel
    processes: ProcessRunner
    sandbox: LazySandbox
    toolbox: Toolbox
    resources: Resources
    inbox: Inbox
    progress: Progress
    tool_sizes: ToolSizes
    environment: dict[str, str]
    """Of the programs that are started; what it says to a Marvin among them follows what the user changes here."""
    state: dict[str, dict[str, Any]]
    """What packs keep in the session, by their distribution."""
    endings: list[Callable[[], Awaitable[None]]]
    """What is done at the very end of the session."""

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.setup.config

    def pack(self, name: str) -> PackContext:
        """What the code of a pack reaches of its own. Raises `ConfigError` where none of this name is in use."""
        return self.setup.packs().named(name)

    async def fetch_secrets(self, names: Iterable[str]) -> None:
        """Ask the system's keyring, which may wait for the user, for what code of packs takes in the event loop."""
        secrets = self.setup.secrets
        if awaited := secrets.awaited(names):
            await in_thread(lambda: secrets.fetch(awaited))

    def give(self, outputs: Sequence[ToolOutput]) -> None:
        """Add the outputs of the calls of a round to the conversation."""
        self.conversation.append(tool(outputs))
        self.progress.outputs = tuple(outputs)

    def take(self, message: Message, origin: MessageOrigin) -> None:
        """Add a message for the model to the conversation, and tell of it."""
        self.bus.emit(MessageStart(role="user", origin=origin))
        kept = self.conversation.append(message, "" if origin == "typed" else origin)
        self.bus.emit(MessageEnd(message=kept, stop_reason="stop", origin=origin))

    @cached_property
    def agents(self) -> AgentService:
        """The service of sub-agents; imported where the first one is wanted."""
        from .agents.host import AgentHost
        from .agents.service import AgentService

        host = AgentHost(
            config=self.config,
            secrets=self.setup.secrets,
            environment=self.environment,
            workspace=self.workspace,
            processes=self.processes,
            model=self.model,
            toolbox=self.toolbox,
            meter=self.meter,
            redactor=self.redactor,
            packs=self.setup.data_folders,
        )
        return AgentService(host)

    @cached_property
    def carried(self) -> CarriedTools:
        """Which of the tools on offer a request carries."""
        around = Surroundings(
            config=self.config,
            workspace=self.workspace,
            conversation=self.conversation,
            state=self.state,
            sizes=self.tool_sizes,
            window=lambda: self.model.window.size,
            profile=self.profile,
            warn=self.bus.warn,
        )
        return CarriedTools(self.toolbox, around)

    @property
    def meter(self) -> UsageMeter:
        """What counts model requests."""
        return self.setup.meter


def _said_in(folder: Path, largest: int, working_dir: str) -> frozenset[tuple[str, str]]:
    """As `said_in`, which only few chats need."""
    from ..sessions.said import said_in

    return said_in(folder, working_dir, largest)


def build(setup: SessionSetup) -> SessionParts:
    """The parts of a new session."""
    config = setup.config
    redactor = Redactor(setup.secrets.known)
    bus = Bus(redactor.text)
    kept = KeptTexts(redactor, bus.warn)
    clock, workspace = SystemClock(), Workspace(config)
    folder, limits = config.data_folder / "sessions", config.limits
    writer = SessionWriter(folder, config.timeouts, bus.warn, limits.session_line, kept)
    writer.depth = config.depth
    profile = SessionProfile(config, bus, clock, workspace, kept)
    profile.said_in = partial(_said_in, folder, limits.session_line)
    usage = UsageTotals(setup.meter, config.config_folder / "usage.json", config.timeouts, setup.budget)
    bus.subscribe(usage.listen)
    environment = _child_environment(setup, bus)

    def network() -> SessionNetwork:
        from .network import SessionNetwork

        found = SessionNetwork(config, setup.clients, bus, setup.asker, environment, processes.held)
        found.may_ask = lambda: not workspace.playing
        return found

    sandbox = LazySandbox(config, workspace, environment, network, bus.warn)
    processes = ProcessRunner(workspace, environment, config.timeouts, sandbox, config.limits)
    if not config.depth:
        processes.apart = lambda: _apart(config)
    return SessionParts(
        setup=setup,
        bus=bus,
        redactor=redactor,
        kept=kept,
        clock=clock,
        workspace=workspace,
        writer=writer,
        conversation=Conversation(writer, redactor),
        profile=profile,
        usage=usage,
        model=ActiveModel(setup.models, writer, bus, config, restarts=setup.asker is not None),
        processes=processes,
        sandbox=sandbox,
        toolbox=Toolbox(
            setup.tools,
            config,
            processes,
            setup.secrets,
            Offer(
                shape=_shaping(setup, sandbox),
                lost=setup.lost_tools,
                find=None if setup.tool_source is None else setup.tool_source.find,
            ),
        ),
        resources=Resources(),
        inbox=Inbox(bus, chat=setup.asker is not None),
        progress=Progress(),
        tool_sizes=ToolSizes(),
        environment=environment,
        state={},
        endings=[],
    )


def _shaping(setup: SessionSetup, sandbox: LazySandbox) -> Callable[[ToolSpec], ToolSpec] | None:
    """What the offered tools take besides: `outside`, where somebody could grant it."""
    if setup.asker is None and setup.config.on_ask != "allow-all":
        return None
    if not sandbox.is_expected():
        return None
    from ..guard.sandbox.leaving import with_parameter

    return with_parameter


def _apart(config: Config) -> ApartJobs | None:
    """The Marvins that go on by themselves; None where there has never been one, so that nothing is imported."""
    if not os.path.isdir(f"{config.state_folder}/apart"):  # each request asks
        return None
    from ..guard.processes.apart import ApartJobs

    return ApartJobs.of(config)


def _child_environment(setup: SessionSetup, bus: Bus) -> dict[str, str]:
    bounds = child_variables(setup.config, attended=setup.asker is not None)
    environment = {**setup.secrets.child_environment(), **bounds}
    if setup.budget is not None:
        setup.budget.warn = bus.warn
        environment.update(setup.budget.child_environment())
    return environment


async def close(parts: SessionParts, *, first: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """End what comes `first`, then resources, jobs and connections, in that order.

    Each may take as long as config allows; the bus is told of what could not be ended.
    """
    setup = parts.setup
    steps: list[Callable[[], Awaitable[Sequence[BaseException] | None]]]
    steps = [*first, parts.progress.settled, parts.inbox.ended, parts.writer.finish]
    steps += [parts.resources.close, parts.processes.close, setup.clients.close, setup.models.aclose]
    for step in [*steps, *([setup.budget.aclose] if setup.budget else []), *parts.endings]:
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
        return "something took longer than `timeouts.close` in config.yaml allows, and was abandoned."
    return told(failure)
