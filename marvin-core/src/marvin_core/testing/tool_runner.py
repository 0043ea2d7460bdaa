"""Calls a tool as a session does, with parsing, validation, permissions, hooks, timeouts and redaction."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypedDict, Unpack

from ..api.config import Config, SandboxUse
from ..api.errors import ConfigError
from ..api.events import CallOrigin, Event, Notice, ToolExecutionEnd, ToolExecutionUpdate
from ..api.hooks import Hook
from ..api.messages import Call, Image, Shown, Text, ToolCall, ToolOutput
from ..api.permissions import Question, Reply
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..api.tools import Mode, Tool, ToolSpec
from ..config.load import load
from ..config.secrets import Secrets
from ..engine.calls.asking import by_words
from ..engine.parts import SessionParts, SessionSetup, build
from ..engine.ports import ToolClients
from ..engine.session import Session
from ..http.addresses import AddressGuard
from ..http.client import HttpSettings, make_client
from ..http.clients import Clients
from ..plugins.hook_calls import hooks_in
from ..plugins.pack_access import Packs
from ..profiles.store import Profiles
from ..tools.schema import describe
from ..usage.meter import UsageMeter
from .environment import search_path
from .owners import Owners
from .scripted import ScriptedModels

if TYPE_CHECKING:
    import httpx

    from ..http.filter_proxy import NoteRefused
    from ..http.proxy_thread import Decide
    from ..plugins.model import Pack


class Outcome(Record):
    """The result of a call: `text` for the model, `details` for the interface, and `progress` during the call.

    `content` has the text and the images, `elapsed` is in seconds. `show` is shown to the user, `undo` is the call that
    undoes this one, `lasting` the part that a summary keeps. `updates` are the progress events.
    """

    text: str
    is_error: bool
    content: tuple[Text | Image, ...]
    details: Mapping[str, Any] | None
    progress: tuple[str, ...]
    elapsed: float
    show: tuple[Shown, ...]
    undo: Call | None
    lasting: str
    updates: tuple[ToolExecutionUpdate, ...]


class Options(TypedDict, total=False):
    """The options of a session of a `ToolRunner`, all optional.

    `answers` are the answers to questions, in order; a question without one fails the test. With `interactive=False`
    the run is non-interactive. `mode` is "chat", or "coding" as in a non-interactive run. `env` is the environment,
    including secrets; in addition, only HOME and PATH are set. `settings` are those of packs, as in `packs:` of
    config.yaml. `read_only` is MARVIN_READONLY. `hooks` are hooks for the calls. `timeouts` changes timeouts as in
    config.yaml. `sandbox` is `--sandbox`, by default "off". `origin` is the origin of the calls: by default the user,
    to whom no permission mode applies.
    """

    answers: Sequence[str]
    interactive: bool
    mode: Mode
    env: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]]
    read_only: bool
    hooks: Sequence[Hook]
    timeouts: Mapping[str, Any]
    sandbox: SandboxUse
    origin: CallOrigin


class _NoBudgets:
    def of(self, dollars: float) -> NoReturn:
        """Raise `ConfigError`: without a model there are no costs."""
        raise ConfigError("There is no model here, so nothing can be spent.")


class _OneClient:
    """The HTTP client of the tools, with the transport of the test."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def for_tools(self) -> httpx.AsyncClient:
        """The client."""
        return self._client

    def proxy(self, decide: Decide, note_refused: NoteRefused = lambda host, port: None) -> NoReturn:
        """Raise `ConfigError`: commands cannot use the test's transport."""
        raise ConfigError("With a transport of the test's, commands reach no network.")

    def refused_host(self, url: str) -> str:
        """Return an empty text: all requests go to the test's transport."""
        return ""

    def trust(self, url: str) -> None:
        """Do nothing: all requests go to the test's transport."""

    async def close(self) -> None:
        """Close the connections of the client."""
        await self._client.aclose()


