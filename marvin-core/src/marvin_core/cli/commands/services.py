"""The health of the web services that tools use: stored states, and a harmless test call of each such tool."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.errors import ToolError
from ...api.tools import ToolSpec
from ...kit.service_health import ServiceHealth, ServiceState
from ...util.streams import keep_stdout, silence_packs
from ...util.text import local_time, one_line, shortened
from ...util.watchdog import owner_of
from ..run import CommandContext
from ..watched import run_watched

if TYPE_CHECKING:
    from ...app import App
    from ...engine.session import Session

_SHOWN = 200
_WHY_NOT = "it needs a key or an address that is not set, or it was not needed"


def health(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TOOL ...", help="The tools to test. Default: all.")
    ] = None,
) -> None:
    """Test each tool that uses services with a harmless call. Exits with 1 if one fails.

    Each service of a tool is asked, also those that stand in for another one.
    """
    run: CommandContext = context.obj
    session = run.session()
    specs = [session.toolbox.spec(name) for name in names or ()] or list(session.toolbox.offered)
    tried = [spec for spec in specs if spec.probe is not None]
    silent = [spec.name for spec in specs if names and spec.probe is None]
    if silent:
        raise ToolError(f"{silent[0]} uses no service, or declares no test call. Leave it out.")
    keep_stdout(run.streams, owner_of)
    failures = run_watched(run, _try(run, session, tried), close=session.close, rescue=session.rescue)
    silence_packs()
    run.say("" if tried else "None of the available tools uses a service.\n")
    found = list(service_lines(run.app(), tried))
    run.say("\nServices\n" if found else "")
    for mark, known, failure in found:
        run.say(f"  {mark:6} {known}\n" + (f"         {failure}\n" if failure else ""))
    if failures:
        raise typer.Exit(1)


async def _try(run: CommandContext, session: Session, specs: Sequence[ToolSpec]) -> int:
    """Call the tools one after the other, and print a line for each. Returns the number of failures."""
    failures = 0
    width = max((len(spec.name) for spec in specs), default=0)
    for spec in specs:
        began = time.monotonic()
        output = await session.call_tool(spec.name, spec.probe or {}, "trial")
        failures += output.is_error
        said = [line for line in output.text.splitlines() if line.strip()] or [""]
        told = one_line(output.text if output.is_error else said[-1], _SHOWN)
        mark, took = "BROKEN" if output.is_error else "ok", time.monotonic() - began
        run.say(f"  {mark:6} {spec.name:{width}}  {took:.1f} s  {told}\n")
    return failures


def service_lines(app: App, tried: Sequence[ToolSpec] = ()) -> Iterator[tuple[str, str, str]]:
    """The states of the services of packs: for each a mark, its description, and its last failure.

    Args:
        tried: the services of these tools are listed even if they were never asked, for instance for lack of a key.
    """
    for pack in app.plugins.packs:
        folder = app.packs.of(pack).folders.there().get("state")
        states = asyncio.run(ServiceHealth(folder).states()) if folder is not None else ()
        specs = [spec for spec in app.plugins.tools if spec.source == pack.distribution]
        titles = Counter(state.title for state in states)
        for state in states:
            title = state.title if titles[state.title] == 1 else f"{state.title} ({state.name})"
            yield (
                "none" if state.is_failing else "ok",
                _known(title + _asked_by(specs, state.title), state),
                _failure(state),
            )
        named = dict.fromkeys(label for spec in tried if spec in specs for label in spec.labels)
        for title in named:
            if title not in titles:
                yield "none", f"{title}{_asked_by(specs, title)}: was not tested", _WHY_NOT


def _asked_by(specs: Sequence[ToolSpec], title: str) -> str:
    """The tools that use the service with this title, in parentheses."""
    names = [spec.name for spec in specs if title in spec.labels]
    return f" ({shortened(names)})" if names else ""


def _known(title: str, state: ServiceState) -> str:
    answered = f"last answered {local_time(state.worked)}" if state.worked else "has not answered yet"
    return f"{title}: {answered}"


def _failure(state: ServiceState) -> str:
    return f"failed {local_time(state.failed)}: {state.why}" if state.failed else ""
