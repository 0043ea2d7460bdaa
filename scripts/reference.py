"""Writes the reference pages that are generated from the code; with --check it lists the outdated ones."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

import marvin_core
import marvin_pipeline.plugin
import marvin_tools_life.plugin
from marvin_core import builtin, testing
from marvin_core.api import errors, events, hookspecs
from marvin_core.api.record import Record
from marvin_core.config.environment import ENVIRONMENT
from marvin_core.config.file.model import file_schema
from marvin_core.config.flags import parser
from marvin_core.plugins.index import load_index
from marvin_core.plugins.model import Index
from marvin_core.testing import plugin
from marvin_core.tools.argument_errors import example_call
from marvin_core.tools.sets import SETS
from marvin_core.util.schemas.texts import members_of, schema_at, type_text
from marvin_core.util.text import to_json

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
HANDBOOK = Path(marvin_core.__file__).parent / "tools" / "handbook.jsonl"
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
    lines += ["| 2 | a wrong flag, value or sub-command |", "| 3 | the cost ceiling was reached |"]
    lines += ["| 4 | the pipeline: findings of a review above the threshold are open |"]
    lines += ["| 5 | the pipeline: tests or other checks of the program fail, or their evidence is too weak |"]
    lines += ["| 130 | interrupted (Ctrl+C, SIGTERM) |"]
    return "\n".join(lines)


def _subcommands() -> Iterator[str]:
    """The subcommands of the core and of the packs in this repository."""
    app = typer.Typer()
    app.callback()(lambda: None)
    for module in (builtin, marvin_pipeline.plugin, marvin_tools_life.plugin):
        module.marvin_extend_cli(app)
    root: Any = typer.main.get_command(app)
    yield "| `marvin tk COMMAND ...` | [Tickets](../how-to/tickets.md); `marvin tk help` lists the commands. |"
    for name, group in sorted(root.commands.items()):
        for command in getattr(group, "commands", {"": group}).values():
            words = [_word(parameter) for parameter in command.params if parameter.name != "help"]
            usage = " ".join(["marvin", name, *([command.name] if command is not group else []), *words])
            yield f"| `{usage}` | {inspect.cleandoc(command.help).splitlines()[0]} |"


def _word(parameter: Any) -> str:
    if parameter.opts[0].startswith("--"):
        return f"[{parameter.opts[0]}]"
    name = parameter.name.upper()
    return str(parameter.metavar or (name if parameter.required else f"[{name}]"))


def environment(index: Index) -> str:
    """Every environment variable, by who sets it."""
    services: dict[str, str] = {}
    for _, spec in index.providers:
        services.update(dict.fromkeys(spec.key_variables, f"The key of {spec.name}."))
        if spec.url_variable:
            services[spec.url_variable] = f"The address of {spec.name}; default: {spec.base_url}."
        if spec.model_variable:
            default = f"; default: {spec.default_model}" if spec.default_model else ""
            services[spec.model_variable] = f"The model of {spec.name}{default}."
    core = {name: meaning for name, meaning in ENVIRONMENT.items() if name not in services}
    agents = {name: meaning for name, meaning in core.items() if _FOR_AGENTS in meaning}
    own = {name: core[name] for name in core if name.startswith(_OWN) and name not in agents}
    system = {name: core[name] for name in core if name not in {**agents, **own}}
    packs = {name: meaning for name, meaning in _of_packs(index).items() if name not in {**core, **services}}
    groups = {
        "Marvin": own,
        "Keys, addresses and models of services": services,
        "Packs": packs,
        "The system": system,
        "Set by Marvin for the agents that it starts": agents,
    }
    lines = ["# Environment variables"]
    for title, rows in groups.items():
        lines += ["", f"## {title}", "", "| variable | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in sorted(rows.items())]
    return "\n".join(lines)


_OWN = ("MARVIN_", "LLM_")
_FOR_AGENTS = "set by the agent that starts"


def _of_packs(index: Index) -> dict[str, str]:
    """The variables of packs and of tools."""
    rows: dict[str, str] = {}
    for _, declared in index.settings:
        for name, meaning in declared.secrets.items():
            rows[name] = f"A secret of the pack {declared.name}: {meaning.rstrip('.')}."
        for key, name in declared.variables.items():
            description = schema_at(declared.schema, key.split(".")).get("description", "")
            rows.setdefault(name, f"`packs.{declared.name}.{key}`: {description}".rstrip(": "))
    for _, tool in index.tools:
        for name in (*tool.secrets, *tool.settings):
            rows.setdefault(name, f"Used by the tool {tool.name}.")
    return rows


def configuration(index: Index) -> str:
    """Every key of config.yaml, including those of the packs in this repository."""
    keys = dict(file_schema(described=True)["properties"])
    own = {key: keys.pop(key) for key in ("limits", "timeouts")}
    lines = [CONFIGURATION, *_KEYS, *_rows({"properties": keys}, "")]
    lines += ["", "## Settings of packs", "", "An environment variable takes precedence over config.yaml.", ""]
    lines += ["| key | value | default | variable | meaning |", "|---|---|---|---|---|"]
    for _, declared in index.settings:
        lines += _rows(declared.schema, f"packs.{declared.name}", variables=declared.variables)
    for key, schema in own.items():
        lines += ["", f"## {key.capitalize()}", "", *_KEYS, *_rows(schema, key)]
    return "\n".join(lines)


CONFIGURATION = """# config.yaml

