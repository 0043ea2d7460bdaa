"""The parts of a session, and their construction. `Session` is the interface to them."""

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
    """The inputs of a session. `asker` is None in a non-interactive run.

    `packs` is called when the code of a pack requests its settings, secrets or folders.
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
    """Asks for approval of calls; by default as text with `asker`."""
    text_asker: TextAsker | None = None
    """Asks for free text; by default only choices are possible."""
    ui: UI | None = None
    """The interface, for its optional capabilities."""
    lost_tools: Mapping[str, str] = MappingProxyType({})
    """Tools of packs that could not be loaded: by their name, the pack and the reason."""
    data_folders: Mapping[str, str] = MappingProxyType({})
    """The folders of packs that may have data files, by the names of the packs."""
    foreign_tools: Collection[str] = frozenset()
    """The names of tools with third-party descriptions."""
    budget: Budget | None = None
    """The cost ceiling of the run, if there is one; it already applies to the models' requests."""
    tool_source: ToolSource | None = None
    """Loads tools that are in no module of a pack, such as those of servers."""
    keys: Callable[[], KeyControl] = _no_keys
    """Returns the keys of the services; called when the user changes one."""


class Progress:
    """The current activity of a session: the streamed answer, the running calls, and the last error."""

    def __init__(self) -> None:
        self.answer: Assembly | None = None
        self.calls: dict[str, RunningCall] = {}
        self.outputs: tuple[ToolOutput, ...] = ()
        """The results of the round, once all of its calls are complete."""
        self.error: Exception | None = None
        self.replay: Sequence[SaidEntry] = ()
        """The last messages of a resumed session, until the first prompt here."""
        self.prompts: list[tuple[str, float, str]] = []
        """The prompts that can be rewound to: text, time and position in the session file."""
        self.settle: Callable[[], Awaitable[None]] | None = None
        """Called before the prompt ends, if set."""

    async def settled(self) -> None:
        """Call `settle`."""
        if self.settle is not None:
            await self.settle()


class SessionParts(Record):
    """The stateful parts of a session."""

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
    """The environment of started programs; the settings for a nested Marvin follow the user's changes."""
    state: dict[str, dict[str, Any]]
    """The session state of packs, by their distribution."""
    endings: list[Callable[[], Awaitable[None]]]
    """Functions that are called at the very end of the session."""

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.setup.config

    def pack(self, name: str) -> PackContext:
        """The `PackContext` of a pack. Raises `ConfigError` if no pack of this name is in use."""
        return self.setup.packs().named(name)

    async def fetch_secrets(self, names: Iterable[str]) -> None:
        """Read secrets from the system's keyring, which may ask the user, before code in the event loop needs them."""
        secrets = self.setup.secrets
        if awaited := secrets.awaited(names):
            await in_thread(lambda: secrets.fetch(awaited))

    def give(self, outputs: Sequence[ToolOutput]) -> None:
        """Add the results of a round to the conversation."""
        self.conversation.append(tool(outputs))
        self.progress.outputs = tuple(outputs)

    def take(self, message: Message, origin: MessageOrigin) -> None:
        """Add a message for the model to the conversation, and send its event."""
        self.bus.emit(MessageStart(role="user", origin=origin))
        kept = self.conversation.append(message, "" if origin == "typed" else origin)
        self.bus.emit(MessageEnd(message=kept, stop_reason="stop", origin=origin))

    @cached_property
    def agents(self) -> AgentService:
        """The service of sub-agents; imported on first use."""
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
        """The selection of the tools that a request includes."""
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
        """The counter of model requests."""
        return self.setup.meter


def _said_in(folder: Path, largest: int, working_dir: str) -> frozenset[tuple[str, str]]:
    """As `said_in`, which only few chats need."""
    from ..sessions.said import said_in

    return said_in(folder, working_dir, largest)


def build(setup: SessionSetup) -> SessionParts:
    """The parts of a new session."""
    config = setup.config
    redactor = Redactor(setup.secrets.known, setup.secrets.learnt)
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
    """The additional parameters of offered tools: `outside`, if somebody can approve it."""
    if setup.asker is None and setup.config.on_ask != "allow-all":
        return None
    if not sandbox.is_expected():
        return None
    from ..guard.sandbox.leaving import with_parameter

    return with_parameter


def _apart(config: Config) -> ApartJobs | None:
    """The background Marvins; None if there has never been one, so that nothing is imported."""
    if not os.access(f"{config.state_folder}/apart", os.F_OK):  # each request asks, and `isdir` would raise and catch
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
    """Close `first`, then resources, jobs and connections, in that order.

    Each has the time limit in the configuration; failures are reported on the bus.
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
