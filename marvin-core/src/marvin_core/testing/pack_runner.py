"""Tests every part of a pack as Marvin uses it: hooks, prompts, commands, sub-commands, interfaces, providers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack

from ..api.events import Event
from ..api.hooks import Hook, HookContext
from ..api.messages import Call, Message, StopReason, ToolCall, Usage, user
from ..api.permissions import PermissionUI
from ..api.providers import (
    CallDelta,
    Delta,
    Endpoint,
    Provider,
    ProviderSpec,
    Request,
    Retrying,
    Secret,
    Stop,
    TextDelta,
    ThinkingDelta,
    UsageDelta,
)
from ..api.record import Record
from ..api.session import Command, TurnResult
from ..api.tools import Tool
from ..api.ui import UI, AsksText
from ..cli.run import CommandContext, application, ended
from ..engine.assembly import Assembly
from ..engine.parts import build
from ..engine.session import Session
from ..engine.session_views import HookSessionView
from ..http.client import HttpSettings, make_client
from ..plugins.hook_calls import call_hook, plugin_manager
from ..util.imports import imported
from ..util.streams import StandardStreams
from .scripted import ScriptedModels, ScriptedProvider
from .tool_runner import Options, ToolRunner

if TYPE_CHECKING:
    import httpx

    from ..api.tool_context import PackContext

T = TypeVar("T")

Script: TypeAlias = "str | Call | Sequence[Call] | Sequence[Delta | BaseException]"
"""A model's answer: a text, tool calls, or single deltas, which may include errors to raise."""

_DELTAS = (TextDelta, ThinkingDelta, CallDelta, UsageDelta, Stop, Retrying)


class PromptOutcome(Record):
    """The result of a prompt: the answer's text, the error that ended it, all events, and the requests to the model."""

    text: str
    error: Exception | None
    events: tuple[Event, ...]
    requests: tuple[Request, ...]


