"""Writes the reference pages that follow from the code; with --check it says which ones are out of date."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

import marvin_pipeline.plugin
from marvin_core import builtin
from marvin_core.api import errors, events, hookspecs
from marvin_core.api.hooks import Hook
from marvin_core.api.limits import Limits
from marvin_core.api.record import Record
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.environment import ENVIRONMENT
from marvin_core.config.flags import parser
from marvin_core.config.settings import KEYS, KIND_NAMES, MEANINGS
from marvin_core.plugins.discovery import discover
from marvin_core.plugins.model import Index
from marvin_core.tools.argument_errors import example_call, type_text
from marvin_core.tools.sets import SETS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py (`make docs`). Change the code it comes from, not this page. -->\n"


def command_line() -> str:
    """Flags and exit codes."""
    lines = [
        "# Command line",
        "",
        "`marvin [PROMPT]`, or `marvin SUB-COMMAND ...`.",
        "",
    ]
    lines += ["| flag | meaning |", "|---|---|"]
    for action in parser()._actions:
        if action.option_strings:
            value = "" if action.nargs == 0 else f" {action.metavar or ' or '.join(action.choices or ())}"
            lines.append(f"| `{', '.join(action.option_strings)}{value}` | {action.help} |")
    lines += ["", "| sub-command | meaning |", "|---|---|", *_subcommands()]
    lines += ["", "| exit code | meaning |", "|---|---|", "| 0 | done |", "| 1 | an error |"]
    lines += ["| 2 | a wrong flag, value or sub-command |", "| 3 | the price ceiling was reached |"]
    lines += ["| 130 | interrupted (Ctrl+C, SIGTERM) |"]
    return "\n".join(lines)


def _subcommands() -> Iterator[str]:
    """Those of the core and of the packs in this repository."""
    app = typer.Typer()
    app.callback()(lambda: None)
    for extend in (builtin.marvin_extend_cli, marvin_pipeline.plugin.marvin_extend_cli):
        extend(app)
    root: Any = typer.main.get_command(app)
    for name, group in sorted(root.commands.items()):
        for command in getattr(group, "commands", {"": group}).values():
            words = [_word(parameter) for parameter in command.params if parameter.name != "help"]
            usage = " ".join(["marvin", name, *([command.name] if command is not group else []), *words])
            yield f"| `{usage}` | {inspect.cleandoc(command.help).splitlines()[0]} |"


def _word(parameter: Any) -> str:
    if parameter.opts[0].startswith("--"):
        return f"[{parameter.opts[0]}]"
    return str(parameter.metavar or parameter.name.upper())


def environment(index: Index) -> str:
    """Every variable that is read."""
    rows = dict(ENVIRONMENT)
    for spec in index.providers:
        rows.update(dict.fromkeys(spec.key_variables, f"The key of {spec.name}."))
        if spec.url_variable:
            rows[spec.url_variable] = f"The address of {spec.name}; {spec.base_url} without it."
        if spec.model_variable:
            default = f"; {spec.default_model} without it" if spec.default_model else ""
            rows[spec.model_variable] = f"The model of {spec.name}{default}."
    for tool in index.tools:
        for name in (*tool.secrets, *tool.settings):
            rows.setdefault(name, f"Used by the tool {tool.name}.")
    table = [f"| `{name}` | {meaning} |" for name, meaning in sorted(rows.items())]
    return "\n".join(["# Environment variables", "", "| variable | meaning |", "|---|---|", *table])


def configuration() -> str:
    """Every key of config.yaml."""
    head = "# config.yaml\n\nIn the configuration folder, `~/.config/marvin` by default. Every key is optional; an\n"
    head += "unknown one is an error that names its line.\n\n| key | value | meaning |\n|---|---|---|"
    limits = ["", "## Limits", "", "Whole numbers from 1 on.", "", *_fields("limit", Limits)]
    timeouts = ["", "## Timeouts", "", "In seconds.", "", *_fields("wait", Timeouts)]
    return "\n".join([head, *_keys(KEYS, ""), *limits, *timeouts])


def _keys(schema: Mapping[Any, Any], prefix: str) -> Iterator[str]:
    for key, value in schema.items():
        name = f"{prefix}{'NAME' if key is str else key}"
        if key in ("timeouts", "limits"):
            yield f"| `{name}` | numbers | {MEANINGS[name]} |"
        elif isinstance(value, Mapping):
            yield from _keys(value, f"{name}.")
        else:
            yield f"| `{name}` | {KIND_NAMES[value]} | {MEANINGS[name]} |"


def _fields(what: str, kind: type[Record]) -> Iterator[str]:
    """A table of the fields of such numbers."""
    yield f"| {what} | default | meaning |"
    yield "|---|---|---|"
    lines = inspect.getsource(kind).splitlines()
    defaults = kind().as_dict()
    for line, following in pairwise(lines):
        name = line.strip().partition(":")[0]
        if name in defaults:
            meaning = following.strip().strip('"')
            yield f"| `{name}` | {defaults[name]} | {meaning} |"


def hooks() -> str:
    """The hook specifications."""
    parts = ["# Hooks for packs", "", inspect.getdoc(hookspecs) or ""]
    for name, function in inspect.getmembers(hookspecs, inspect.isfunction):
        if name.startswith("marvin_"):
            signature = str(inspect.signature(function)).replace("'", "")
            parts += ["", f"## {name}", "", f"    def {name}{signature}", "", inspect.getdoc(function) or ""]
            parts += ["", f"Since API {hookspecs.SINCE[name]}."]
    parts += [
        "",
        "## Methods of Hook",
        "",
        inspect.getdoc(Hook) or "",
        "",
        "| method | meaning | since API |",
        "|---|---|---|",
    ]
    for name, since in hookspecs.SINCE.items():
        if name.startswith("Hook."):
            meaning = " ".join((inspect.getdoc(getattr(Hook, name.removeprefix("Hook."))) or "").split())
            parts.append(f"| `{name}` | {meaning} | {since} |")
    return "\n".join(parts)


def tools(index: Index) -> str:
    """Every tool of the packs in this repository."""
    parts = ["# Tools", ""]
    for spec in sorted(index.tools, key=lambda spec: (spec.source, spec.group)):
        access = ", ".join(sorted(spec.access))
        sets = ", ".join(name for name, holds in SETS.items() if holds(spec))
        place = f"{spec.source}, group {spec.group}; access: {access}; sets: {sets}."
        parts += [f"## {spec.name}", "", place, "", spec.description]
        required = spec.parameters.get("required", ())
        rows = [
            f"| `{name}` | {type_text(schema)} | {'required' if name in required else schema.get('default', '')} "
            f"| {schema.get('description', '')} |"
            for name, schema in spec.parameters["properties"].items()
        ]
        if rows:
            parts += ["", "| parameter | value | default | meaning |", "|---|---|---|---|", *rows]
        parts += ["", f"    {example_call(spec)}", ""]
    return "\n".join(parts).rstrip()


def event_page() -> str:
    """The events of `--output-format stream-json`."""
    parts = [
        "# Events",
        "",
        "`--output-format stream-json` prints one a line, as JSON with `type` and these fields.",
        "",
    ]
    parts += ["| type | fields | meaning |", "|---|---|---|"]
    for _, kind in inspect.getmembers(events, inspect.isclass):
        if issubclass(kind, Record) and hasattr(kind, "type"):
            fields = ", ".join(f"`{name}`" for name in kind._defaults)
            parts.append(f"| `{kind.type}` | {fields} | {' '.join((kind.__doc__ or '').split())} |")
    return "\n".join(parts)


def error_page() -> str:
    """The tree of errors."""
    tree = (inspect.getdoc(errors) or "").partition("\n\n")[2]
    return "# Errors\n\nEvery error that Marvin raises on purpose.\n\n```text\n" + tree + "\n```"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    index = discover()
    return {
        "command-line.md": command_line(),
        "configuration.md": configuration(),
        "environment.md": environment(index),
        "errors.md": error_page(),
        "events.md": event_page(),
        "hooks.md": hooks(),
        "tools.md": tools(index),
    }


def main() -> int:
    """Write the pages, or with --check compare them."""
    stale = []
    for name, text in pages().items():
        path, content = FOLDER / name, f"{NOTE}{text}\n"
        if "--check" not in sys.argv:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
    if stale:
        print(f"Out of date in docs/reference: {', '.join(stale)}. Run `make docs`.", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
