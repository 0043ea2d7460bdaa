"""The sub-command `marvin providers`: the model services, which of them can be used, and which one is in use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.errors import MarvinError
from ...api.record import Record
from ...util.failures import is_failure, told
from ...util.text import counted
from ..run import group
from ..watched import run_watched

if TYPE_CHECKING:
    from ...api.models import ModelEntry
    from ...app import App
    from ..run import CommandContext

_SHOWN_MODELS = 3


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    providers = group("The model services: which ones can be used, and which one is used now.", list_providers)
    providers.command("list")(list_providers)
    app.add_typer(providers, name="providers")


def list_providers(
    context: typer.Context,
    check: Annotated[bool, typer.Option(help="Test whether each configured service answers.")] = True,
) -> None:
    """List the services: which are set up, and which one is used.

    Each says why it can be used or what to do, and whether it answers.
    """
    run: CommandContext = context.obj
    app = run.app()
    entries = app.models.listed()
    usable = [entry for entry in entries if entry.reason or app.catalog.is_here(app.catalog.known[entry.provider])]
    answers = run_watched(run, _answers(app, usable), close=app.models.aclose) if check else {}
    chosen = app.choice.endpoint.provider if app.choice.endpoint is not None else ""
    out = run.say
    for entry in entries:
        mark = "*" if entry.provider == chosen else " "
        state = entry.reason or "not set up"
        answer = answers.get(entry.provider)
        is_there = answer is not None and answer.works
        if not entry.reason and is_there:
            state = "not chosen, but it answers"
        out(f"{mark} {entry.provider:14} {state}\n")
        out(f"    models: {', '.join(entry.models[:_SHOWN_MODELS]) or 'what the server lists'}\n")
        if entry.reason or is_there:
            out(f"    {answer.text}\n" if answer else "")
        else:
            out(f"    {entry.how_to[:1].upper()}{entry.how_to[1:]}\n")
    out(f"\n{_why(app)}\n")


def _why(app: App) -> str:
    choice = app.choice
    if choice.endpoint is None:
        return f"{choice.problem} The chat works without a model, with tools only."
    model = choice.endpoint.model or "the server's own model"
    return f"{choice.endpoint.provider} with {model} is used, because {choice.reason}."


class _Answer(Record):
    """Whether a service works, and the text to show."""

    works: bool
    text: str


async def _answers(app: App, entries: list[ModelEntry]) -> dict[str, _Answer]:
    """Ask each service for its models; the results by provider."""
    answers = await asyncio.gather(*(_answer(app, entry.provider) for entry in entries))
    return dict(zip([entry.provider for entry in entries], answers, strict=True))


async def _answer(app: App, name: str) -> _Answer:
    try:
        served = await app.models.served(name)
    except BaseException as error:  # a provider of a pack may raise anything
        if not is_failure(error):
            raise
        why = str(error) if isinstance(error, MarvinError) else told(error)
        return _Answer(works=False, text=f"does not work: {why}")
    return _Answer(works=True, text=f"answers, {counted(len(served), 'model')}" if served else "answers")
