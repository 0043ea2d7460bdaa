"""Everything of the engine, wired together for one session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.config import Config
from ..api.events import Notice
from ..api.hooks import Hook
from ..api.models import ModelSource
from ..api.providers import Provider
from ..api.record import Record
from ..api.session import ChatSettings, Command
from ..api.tools import Mode, ToolSpec
from ..config.secrets import Secrets
from ..conversation.compactor import CAPS, Around, Compactor
from ..conversation.conversation import Conversation
from ..guard.files.workspace import Workspace
from ..guard.permissions.policy import Policy
from ..guard.processes.runner import ProcessRunner
from ..profiles.session_profile import SessionProfile
from ..sessions.writer import Recorder
from ..tools.toolbox import Toolbox
from ..usage.meter import UsageMeter
from ..usage.summary import Accounts
from ..util.bus import Bus
from .active_model import ActiveModel
from .agent import Agent, Surroundings
from .autonomy import Autonomy, Going
from .call_context import Asker, Services, SystemClock
from .dispatch import Dispatcher
from .driver import Driver
from .hook_runner import HookRunner
from .lifecycle import Lifecycle
from .resources import Resources
from .session_views import HookView, ToolView
from .system_prompt import Part, SystemPrompt

if TYPE_CHECKING:
    import httpx

    from ..usage.budget import Budget

ROUNDS: Mapping[Mode, int] = {"chat": 10, "coding": 50}
_NAMED = 8
"""How many tools that are left out are told by name."""


class Ingredients(Record):
    """What a session is made of."""

    config: Config
    secrets: Secrets
    tools: Sequence[ToolSpec]
    hooks: Sequence[Hook]
    commands: Sequence[Command]
    models: ModelSource
    client: Callable[[], httpx.AsyncClient]
    close_client: Callable[[], Awaitable[None]]
    meter: UsageMeter
    asker: Asker | None
    budget: Budget | None = None
    """The cost ceiling, if there is one; the models' requests are paid out of it already."""
    allow: Callable[[float], Budget]
    """Makes a budget of this many USD, beside the one that there is."""


