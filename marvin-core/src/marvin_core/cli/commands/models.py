"""The sub-command `marvin models`: the models of services, with their known properties."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.errors import MarvinError
from ...api.providers import ModelFacts
from ...api.record import Record
from ...config.program import command_name
from ...util.terminal_text import json_for_terminals
from ...util.text import counted, one_line
from ..run import CommandContext
from ..watched import run_watched

if TYPE_CHECKING:
    from ...api.providers import ProviderSpec
    from ...app import App

_UPDATE = "update"
_HEAD = ("model", "window", "longest", "input", "output", "thinks", "images", "ends")
_UNKNOWN = "-"
_LONGEST_NAME = 80


class _Row(Record):
    """A model in the list."""

    provider: str
    model: str
    default: bool
    facts: ModelFacts


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("models")(models)


def models(
    context: typer.Context,
    provider: Annotated[
        str,
        typer.Argument(metavar="[PROVIDER]", help="One service; `update` downloads the lists of all services again."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the models of the services that are set up, or of one: windows, prices, thinking, images, ends.

    Windows and longest answers are in tokens, prices in USD for a million of them; `*` is the default.
    `marvin models update` asks the services for their lists again, and gets the newest table of prices.
    """
    run: CommandContext = context.obj
    app = run.app()
    if provider == _UPDATE:
        _update(run, app)
        return
    specs = [app.catalog.spec(provider, "", by_flag=True)] if provider else [spec for spec, _ in app.catalog.set_up()]
    if not specs:
        hint = f"`{command_name()} models PROVIDER` also lists the known models of a service that is not set up."
        run.say(f"{app.catalog.how_to()}\n{hint}\n")
        return
    rows = [row for spec in specs for row in _rows(app, spec)]
    if as_json:
        entries = [_entry(row) for row in rows]
        run.write(json_for_terminals(json.dumps(entries, ensure_ascii=False, indent=2)) + "\n")
        return
    for number, spec in enumerate(specs):
        run.say("\n" * bool(number) + _table(app, spec, [row for row in rows if row.provider == spec.name]))


def _rows(app: App, spec: ProviderSpec) -> Iterator[_Row]:
    from ...providers.selection.service_lists import chat_models

    listed = chat_models(app.catalog.lists.asked(spec)) if app.catalog.reason(spec) or app.catalog.is_here(spec) else []
    default = app.catalog.default_model(spec)
    for name in listed or app.catalog.names(spec):
        yield _Row(provider=spec.name, model=name, default=name == default, facts=_facts(app, spec, name))


def _facts(app: App, spec: ProviderSpec, model: str) -> ModelFacts:
    """The known facts. Prices of config.yaml take precedence; a local gateway costs what its model costs."""
    own = app.config.prices.get(f"{spec.name}/{model}") or app.config.prices.get(model)
    free, nothing = app.catalog.is_free(spec), ModelFacts(input=0.0, output=0.0)
    priced = ModelFacts(input=own.input, output=own.output) if own is not None else nothing if free else ModelFacts()
    facts = priced.or_else(app.catalog.lists.facts(spec, model))
    if not spec.in_process:
        from ...providers.selection.price_table import table_facts

        address, cache = app.catalog.base_url(spec), app.config.cache_folder
        facts = facts.or_else(table_facts(spec.name, address, model, cache, by_maker=free is None))
    return facts if free is False else facts.or_else(nothing)


def _entry(row: _Row) -> dict[str, Any]:
    known = {name: (None if value == "" else value) for name, value in row.facts.as_dict().items()}
    return {"provider": row.provider, "model": row.model, "default": row.default, **known}


def _table(app: App, spec: ProviderSpec, rows: Sequence[_Row]) -> str:
    reason = app.catalog.reason(spec) or ("on this machine" if app.catalog.is_here(spec) else "not set up")
    lines = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    told = [f"{spec.name} ({reason})"]
    for number, line in enumerate(lines):
        mark = "*" if number and rows[number - 1].default else " "
        aligned = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        told.append(f"{mark} {'  '.join(aligned)}".rstrip())
    if not rows:
        told[1:] = ["  It lists no models. Either the server is not running, or it loads each model on request."]
    return "\n".join(told) + "\n"


def _cells(row: _Row) -> tuple[str, ...]:
    facts = row.facts
    return (
        one_line(row.model, _LONGEST_NAME),
        _number(facts.window),
        _number(facts.longest),
        _price(facts.input),
        _price(facts.output),
        _yes(facts.thinks),
        _yes(facts.images),
        facts.ends or _UNKNOWN,
    )


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _price(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.2f}" if value >= 0.01 or not value else f"{value:.4f}"


def _yes(value: bool | None) -> str:
    return _UNKNOWN if value is None else "yes" if value else "no"


def _update(run: CommandContext, app: App) -> None:
    """Update the model lists of all services that are set up, and the price table. Exits with 1 if all fail."""
    names = [spec.name for spec, _ in app.catalog.set_up()]
    told = run_watched(run, _asked(run, app, names), close=app.models.aclose)
    for name, (works, text) in zip([*names, "prices"], told, strict=True):
        run.say(f"{'ok' if works else 'failed':8}{name}: {text}\n")
    if not any(works for works, _ in told):
        raise typer.Exit(1)


async def _asked(run: CommandContext, app: App, names: Sequence[str]) -> list[tuple[bool, str]]:
    return list(await asyncio.gather(*(_answer(app, name) for name in names), _prices(run)))


async def _prices(run: CommandContext) -> tuple[bool, str]:
    from ...http.clients import Clients
    from ...usage.price_updates import fetch_table

    clients, url = Clients(run.config), run.config.prices_url
    if url:
        clients.trust(url)  # the user may have set a mirror on this machine or network
    try:
        count = await fetch_table(clients.for_tools(), url, run.config.cache_folder)
    except MarvinError as error:
        return False, str(error)
    finally:
        await clients.close()
    return True, f"the table has the prices of {counted(count, 'service')}"


async def _answer(app: App, name: str) -> tuple[bool, str]:
    try:
        served = await app.models.served(name)
    except MarvinError as error:
        return False, str(error)
    return True, counted(len(served), "model") if served else "lists no models"