class ToolRunner:
    """One session without a model: the test makes the calls.

    The `state`, resources and jobs of tools exist until `close`. `questions` are the questions so far, each with its
    choices; `notices` are the texts that the user would have seen.

    Args:
        home: the home folder, with config.yaml and profiles.
        working_dir: the sandbox root.
        transport: returns the transport of the tools' HTTP client; by default the network is used.
    """

    def __init__(
        self,
        home: Path,
        working_dir: Path,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.home = home
        self.working_dir = working_dir
        self.questions: list[tuple[str, tuple[str, ...]]] = []
        self.notices: list[str] = []
        self._transport = transport
        self._options = options
        self._answers = list(options.get("answers", ()))
        self._unanswered = ""
        self._events: list[Event] = []
        self._loop = asyncio.Runner()
        self._known: set[str] = set()
        self._others: list[ToolRunner] = []
        self._made: Session | None = None
        self._owners = Owners()

    def session(self, **options: Unpack[Options]) -> ToolRunner:
        """Another session in the same home and working directory; closed with this one."""
        other = ToolRunner(self.home, self.working_dir, self._transport, **options)
        self._others.append(other)
        return other

    def call(self, tool: Tool | str, /, **arguments: Any) -> Outcome:
        """Call a tool: a decorated function, or an installed tool by name.

        Raises:
            AssertionError: the pack with which the name begins could not be loaded.
        """
        return self.call_raw(tool, json.dumps(arguments))

    def call_raw(self, tool: Tool | str, arguments: str, /) -> Outcome:
        """Call a tool with its arguments as text, as models send them."""
        return self._loop.run(self._call(tool, arguments))

    def take_back(self, count: int = 1) -> tuple[str, ...]:
        """Undo the newest calls, as /undo does. Returns a line for each undone call.

        Raises:
            MarvinError: a call cannot be undone; the text is the message for the user.
        """
        return self._loop.run(self._take_back(count))

    async def _take_back(self, count: int) -> tuple[str, ...]:
        session = await self._started()
        self._know_undoing(session.parts)
        return tuple(await session.undo.take_back(count))

    @property
    def state(self) -> dict[str, dict[str, Any]]:
        """The state of tools and hooks in the session, by the distribution of their pack."""
        kept = self._loop.run(self._started()).parts.state
        return {name: own for name, own in kept.items() if not name.startswith(":")}  # the rest is Marvin's own

    def close(self) -> None:
        """Close the session, with all resources and jobs of its calls.

        Raises:
            AssertionError: something could not be closed.
        """
        for other in self._others:
            other.close()
        self._others.clear()
        told = len(self.notices)
        if self._made is not None:
            self._loop.run(self._made.close())
            self._made = None
        self._loop.close()
        if self.notices[told:]:
            raise AssertionError("\n".join(self.notices[told:]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def _call(self, tool: Tool | str, arguments: str) -> Outcome:
        session = await self._started()
        name = self._know(session.parts, tool)
        self._events.clear()
        call = ToolCall(id=f"call_{name}", name=name, arguments=arguments)
        output = await session.dispatcher.call(call, self._options.get("origin", "person"))
        if self._unanswered:
            question, self._unanswered = self._unanswered, ""
            raise AssertionError(f"{name} asked, and there was no answer left: {question}")
        return self._outcome(output)

    def _outcome(self, output: ToolOutput) -> Outcome:
        end = next(event for event in self._events if isinstance(event, ToolExecutionEnd))
        updates = tuple(event for event in self._events if isinstance(event, ToolExecutionUpdate))
        return Outcome(
            text=output.text,
            is_error=output.is_error,
            content=output.content,
            details=end.details,
            progress=tuple(event.text for event in updates),
            elapsed=end.elapsed,
            show=output.show,
            undo=output.undo,
            lasting=output.lasting,
            updates=updates,
        )

    async def _started(self) -> Session:
        if self._made is None:
            parts = build(self._setup())
            parts.workspace.mode = self._options.get("mode", parts.workspace.mode)
            self._made = Session(parts)
            self._made.subscribe(self._listen)
        return self._made

    def _loaded(self) -> tuple[Config, Secrets]:
        """The configuration from the flags, the environment and the config.yaml of the test."""
        env = {"HOME": str(self.home), "PATH": search_path(), **self._options.get("env", {})}
        if self._options.get("read_only"):
            env["MARVIN_READONLY"] = "1"
        config, secrets = load((), env, cwd=self.working_dir)
        interactive = self._options.get("interactive", True)
        config = config.replace(
            non_interactive=not interactive,
            sandbox=self._options.get("sandbox", "off"),
            timeouts=config.timeouts.replace(**self._options.get("timeouts", {})),
            pack_sections={**config.pack_sections, **self._options.get("settings", {})},
        )
        return config, secrets

    def _packs(self, config: Config, secrets: Secrets) -> Packs:
        profiles = Profiles(config.config_folder, config.timeouts)

        def folder() -> Path:
            return self._made.profile.folder if self._made is not None else profiles.folder(profiles.active)

        return Packs(self._owners, config, secrets, folder)

    def _models(self) -> ScriptedModels:
        return ScriptedModels(how_to="")

    def _setup(self) -> SessionSetup:
        config, secrets = self._loaded()
        packs = self._packs(config, secrets)
        interactive = self._options.get("interactive", True)
        return SessionSetup(
            config=config,
            secrets=secrets,
            tools=(),
            hooks=tuple(hooks_in(self._options.get("hooks", ()))),
            commands=(),
            models=self._models(),
            clients=self._clients(config),
            packs=lambda: packs,
            meter=UsageMeter(lambda provider, model, usage: None, lambda provider, model: False),
            budgets=_NoBudgets(),
            asker=self._answer if interactive else None,
            text_asker=self._answer if interactive else None,
            permit=self._permit if interactive else None,
        )

    def _clients(self, config: Config) -> ToolClients:
        if self._transport is None:
            return Clients(config)
        timeouts = config.timeouts
        settings, guard = HttpSettings(timeouts=timeouts, limits=config.limits), AddressGuard()
        transport = self._transport()
        client = make_client(settings, timeout_read=timeouts.http, tls=None, guard=guard, transport=transport)
        return _OneClient(client)

    def _know(self, parts: SessionParts, tool: Tool | str) -> str:
        """Offer the tool. For an installed one, offer all installed tools, so that errors can suggest similar names."""
        if isinstance(tool, Tool):
            if tool.name not in self._known:
                pack = self._owners.pack_of_module(tool.function.__module__)
                self._offer(parts, describe(tool, source=pack.distribution), tool)
            return tool.name
        for spec in installed_tools() if tool not in self._known else ():
            if spec.name not in self._known:
                self._offer(parts, spec, None)
        if tool not in self._known:
            for pack in _loaded_packs()[1]:
                if tool.startswith(f"{pack.name}_"):
                    raise AssertionError(f"The pack {pack.name} could not be loaded: {'; '.join(pack.problems)}")
        return tool

    def _know_undoing(self, parts: SessionParts) -> None:
        """Offer all tools of the modules in use and of installed packs: the undo of a call may need another tool."""
        for module in sorted({spec.module for spec in parts.toolbox.offered if spec.module}):
            for tool in vars(sys.modules.get(module, object)).values():
                if isinstance(tool, Tool):
                    self._know(parts, tool)
        for spec in installed_tools():
            if spec.name not in self._known:
                self._offer(parts, spec, None)

    def _offer(self, parts: SessionParts, spec: ToolSpec, tool: Tool | None) -> None:
        self._known.add(spec.name)
        declared = self._owners.add_tool(spec)
        parts.setup.secrets.declare([*spec.secrets, *(declared.secrets if declared is not None else ())])
        parts.toolbox.add(spec, tool)

    def _listen(self, event: Event) -> None:
        self._events.append(event)
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def _permit(self, question: Question) -> Sequence[Reply]:
        """Answer tools, rules and hooks with the test's answers. Approve questions of the permission mode alone."""
        replies = []
        for call in question.calls:
            declared = self._made is None or self._made.parts.toolbox.spec(call.name).confirm
            is_asked = declared or "session" not in call.answers
            replies.append(await by_words(call, self._answer) if is_asked else Reply(says="once"))
        return replies

    async def _answer(self, question: str, choices: Sequence[str]) -> str:
        self.questions.append((question, tuple(choices)))
        if not self._answers:
            self._unanswered = f"{question} ({', '.join(choices)})"
            return choices[-1] if choices else ""
        return self._answers.pop(0)


def installed_tools() -> tuple[ToolSpec, ...]:
    """The tools of all installed packs. They are read once, since installations do not change during tests."""
    return _loaded_packs()[0]


@cache
def _loaded_packs() -> tuple[tuple[ToolSpec, ...], tuple[Pack, ...]]:
    """The tools of all installed packs, and the packs that could not be loaded."""
    from ..plugins.entry_points import installed_packs
    from ..plugins.names import Names
    from ..plugins.trials import tried

    loaded = tried(installed_packs(), Timeouts())
    names = Names([one.pack for one in loaded], ())
    tools = names.tools([(one.pack.key, spec) for one in loaded for spec in one.tools])
    return tuple(spec for _, spec in tools), tuple(one.pack for one in loaded if one.pack.left_out)