class ProviderAnswer(Record):
    """The answer of a provider, assembled from its `deltas`."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    stop_reason: StopReason
    deltas: tuple[Delta, ...]


class CliOutcome(Record):
    """The exit code of a sub-command, and its output on standard output and standard error."""

    code: int
    out: str
    err: str


class PackRunner(ToolRunner):
    """A `ToolRunner` for all registered objects of a pack. Its model answers with the script of the test.

    Settings, secrets and folders are those of the pack of the tested code: the installed one, or the one with a
    pyproject.toml above the code.
    """

    def __init__(
        self,
        home: Path,
        working_dir: Path,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(home, working_dir, transport, **options)
        self.provider = ScriptedProvider()
        """The model of the prompts; its `requests` are all requests that were sent."""

    def session(self, **options: Unpack[Options]) -> PackRunner:
        """Another session in the same home and working directory; closed with this one."""
        other = PackRunner(self.home, self.working_dir, self._transport, **options)
        self._others.append(other)
        return other

    def run(self, work: Awaitable[T]) -> T:
        """Await something in the session's event loop, for example a single method of a hook."""

        async def awaited() -> T:
            await self._started()
            return await work

        return self._loop.run(awaited())

    def offer(self, *tools: Tool | str) -> None:
        """Offer tools to the model: decorated functions, or installed tools by name."""
        parts = self._loop.run(self._started()).parts
        for tool in tools:
            self._know(parts, tool)

    def prompt(self, text: str, *script: Script) -> PromptOutcome:
        """Submit a prompt, with all hooks of the session. The script has the model's answers, in order."""
        before = len(self.provider.requests)
        self.provider.script(*map(_deltas, script))
        result, seen = self._loop.run(self._prompt(text))
        return PromptOutcome(
            text=result.text,
            error=result.error,
            events=tuple(seen),
            requests=tuple(self.provider.requests[before:]),
        )

    def _models(self) -> ScriptedModels:
        return ScriptedModels(self.provider)

    async def _prompt(self, text: str) -> tuple[TurnResult, list[Event]]:
        session = await self._started()
        events: list[Event] = []
        unsubscribe = session.subscribe(events.append)
        try:
            return await session.submit(text), events
        finally:
            unsubscribe()

    def hook_context(self, hook: Hook) -> HookContext:
        """The context of a hook in this session, for calls of its methods with `run`."""
        return HookSessionView(self._loop.run(self._started()).parts, hook)

    def configure(self, plugin: ModuleType) -> None:
        """Call `marvin_configure` of a plugin module with the configuration of this test. Its errors are raised."""
        config, _ = self._loaded()
        manager = plugin_manager()
        manager.register(plugin)
        call_hook(manager, plugin, "marvin_configure", config=config)

    def command(self, command: Command, text: str = "") -> str | None:
        """Run a slash command with the text after its name. Returns the text to show; its errors are raised."""

        async def go() -> str | None:
            return await command.run(await self._started(), text.strip())

        return self._loop.run(go())

    def ui(self, ui: UI, prompt: str | None = None, *script: Script) -> int:
        """Run an interface with a new session until it ends; returns its exit code."""
        self.provider.script(*map(_deltas, script))
        permit = ui.permit if isinstance(ui, PermissionUI) else None
        text_asker = ui.ask_text if isinstance(ui, AsksText) else None
        setup = self._setup().replace(asker=ui.ask, permit=permit, text_asker=text_asker, ui=ui)
        return ui.run(Session(build(setup)), prompt)

    def cli(self, plugin: ModuleType, *words: str) -> CliOutcome:
        """Run a sub-command of a plugin module: `cli(plugin, "garden", "--loud")` is `marvin garden --loud`."""
        app = application()
        manager = plugin_manager()
        manager.register(plugin)
        call_hook(manager, plugin, "marvin_extend_cli", app=app)
        with TemporaryFile() as out, TemporaryFile() as err, open(os.devnull, "rb") as nothing:
            run = self._command_context(plugin, StandardStreams(nothing.fileno(), out.fileno(), err.fileno()))
            with _text_of(out) as to_out, _text_of(err) as to_err:
                with redirect_stdout(to_out), redirect_stderr(to_err):
                    code = ended(app, words, "marvin", run)
            return CliOutcome(code=code, out=_content(out), err=_content(err))

    def _command_context(self, plugin: ModuleType, streams: StandardStreams) -> CommandContext:
        config, secrets = self._loaded()
        pack = self._owners.pack_of_module(plugin.__name__)
        declared = self._owners.declared(pack)
        secrets.declare(declared.secrets if declared is not None else ())
        run = CommandContext(config, secrets, streams)
        run.own = partial(self._packs(config, secrets).of, pack)
        return run

    def endpoint(self, spec: ProviderSpec, base_url: str = "", *, model: str = "", key: str = "a-test-key") -> Endpoint:
        """The endpoint that a run passes to the factory of a provider.

        Args:
            base_url: the address of the service; by default that of `spec`.
            model: the model; by default that of `spec`.
        """
        config, _ = self._loaded()
        return Endpoint(
            provider=spec.name,
            base_url=base_url or spec.base_url,
            model=model or spec.default_model,
            key=Secret(key),
            key_hint=next(iter(spec.key_variables), ""),
            max_tools=spec.max_tools,
            profile_folder=self.profile_folder,
            environment=dict,
            learn=lambda secret: None,
            pack=self.pack_of(spec.factory.partition(":")[0]),
            timeouts=config.timeouts,
            limits=config.limits,
        )

    @property
    def profile_folder(self) -> Path:
        """The folder of the active profile."""
        return self._loop.run(self._started()).profile.folder

    def pack_of(self, module: str) -> PackContext:
        """The settings, secrets and folders of the pack of a module."""
        config, secrets = self._loaded()
        return self._packs(config, secrets).of(self._owners.pack_of_module(module))

    def answer(self, spec: ProviderSpec, request: Request | str, endpoint: Endpoint | None = None) -> ProviderAnswer:
        """Send one request, or one message of the user, to a provider, and close the provider.

        Raises:
            AssertionError: the answer violates the contract of `Provider.stream`: deltas, with one `Stop` at the end.
            ProviderError: the provider raises it.
        """
        endpoint = endpoint or self.endpoint(spec)
        asked = request if isinstance(request, Request) else Request(system="", messages=(user(request),))
        return self._loop.run(self._answered(spec, endpoint, asked))

    async def _answered(self, spec: ProviderSpec, endpoint: Endpoint, request: Request) -> ProviderAnswer:
        config, _ = self._loaded()
        transport = self._transport() if self._transport is not None else None
        settings = HttpSettings(timeouts=config.timeouts, limits=config.limits)
        client = make_client(settings, timeout_read=config.timeouts.model_idle, tls=None, transport=transport)
        provider: Provider = imported("provider", spec.factory)(endpoint, lambda: client)
        deltas: list[Delta] = []
        try:
            async for delta in provider.stream(request):
                assert isinstance(delta, _DELTAS), f"{spec.name} yielded {delta!r}, which is not a Delta"
                assert not deltas or not isinstance(deltas[-1], Stop), f"{spec.name} yielded {delta!r} after Stop"
                deltas.append(delta)
        finally:
            await provider.aclose()
            await client.aclose()
        assert any(isinstance(delta, Stop) for delta in deltas), f"{spec.name} ended without Stop: raise StreamBroken"
        return _assembled(provider, deltas)


def _deltas(answer: Script) -> Sequence[Delta | BaseException]:
    """An answer as deltas."""
    if isinstance(answer, str):
        return [TextDelta(text=answer), Stop(reason="stop")]
    given: Sequence[Any] = [answer] if isinstance(answer, Call) else answer
    if not all(isinstance(step, Call) for step in given):
        return given
    import json

    calls = [
        CallDelta(key=n, id=f"call_{n}", name=call.name, arguments=json.dumps(dict(call.arguments)))
        for n, call in enumerate(given)
    ]
    return [*calls, Stop(reason="tool_calls")]


def _assembled(provider: Provider, deltas: Sequence[Delta]) -> ProviderAnswer:
    assembly = Assembly(provider.name, provider.model)
    for delta in deltas:
        assembly.feed(delta)
    message: Message = assembly.message()
    return ProviderAnswer(
        text=message.text,
        thinking="".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)),
        calls=tuple(message.calls),
        usage=assembly.usage,
        stop_reason=assembly.stop_reason or "stop",
        deltas=tuple(deltas),
    )


def _text_of(file: IO[bytes]) -> IO[str]:
    """A line-buffered text stream to a file, so that printed text and writes to the descriptor stay in order."""
    return os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8", buffering=1)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
