"""One of each: every hook that a pack can implement, and what its types promise. Type checkers read it strictly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Annotated

import typer

from marvin_core import (
    API,
    UI,
    Call,
    ClientFactory,
    Command,
    Config,
    Delta,
    Deny,
    Endpoint,
    Event,
    Field,
    Hook,
    HookContext,
    Image,
    Link,
    Message,
    Mode,
    PackSettings,
    Picture,
    Provider,
    ProviderSpec,
    Request,
    SessionControl,
    Settings,
    Stop,
    Table,
    Text,
    TextDelta,
    Tool,
    ToolContext,
    ToolError,
    ToolGroup,
    ToolResult,
    ToolSpec,
    UISpec,
    Verdict,
    hookimpl,
    in_thread,
    tool,
)

modes: list[Mode] = []


@tool(access=["read"], secrets=["COMPLETE_KEY"])
async def complete_look(
    context: ToolContext, path: str = ".", most: Annotated[int, Field(ge=1), "How many"] = 10
) -> ToolResult:
    """Look at a folder."""
    found = await in_thread(lambda: context.paths.list(path, most))
    for number, entry in enumerate(found):
        context.progress(entry.path, number, len(found))
    rows = [(entry.path, entry.size) for entry in found]
    return ToolResult(
        content=(Text(text=f"{len(rows)} entries"), Image(media_type="image/png", data="AAAA")),
        show=[Table(columns=("name", "bytes"), rows=rows), Picture(path="plot.png"), Link(url="https://example.com")],
        undo=Call(name="complete_add", arguments={"text": ""}),
    )


@tool
async def complete_add(text: str, times: int = 1) -> str:
    """Repeat a text."""
    if times > 100:
        raise ToolError(f"{times} times are too many. Repeat it 100 times at most.")
    return text * times


@tool(access=["state"], timeout=lambda arguments: float(arguments["seconds"]))
async def complete_twice(text: str, seconds: float = 1.0) -> str:
    """Call another tool of the pack, with its own signature."""
    return await complete_add(text, times=2)


class Watcher(Hook):
    """A hook with every method."""

    trylast = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        return text.strip()

    async def system_prompt(self, context: HookContext) -> str | None:
        return f"You are in {context.cwd}."

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        self.seen += [call.name for message in messages for call in message.calls]

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, object]) -> Verdict:
        return Deny(reason="it runs programs") if "exec" in spec.access else None

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, object], result: ToolResult
    ) -> ToolResult | None:
        return result.replace(show=()) if result.is_error else None

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        return "Mend it." if "broken" in answer else None

    async def on_event(self, context: HookContext, event: Event) -> None:
        if event.type == "message_update":
            self.seen.append(event.delta)
        elif event.type == "tool_execution_end":
            self.seen += [item.url for item in event.show if item.type == "link"]
        elif event.type == "agent_end" and event.stop_reason == "error":
            self.seen.append(event.error)


class Parrot:
    """A provider that repeats."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.provider
        self.model = endpoint.model
        self.context_window: int | None = None
        self.max_tools: int | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The last message, again."""
        yield TextDelta(text=request.messages[-1].text)
        yield Stop(reason="stop")

    async def aclose(self) -> None:
        """Nothing to close."""


def parrot(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider's factory."""
    return Parrot(endpoint)


class Quiet:
    """An interface that submits and says nothing."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Nothing is shown."""
        session.subscribe(lambda event: None)
        return 0

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """The last choice."""
        return choices[-1]


def quiet() -> UI:
    """The interface's factory."""
    return Quiet()


async def count(session: SessionControl, words: str) -> str | None:
    """The slash command."""
    return f"{len(session.tools)} tools {words}"


def complete() -> None:
    """Say which API there is."""
    typer.echo(API)


@hookimpl
def marvin_configure(config: Config) -> None:
    """Keep the mode."""
    modes.append("coding" if config.coding else "chat")


class CompleteSettings(Settings):
    """What the pack is configured with."""

    most: int = 10
    """How many entries are looked at."""


@hookimpl
def marvin_register_settings() -> PackSettings:
    """The settings and the secrets."""
    return PackSettings(model=f"{__name__}:CompleteSettings", secrets={"COMPLETE_TOKEN": "the token of Complete"})


@hookimpl
def marvin_register_tools() -> Iterable[Tool | ToolGroup]:
    """The tools."""
    return [complete_look, complete_add, complete_twice]


@hookimpl
def marvin_register_providers() -> Iterable[ProviderSpec]:
    """The provider."""
    return [
        ProviderSpec(name="complete", factory="marvin_complete:parrot", base_url="", default_model="p", keyless=True)
    ]


@hookimpl
def marvin_register_hooks() -> Iterable[Hook]:
    """The hook."""
    return [Watcher()]


@hookimpl
def marvin_register_uis() -> Iterable[UISpec]:
    """The interface."""
    return [UISpec(name="quiet", factory="marvin_complete:quiet")]


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """The slash command."""
    return [Command(name="count", help="count the tools", run=count)]


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """The sub-command."""
    app.command()(complete)