In the configuration folder, `~/.config/marvin` by default. Every key is optional, and the file may have 1 MB. Each
start, `marvin doctor` and `marvin config set` report the errors in it with their lines. NAME stands for any name.
"""
_KEYS = ("| key | value | default | meaning |", "|---|---|---|---|")


def _rows(
    schema: Mapping[str, Any], name: str, required: bool = False, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A row for a key, or rows for the keys below it. `variables` are a pack's environment variables, by key."""
    below = members_of(schema)
    entry = below.get("additionalProperties")
    keys = below.get("properties", {})
    if (not keys or below is not schema) and not isinstance(entry, Mapping):
        yield _row(schema, name, required, variables)
    for key, inner in keys.items():
        yield from _rows(inner, f"{name}.{key}".removeprefix("."), key in below.get("required", ()), variables)
    if isinstance(entry, Mapping):
        yield from _rows({"description": schema.get("description", ""), **entry}, f"{name}.NAME", False, variables)


def _row(schema: Mapping[str, Any], name: str, required: bool, variables: Mapping[str, str] | None) -> str:
    default = schema.get("default", "")
    texts = [f"`{one if isinstance(one, str) else to_json(one)}`" for one in _entries(default) if one != ""]
    cells = [f"`{name}`", type_text(schema), ", ".join(texts) or ("it has to be set" if required else "")]
    if variables is not None:
        variable = variables.get(name.split(".", 2)[2], "")
        cells.append(f"`{variable}`" if variable else "")
    cells.append(schema.get("description", ""))
    return f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"


def _entries(default: Any) -> Sequence[Any]:
    return default if isinstance(default, (list, tuple)) else [default]


def hooks() -> str:
    """The hook specifications."""
    parts = ["# What a pack registers", "", inspect.getdoc(hookspecs) or ""]
    for name, _ in inspect.getmembers(hookspecs, inspect.isfunction):
        if name.startswith("marvin_"):
            parts += ["", f"::: marvin_core.api.hookspecs.{name}"]
            parts += ["", f"Since API {hookspecs.SINCE[name]}."]
    return "\n".join(parts)


# The page of each public name, by the module that defines it. A name on no page is a helper.
API_PAGES = {
    "tools": (
        "Tools",
        "The parts of a tool, its context, and its results.",
        *("tools", "tool_context", "agents"),
    ),
    "hooks": ("Hooks", "Hooks watch what an agent does, and can restrict it.", "hooks", "hookspecs"),
    "providers": (
        "Providers",
        "A provider sends requests to a model service and reads its answers.",
        "providers",
        "models",
    ),
    "messages": ("Messages", "The messages of a conversation, and their parts.", "messages"),
    "events": ("Events in Python", "The events that interfaces and hooks receive.", "events"),
    "interfaces": (
        "Interfaces and commands",
        "Interfaces, what they need of a session, and slash commands.",
        "session",
        "controls",
        "permissions",
        "ui",
        "cli",
    ),
    "config": (
        "Configuration and records",
        "The configuration that packs see, and the base class of all records.",
        *("config", "settings", "limits", "timeouts", "record"),
    ),
    "errors": ("Errors in Python", "The exceptions that Marvin and packs raise.", "errors"),
    "kit": ("The kit", "Functions and classes that many packs need."),
}
HELPERS = "kit"