class Engine:
    """The parts of one session; `Session` is the door to them."""

    def __init__(self, given: Ingredients) -> None:
        config = given.config
        self.given = given
        self.bus = Bus()
        self.clock = SystemClock()
        self.mode: Mode = "coding" if config.coding else "chat"
        self.workspace = Workspace(config, lambda: self.mode == "coding")
        self.recorder = Recorder(config.data_folder / "sessions", config.timeouts, self.warn)
        self.conversation = Conversation(self.recorder)
        self.profile = SessionProfile(config, self.bus, self.clock, chat=not config.non_interactive)
        self.accounts = Accounts(given.meter, config.config_folder / "usage.json", given.budget)
        self.bus.subscribe(self.accounts.listen)
        self.farewell: str | None = None
        self._left_out: list[str] = []
        self.model = ActiveModel(given.models, self._model_changed, self.tell, self.warn)
        self.compactor = self._make_compactor()
        self.resources = Resources()
        self.state: dict[str, dict[str, Any]] = {}
        self.processes = self._make_processes()
        self.toolbox = Toolbox(
            given.tools,
            config,
            has_program=lambda name: self.processes.which(name) is not None,
            has_secret=lambda name: bool(given.secrets.get(name)),
        )
        view = HookView(config, self.workspace, self.processes, lambda: self.mode, self._send)
        self.hooks = HookRunner(given.hooks, view, config.timeouts, self.warn)
        self.bus.subscribe(self.hooks.feed)
        self.dispatcher = Dispatcher(
            self.toolbox, self._make_services(), Policy(config), self.hooks, self.bus.emit, self._fit
        )
        guidance = self.toolbox.guidance
        self._prompt = SystemPrompt(self.workspace, config, lambda: self.mode, self.profile, self.hooks, guidance)
        self.driver = Driver(
            self._make_agent, self.conversation, self.hooks, self.bus.emit, self._before_prompt, self._after_turn
        )
        playground = config.data_folder / "playground"
        self.autonomy = Autonomy(self.toolbox, self.driver, self.workspace, playground, given.allow)
        self.lifecycle = self._make_lifecycle()

    def _make_lifecycle(self) -> Lifecycle:
        return Lifecycle(
            self.recorder,
            self.conversation,
            self.state,
            self.model,
            self.toolbox,
            lambda: self.workspace.root,
            self.clock,
            self.bus.emit,
            self.warn,
            self.driver.check_free,
            fixed="--" in (self.given.config.provider_origin + self.given.config.model_origin),
        )

    def _make_compactor(self) -> Compactor:
        config = self.given.config
        return Compactor(
            Around(
                provider=self._summarising_provider,
                window=lambda: self.model.window,
                conversation=self.conversation,
                workspace=self.workspace,
                data_folder=config.data_folder,
                meter=self.given.meter,
                emit=self.bus.emit,
                clock=self.clock,
                timeouts=config.timeouts,
            )
        )

    def _summarising_provider(self) -> Provider | None:
        model = self.model
        return model.for_prompt(restarts=True, ceiling=self.autonomy.ceiling) if model.configured else None

    def _make_processes(self) -> ProcessRunner:
        given = self.given
        bounds: Mapping[str, str] = {}
        if given.budget is not None:
            given.budget.warn = self.warn
            bounds = given.budget.child_environment()
        return ProcessRunner(
            root=lambda: self.workspace.root,
            child_env={**given.secrets.child_environment(), **bounds},
            logs_folder=lambda: self.workspace.folder("logs"),
            timeouts=given.config.timeouts,
        )

    def _make_services(self) -> Services:
        given = self.given
        asks = given.asker is not None
        return Services(
            config=given.config,
            secrets=given.secrets,
            paths=lambda: self.workspace.paths,
            processes=self.processes,
            http=given.client,
            clock=self.clock,
            resources=self.resources,
            session=ToolView(
                given.config,
                self.workspace,
                self.conversation,
                self.recorder,
                self.accounts,
                self.profile,
                self.compactor,
                self._finish,
                self._leave,
                asks,
            ),
            state=self.state,
            asker=given.asker,
            mode=lambda: self.mode,
            profile_folder=lambda: self.profile.folder,
        )

    def _make_agent(self) -> Agent:
        self.autonomy.begin()
        self._tell_left_out()
        surroundings = Surroundings(
            system_prompt=self._system_prompt,
            prepare=self._prepare,
            make_room=self.compactor.make_room,
            before_request=self.hooks.before_request,
            queued=self.driver.queued,
            goes_on=self.autonomy.goes_on,
            rounds=self.autonomy.turns or ROUNDS[self.mode],
            thinking=self.model.thinking,
            ceiling=self.autonomy.ceiling or self.given.budget,
        )
        return Agent(
            self.model.for_prompt(restarts=self.given.asker is not None, ceiling=self.autonomy.ceiling),
            self.dispatcher,
            self.toolbox,
            self.conversation,
            lambda: self.model.window,
            self.given.meter,
            self.bus.emit,
            surroundings,
        )

    def _tell_left_out(self) -> None:
        """Tell which tools the model is not offered because it takes fewer, where that is not what was told last."""
        provider = self.model.provider
        names = [spec.name for spec in self.toolbox.offered[provider.max_tools :]] if provider.max_tools else []
        if names and names != self._left_out:
            few = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
            self.warn(
                f"{provider.name} takes {provider.max_tools} tools. Left out: {few}. "
                "--tools, or !mode in a chat, chooses which are offered."
            )
        self._left_out = names

    async def _system_prompt(self) -> tuple[str, int]:
        *stable, volatile = [part.text for part in await self.prompt_parts()]
        same = "\n\n".join(stable)
        return f"{same}\n\n{volatile}", len(same)

    async def prompt_parts(self) -> list[Part]:
        """The parts of the system prompt of the next request."""
        return await self._prompt.parts(self.clock.now(), self._running_jobs())

    def chat_settings(self) -> ChatSettings:
        """The profile's folder and the terminal, as configured now."""
        config = self.given.config
        return ChatSettings(
            profile_folder=self.profile.folder, color=config.color, terminal=config.terminal, timeouts=config.timeouts
        )

    def switch_mode(self, mode: Mode) -> None:
        """Go over to another mode. Raises `MarvinError` while an answer runs."""
        self.driver.check_free()
        self.mode = mode
        self.given.models.patient(mode == "coding")

    def _send(self, text: str) -> None:
        self.driver.send(text)

    def _finish(self, way: Going) -> None:
        self.autonomy.finish(way)

    def _leave(self, farewell: str) -> None:
        self.farewell = farewell

    def _running_jobs(self) -> list[str]:
        return [f"{job.id} ({job.command[:60]})" for job in self.processes.job_list() if job.running]

    def _fit(self, text: str, added: int) -> str:
        window = self.model.window
        used = self.conversation.characters + self.compactor.overhead
        return window.fit(text, window.tokens(used + added))

    def _model_changed(self) -> None:
        model = self.model
        self.recorder.changed(provider=model.provider_name, model=model.model, thinking=model.thinking)

    def warn(self, text: str) -> None:
        """Tell of something that went wrong, and does not end the session."""
        self.bus.emit(Notice(level="warning", text=text))

    def tell(self, text: str) -> None:
        """Tell of something that people want to know."""
        self.bus.emit(Notice(level="info", text=text))

    async def close(self) -> None:
        """End hooks, resources, jobs and connections, in that order, within the time that config allows."""
        given = self.given
        steps: list[Callable[[], Awaitable[Sequence[Exception] | None]]]
        steps = [self.profile.flush, self.hooks.close, self.resources.close, self.processes.close, given.close_client]
        for step in [*steps, given.models.aclose, *([given.budget.aclose] if given.budget else [])]:
            try:
                async with asyncio.timeout(given.config.timeouts.close):
                    failures = await step() or ()
            except Exception as error:  # one that fails must not keep the others open
                failures = (error,)
            for failure in failures:
                self.warn(f"While closing: {type(failure).__name__}: {failure}")
        self.recorder.close()

    async def compact(self, target_tokens: int) -> str:
        """Make room in the conversation now; returns what to tell. Raises `MarvinError` while an answer runs."""
        self.driver.check_free()
        return await self.compactor.compact(target_tokens)

    async def _prepare(self, system: str, tools: Sequence[ToolSpec]) -> int:
        await self.model.measure(self.conversation.characters + len(system))
        return await self.compactor.prepare(system, tools)

    async def _before_prompt(self) -> None:
        await self.compactor.cap(CAPS[self.mode])

    async def _after_turn(self) -> None:
        await self.recorder.flush(self.state)
        await self.profile.flush()
