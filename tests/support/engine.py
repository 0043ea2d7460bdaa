"""A real session over temporary folders, its model a scripted provider, its tools those of engine_tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from marvin_core import CallDelta, Delta, Hook, Record, Request, Stop, TextDelta, ToolSpec, Usage, UsageDelta
from marvin_core.api.config import Config
from marvin_core.api.events import Event
from marvin_core.api.messages import ToolCall, ToolOutput
from marvin_core.api.models import ModelSource
from marvin_core.api.timeouts import Timeouts
from marvin_core.api.tools import Access
from marvin_core.config.load import load
from marvin_core.config.secrets import Secrets
from marvin_core.engine.parts import SessionParts, SessionSetup, build
from marvin_core.engine.ports import Asker, Permitter, TextAsker
from marvin_core.engine.session import Session
from marvin_core.http.clients import Clients
from marvin_core.plugins.pack_access import Packs
from marvin_core.providers.budgeted import BudgetedProvider
from marvin_core.recording.watch import SessionWatch
from marvin_core.testing import ScriptedModels, ScriptedProvider
from marvin_core.testing.owners import Owners
from marvin_core.tools.schema import describe
from marvin_core.usage.budgets import BudgetFactory
from marvin_core.usage.meter import UsageMeter
from marvin_core.usage.prices import Prices
from tests.support import engine_tools

T = TypeVar("T")

BARE_PATH = "/usr/local/bin:/usr/bin:/bin"
QUICK = Timeouts(tool=30.0, command_grace=0.0, hook=30.0, hook_decision=30.0, close=30.0, lock=30.0, lock_poll=0.002)
"""Timeouts that are never reached on any machine; a test of a timeout sets its own."""
SPECS = tuple(describe(tool, source="tests", module=engine_tools.__name__) for tool in engine_tools.ALL)


def run(work: Awaitable[T], limit: float = 50.0) -> T:
    """Run a coroutine; one that hangs fails the test."""

    async def limited() -> T:
        async with asyncio.timeout(limit):
            return await work

    return asyncio.run(limited())


class Hang(TextDelta):
    """A step of a script: silence from here on."""

    text: str = ""


class Script(ScriptedProvider):
    """A scripted provider that can also fall silent."""

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The next answer of the script."""
        async with aclosing(cast("Any", super().stream(request))) as deltas:
            async for delta in deltas:
                if isinstance(delta, Hang):
                    await asyncio.Event().wait()
                yield delta


USED = UsageDelta(usage=Usage(input_tokens=100, output_tokens=10))


def says(*texts: str, usage: UsageDelta = USED) -> list[Delta]:
    """An answer of text."""
    return [*(TextDelta(text=text) for text in texts), usage, Stop(reason="stop")]


def calls(*given: tuple[str, str, str], text: str = "") -> list[Delta]:
    """An answer with calls, each (id, name, arguments)."""
    deltas: list[Delta] = [TextDelta(text=text)] if text else []
    deltas += [CallDelta(key=n, id=i, name=name, arguments=raw) for n, (i, name, raw) in enumerate(given)]
    return [*deltas, USED, Stop(reason="tool_calls")]


