"""The sub-command `marvin tools`: list, show and call tools."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.errors import ToolError, UsageError
from ...api.events import Event, ToolExecutionUpdate
from ...api.tools import ToolSpec
from ...tools.arguments import parse_key_values
from ...tools.help import in_shell, tool_help, with_typed_calls
from ...ui.rendering import OUTPUT_LINES, columns_at
from ...util.shown import ProgressLines, shown_lines
from ...util.streams import keep_stdout, silence_packs
from ...util.terminal_text import json_for_terminals
from ...util.text import cut
from ...util.untrusted_json import parse_json
from ...util.watchdog import owner_of
from ..run import CommandContext, group
from ..watched import run_watched
from .services import health

if TYPE_CHECKING:
    pass


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    tools = group("Tools: list, show, call and test them.", list_tools)
    tools.command("list")(list_tools)
    tools.command("show")(show_tool)
    tools.command("call")(call_tool)
    tools.command("health")(health)
    app.add_typer(tools, name="tools")


def list_tools(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List every tool, and the reason if it is not available."""
    run: CommandContext = context.obj
    app = run.app()
    session = app.session(asker=None, interactive=False)
    missing = session.toolbox.missing
    if as_json:
        entries = [_entry(spec, missing) for spec in app.plugins.tools]
        run.write(json_for_terminals(json.dumps(entries, ensure_ascii=False, indent=2)) + "\n")
        return
    width = max((len(spec.name) for spec in app.plugins.tools), default=0)
    group = ""
    for spec in sorted(app.plugins.tools, key=lambda spec: (spec.source, spec.group)):
        if f"{spec.source} {spec.group}" != group:
            group = f"{spec.source} {spec.group}"
            run.say(f"{spec.group} ({spec.source})\n")
        note = f"  [not available: {missing[spec.name]}]" if spec.name in missing else ""
        run.say(f"  {spec.name:{width}}  {_summary(spec)}{note}\n")
    if all(spec.source == "marvin-core" for spec in app.plugins.tools):  # those of the core alone
        run.write('No pack with tools is installed. Install one: pip install "marvin-core[coding]"\n')


def _entry(spec: ToolSpec, missing: Any) -> dict[str, Any]:
    return {
        "name": spec.name,
        "group": spec.group,
        "distribution": spec.source,
        "access": sorted(spec.access),
        "description": spec.description,
        "parameters": spec.parameters,
        "offered": spec.name not in missing,
        "reason": missing.get(spec.name, ""),
    }


def _summary(spec: ToolSpec) -> str:
    return spec.description.partition("\n")[0]


def show_tool(context: typer.Context, name: Annotated[str, typer.Argument(help="The tool.")]) -> None:
    """Show what a tool does, its parameters, and a call of it."""
    run: CommandContext = context.obj
    app = run.app()
    session = app.session(asker=None, interactive=False)
    spec = next((spec for spec in app.plugins.tools if spec.name == name), None) or session.toolbox.spec(name)
    lines = [tool_help(spec, in_shell())]
    if spec.name in session.toolbox.missing:
        lines.append(f"Not available here: {session.toolbox.missing[spec.name]}")
    run.say("\n".join(lines) + "\n")


def call_tool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The tool.")],
    pairs: Annotated[list[str] | None, typer.Argument(metavar="key=value ...", help="Its arguments.")] = None,
    as_json: Annotated[str | None, typer.Option("--json", help="The arguments as a JSON object.")] = None,
) -> None:
    """Call a tool by hand. Exits with 1 if the tool reports an error."""
    run: CommandContext = context.obj
    if as_json is not None and pairs:
        raise UsageError("Give the arguments as key=value or with --json, not both.")
    session = run.session()
    spec = session.toolbox.spec(name)
    try:
        arguments = _json_object(as_json) if as_json is not None else parse_key_values(pairs or [], spec)
    except ToolError as error:
        raise ToolError(with_typed_calls(str(error), in_shell())) from error
    keep_stdout(run.streams, owner_of)
    session.subscribe(partial(_tell_progress, run, ProgressLines(run.config.timeouts.progress)))
    work = session.call_tool(name, arguments)
    output = run_watched(run, work, close=session.close, rescue=session.rescue)
    text = with_typed_calls(output.text, in_shell()) if output.is_error else output.text
    run.write(text + ("" if text.endswith("\n") else "\n"))
    width = columns_at(run.streams.stdout)
    run.write("".join(f"{line}\n" for line in shown_lines(output.for_people, width, rows=OUTPUT_LINES)))
    silence_packs()
    if output.is_error:
        raise typer.Exit(1)


def _tell_progress(run: CommandContext, lines: ProgressLines, event: Event) -> None:
    told = lines.line(event) if isinstance(event, ToolExecutionUpdate) else ""
    if told:
        run.streams.err(f"marvin: {told}")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except ValueError as error:
        raise UsageError(f"--json takes a JSON object: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"--json takes a JSON object, not {cut(text, 40)!r}.")
    return value