def api_pages() -> dict[str, str]:
    """The pages of the public names, in the order of their modules; the descriptions come from the docstrings."""
    texts: dict[str, list[str]] = {}
    for page, (title, about, *_) in API_PAGES.items():
        texts[page] = [f"# {title}", "", f"{about} Import these names from `marvin_core`."]
    page_of = {f"api.{module}": page for page, (_, _, *modules) in API_PAGES.items() for module in modules}
    for name in sorted(set(marvin_core.__all__) & marvin_core._HOME_OF.keys(), key=_place):
        page = page_of.get(marvin_core._HOME_OF[name], HELPERS)
        texts[page] += ["", f"::: marvin_core.{name}"]
    texts["config"] += ["", "::: marvin_core.API"]
    texts["events"] += _events()
    texts["tools"] += ["", "## Field", "", FIELD]
    texts["testing"] = ["# Testing", "", TESTING, *_named("marvin_core.testing", sorted(testing.__all__))]
    texts["testing"] += ["", "# Fixtures", *_named("marvin_core.testing.plugin", _fixtures())]
    return {f"api-{page}.md": "\n".join(lines) for page, lines in texts.items()}


FIELD = """Of pydantic: limits of a parameter, as in `Annotated[int, Field(ge=1, le=20)]`. See
[its documentation](https://docs.pydantic.dev/latest/concepts/fields/)."""
TESTING = """Import these names from `marvin_core.testing`, in tests only. [Test a pack](../how-to/test-a-pack.md) shows
them at work."""


def _place(name: str) -> tuple[int, str, int]:
    """Where a public name is defined: names are shown in the order of the pages and of the source."""
    order = [f"api.{module}" for _, _, *modules in API_PAGES.values() for module in modules]
    home = marvin_core._HOME_OF[name]
    lines = inspect.getsource(import_module(f"marvin_core.{home}")).splitlines()
    start = re.compile(rf"(class |def |async def )?{name}\b(?=[(:]| = |\[)").match
    line = next((number for number, line in enumerate(lines) if start(line)), 0)
    return order.index(home) if home in order else len(order), home, line


def _events() -> list[str]:
    names = [name for name, kind in inspect.getmembers(events, inspect.isclass) if _is_event(kind)]
    return _named("marvin_core.api.events", [name for name in names if name not in marvin_core.__all__])


def _is_event(kind: type) -> bool:
    return issubclass(kind, Record) and hasattr(kind, "type")


def _fixtures() -> list[str]:
    return [name for name in vars(plugin) if name.startswith("marvin_")]


def _named(module: str, names: Sequence[str]) -> list[str]:
    return [line for name in names for line in ("", f"::: {module}.{name}")]


def tools(index: Index) -> str:
    """Every tool of the packs in this repository."""
    parts = ["# Tools", ""]
    for spec in sorted((spec for _, spec in index.tools), key=lambda spec: (spec.source, spec.group)):
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
        "`--output-format stream-json` prints each event as a line of JSON with `type` and these fields.",
        "",
    ]
    parts += ["| type | fields | meaning |", "|---|---|---|"]
    for _, kind in inspect.getmembers(events, inspect.isclass):
        if _is_event(kind):
            fields = ", ".join(f"`{name}`" for name in kind._defaults)
            parts.append(f"| `{kind.type}` | {fields} | {' '.join((kind.__doc__ or '').split())} |")
    return "\n".join(parts)


def error_page() -> str:
    """The tree of errors."""
    tree = (inspect.getdoc(errors) or "").partition("\n\n")[2]
    return "# Errors\n\nThe exceptions that Marvin raises, and what they mean.\n\n```text\n" + tree + "\n```"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    with TemporaryDirectory() as cache:
        index = load_index(Path(cache))
    return {
        "command-line.md": command_line(),
        "configuration.md": configuration(index),
        "environment.md": environment(index),
        "errors.md": error_page(),
        "events.md": event_page(),
        "hooks.md": hooks(),
        "tools.md": tools(index),
        **api_pages(),
    }


def main() -> int:
    """Write the pages and the handbook for chats without a model; or with --check compare them."""
    sys.path.insert(0, str(Path(__file__).parent))  # `python -P` looks for no module beside this one
    from handbook import written

    stale = []
    for name, text in pages().items():
        path, content = FOLDER / name, f"{NOTE}{text}\n"
        if "--check" not in sys.argv:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
    handbook = written(FOLDER.parent)
    if "--check" not in sys.argv:
        HANDBOOK.write_text(handbook, encoding="utf-8")
    elif not HANDBOOK.exists() or HANDBOOK.read_text(encoding="utf-8") != handbook:
        stale.append(HANDBOOK.name)
    if stale:
        print(f"Out of date: {', '.join(stale)}. Run `make docs`.", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