def settled(
    tmp_path: Path,
    *argv: str,
    env: Mapping[str, str] | None = None,
    yaml: str = "",
    timeouts: Timeouts = QUICK,
    **changes: Any,
) -> tuple[Config, Secrets]:
    """The configuration of a run in `tmp_path/project`, as flags, variables and config.yaml make it."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir(exist_ok=True)
    (home / "marvin").mkdir(parents=True, exist_ok=True)
    if yaml:
        (home / "marvin" / "config.yaml").write_text(yaml, "utf-8")
    variables = {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "PATH": BARE_PATH, **(env or {})}
    if "--sandbox" not in argv:  # the sandbox has tests of its own
        changes.setdefault("sandbox", "off")
    config, secrets = load([*argv], variables, cwd=project)
    return config.replace(timeouts=timeouts, **changes), secrets


class Made(Record):
    """A session, what it is made of, and every event that it published."""

    session: Session
    parts: SessionParts
    config: Config
    provider: Script | None
    meter: UsageMeter
    events: list[Event]

    def seen(self, kind: type[T]) -> list[T]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def log(self) -> list[str]:
        """What the tools wrote down, in order."""
        found: list[str] = self.parts.state.get("tests", {}).get("log", [])
        return found

    def call(self, tool: str, /, **arguments: Any) -> ToolOutput:
        """One call by hand, to its output."""

        async def go() -> ToolOutput:
            try:
                return await self.session.call_tool(tool, arguments)
            finally:
                await self.session.close()

        return run(go())

    async def batch(self, *given: tuple[str, Mapping[str, Any]]) -> list[ToolOutput]:
        """The calls of one answer, with the ids c0, c1, ..."""
        outputs: list[ToolOutput] = []
        await self.import_tools()
        await self.session.dispatcher.batch(batch_of(*given), outputs)
        return outputs

    async def import_tools(self) -> None:
        """Import every tool beforehand; imports take different times, on which tests of an order must not depend."""
        for offered in self.parts.toolbox.offered:
            await self.parts.toolbox.load(offered.name)


def do(made: Made, *given: tuple[str, Mapping[str, Any]]) -> list[ToolOutput]:
    """The calls of one answer, and then the end of the session; in a loop of their own."""

    async def go() -> list[ToolOutput]:
        try:
            return await made.batch(*given)
        finally:
            await made.session.close()

    return run(go())


def batch_of(*given: tuple[str, Mapping[str, Any]]) -> list[ToolCall]:
    """Calls with the ids c0, c1, ..."""
    import json

    return [ToolCall(id=f"c{n}", name=name, arguments=json.dumps(values)) for n, (name, values) in enumerate(given)]


class NoLimits:
    """Nobody knows how long answers may become."""

    def longest(self, provider: str, model: str) -> int | None:
        return None


def make(
    tmp_path: Path,
    *script: Sequence[Delta | BaseException],
    argv: Sequence[str] = ("--non-interactive",),
    specs: Sequence[ToolSpec] = SPECS,
    hooks: Sequence[Hook] = (),
    asker: Asker | None = None,
    permit: Permitter | None = None,
    text_asker: TextAsker | None = None,
    provider: Script | None = None,
    configured: bool = True,
    others: Sequence[Script] = (),
    models: ModelSource | None = None,
    prices: Mapping[str, Any] | None = None,
    listening: bool = True,
    foreign_tools: Collection[str] = (),
    watch: SessionWatch | None = None,
    **settings: Any,
) -> Made:
    """A session whose model answers with `script`, paid under a --max-cost; `settings` are those of `settled`."""
    config, secrets = settled(tmp_path, *argv, **settings)
    clients = Clients(config)
    model = (provider or Script(*script)) if configured else None
    table = Prices(prices or {}, config.cache_folder / "prices.json")
    table.add("scripted", "", free=not prices)
    meter = UsageMeter(table.cost, table.is_known)
    budgets = BudgetFactory(config, table, NoLimits(), print)
    budget = budgets.of_run()
    paid = BudgetedProvider(model, budget) if model and budget else model
    setup = SessionSetup(
        config=config,
        secrets=secrets,
        tools=specs,
        hooks=hooks,
        commands=(),
        models=models or ScriptedModels(*([paid] if paid else []), *others),
        clients=clients,
        packs=cache(
            lambda: Packs(Owners(), config, secrets, lambda: config.config_folder / "profiles" / "main")
        ),  # once, as a run has it
        meter=meter,
        budgets=budgets,
        budget=budget,
        asker=asker,
        permit=permit,
        text_asker=text_asker,
        foreign_tools=foreign_tools,
    )
    parts = build(setup if watch is None else watch.arranged(setup))
    if watch is not None:
        watch.attach(parts)
    session = Session(parts)
    made = Made(session=session, parts=parts, config=config, provider=model, meter=meter, events=[])
    if listening:
        session.subscribe(made.events.append)
    return made


def spec(
    name: str,
    *,
    group: str = "",
    access: Sequence[Access] = ("read",),
    requires: Sequence[str] = (),
    confirm: bool = False,
) -> ToolSpec:
    """The declaration of a tool that is never called."""
    return ToolSpec(
        name=name,
        description="A tool.",
        parameters={"type": "object", "properties": {}},
        access=frozenset(access),
        group=group,
        requires=tuple(requires),
        confirm=confirm,
        source="tests",
    )


async def until(reached: Callable[[], bool], limit: float = 50.0) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(limit):
        while not reached():  # noqa: ASYNC110  # what is waited for may be a file or a list
            await asyncio.sleep(0.002)
