"""The sub-command `marvin config`: show the configuration, change a value, open the file in an editor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.config import Source
from ...api.errors import ConfigError, UsageError
from ...config.file.sections import FileSettings, record_of
from ...config.load import fields_of
from ...config.program import command_name
from ...config.settings import is_own_of_packs, pack_sections, parse_settings, written_settings
from ...util.state_files import replace_file, update_file
from ...util.terminal_text import exact_line
from ..run import group
from ..watched import run_watched
from .pack_settings import schema_of, shown_settings

if TYPE_CHECKING:
    from ..run import CommandContext

_TEMPLATE = """\
# Your settings. The reference page config.yaml lists every key.
# provider: groq
# model: llama-3.3-70b-versatile
"""
_HIDDEN = "(not shown)"


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    config = group("Show, set and edit config.yaml; show the system prompt.", show_config)
    config.command("show")(show_config)
    # A value may begin with a hyphen.
    config.command("set", context_settings={"ignore_unknown_options": True})(set_value)
    config.command("unset")(unset_value)
    config.command("edit")(edit_config)
    app.add_typer(config, name="config")


def _path(run: CommandContext) -> Path:
    return run.config.config_folder / "config.yaml"


def show_config(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="[prompt]", help="`prompt`: show the system prompt, part by part.")
    ] = "",
) -> None:
    """Show what is configured, or the system prompt.

    Each value is shown with its origin. The prompt is the one that a session in this folder would have.
    """
    run: CommandContext = context.obj
    if what == "prompt":
        session = run.session()
        work = session.prompt_parts()
        for part in run_watched(run, work, close=session.close, rescue=session.rescue):
            run.write(f"== {part.origin} ({len(part.text):,} characters)\n{part.text}\n\n")
        return
    if what:
        raise UsageError(f"{command_name()} config show accepts no argument or `prompt`, not {what!r}.")
    config, path = run.config, _path(run)
    there = path.exists()
    settings = _written(path)
    lines = [
        f"config.yaml    {path}{'' if there else ' (not there; every key is optional)'}",
        f"data           {config.data_folder}",
        f"cache          {config.cache_folder}",
        f"state          {config.state_folder}",
        f"working dir    {config.working_dir}",
        f"provider       {_chosen(config.provider, config.provider_origin)}",
        f"model          {_chosen(config.model, config.model_origin)}",
        f"thinking       {config.thinking}",
        f"permissions    {config.permission_mode or 'auto if the sandbox works, else ask'}",
        f"trust          {_trust(run)}",
        "",
        *_instructions(run),
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in _shown(settings).items()),
        *shown_settings(run, settings),
    ]
    run.write("\n".join(lines).rstrip() + "\n")


def _written(path: Path) -> dict[str, Any]:
    """The settings in the file. Raises `ConfigError` if the file is invalid."""
    if not path.exists():
        return {}
    content = path.read_bytes()
    parse_settings(content, path)
    return written_settings(content, path)


def _trust(run: CommandContext) -> str:
    """Whether the extensions of the working directory may be loaded."""
    from ...guard.trust import TrustStore

    found = TrustStore(run.config).look(run.config.working_dir)
    if not found.brings:
        return "not needed: this folder contains nothing that would be loaded"
    lines = [f"  {exact_line(line)}" for line in found.details]
    return "\n".join([f"{'yes' if found.trusted else 'no'}: {found.why}", *lines])


def _instructions(run: CommandContext) -> list[str]:
    """The instruction files that the model is given, and the available skills."""
    from ...engine.instructions.listing import listed_instructions, listed_skills

    lines = [*listed_instructions(run.config), *listed_skills(run.config, run.app().plugins.data_folders)]
    return [*lines, ""] if lines else []


def _chosen(value: str, origin: str) -> str:
    return f"{value} (from {origin})" if value else f"not set; see {command_name()} doctor"


def _shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without values that may be keys, and without settings of packs, which are shown separately."""
    providers = {
        name: {**entry, **({"headers": dict.fromkeys(entry["headers"], _HIDDEN)} if "headers" in entry else {})}
        for name, entry in settings.get("providers", {}).items()
    }
    servers = {
        name: {
            **entry,
            **{key: dict.fromkeys(entry[key], _HIDDEN) for key in ("env", "headers") if key in entry},
            **({"client_secret": _HIDDEN} if "client_secret" in entry else {}),
        }
        for name, entry in settings.get("mcp_servers", {}).items()
    }
    shown = {**settings, **({"providers": providers} if providers else {})}
    shown |= {"mcp_servers": servers} if servers else {}
    own = {key: value for key, value in shown.pop("packs", {}).items() if key not in pack_sections(settings)}
    return {**shown, **({"packs": own} if own else {})}


def set_value(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key. Use dots for nested keys: timeouts.tool.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value, as YAML. An empty value removes the key.")],
) -> None:
    """Set a value in config.yaml; comments stay. An invalid value is rejected."""
    run: CommandContext = context.obj
    _write_value(run, key, _value(run, key.split("."), value))


def unset_value(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key. Use dots for nested keys: timeouts.tool.")],
) -> None:
    """Remove a value from config.yaml; comments stay."""
    run: CommandContext = context.obj
    path = _path(run)
    there: Any = _written(path)
    for name in key.split("."):
        if not isinstance(there, Mapping) or name not in there:
            raise UsageError(f"{key} is not set in {path}, so there is nothing to remove.")
        there = there[name]
    _write_value(run, key, None)


def _write_value(run: CommandContext, key: str, wanted: Any) -> None:
    from ...util.yaml.edit import with_value

    path, keys = _path(run), key.split(".")

    def changed(content: bytes | None) -> bytes:
        if content:
            _check(run, content, path)  # an error that was there before is reported first
        try:
            text = with_value((content or b"").decode(), keys, wanted)
        except ValueError as error:
            raise ConfigError(f"{key} cannot be set: {error}.") from error
        _check(run, text.encode(), path, lambda text: run.warn(f"marvin: {text}"))
        return text.encode()

    _update(run, path, changed)
    run.write(f"{path}: {f'{key} was set.' if wanted is not None else f'{key} was removed.'}\n")


def _value(run: CommandContext, keys: list[str], value: str) -> Any:
    """Convert the value to the type of the key: a string is used as it is, all else is parsed as YAML."""
    if value == "":
        return None
    from ...config.file.model import file_schema
    from ...util.schemas.texts import schema_at

    of_pack = keys[0] == "packs" and len(keys) > 1 and not is_own_of_packs(keys[1])
    schema = schema_of(run, keys) if of_pack else schema_at(file_schema(), keys)
    if schema.get("type") == "string" and value in schema.get("enum", (value,)):
        return value
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from ...util.yaml.checked import UNREADABLE, check_yaml

    try:
        check_yaml(value)
        return YAML().load(value)
    except (YAMLError, *UNREADABLE) as error:
        raise UsageError(f"{value!r} is not valid YAML. Write a list as [a, b].") from error


def _check(run: CommandContext, content: bytes, path: Path, warn: Callable[[str], None] = lambda text: None) -> None:
    """Raise `ConfigError` if Marvin cannot start with this config.yaml. `warn` receives the warnings of a start."""
    from ...app import check_configuration

    settings = record_of(FileSettings, parse_settings(content, path))
    source: Source = "file" if settings.provider else ""
    config = run.config.replace(**fields_of(settings, {}), provider=settings.provider, provider_from=source)
    check_configuration(config, run.secrets, warn, content)


def _update(run: CommandContext, path: Path, change: Any) -> None:
    try:
        update_file(path, change, run.config.timeouts)
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}. It was left unchanged.") from error


def edit_config(context: typer.Context) -> None:
    """Open config.yaml in the editor that EDITOR names. An invalid result is rejected."""
    run: CommandContext = context.obj
    path = _path(run)
    before = path.read_bytes() if path.exists() else None
    draft = path.with_name("config.draft.yaml")
    if draft.exists():  # a version that could not be saved last time
        run.streams.err(f"marvin: opening your version that could not be saved before: {draft}")
    else:
        replace_file(draft, before if before is not None else _TEMPLATE.encode())
    _open_editor(run, draft)
    after = draft.read_bytes()
    if after == (before if before is not None else _TEMPLATE.encode()):
        draft.unlink()
        run.write(f"{path}: nothing changed.\n")
        return

    def changed(content: bytes | None) -> bytes:
        if content != before:
            raise ConfigError(f"{path} was changed by another program in the meantime. Your version is in {draft}.")
        try:
            _check(run, after, path, lambda text: run.warn(f"marvin: {text}"))
        except ConfigError as error:
            raise ConfigError(f"{error}\n{path} was left unchanged. Your version is in {draft}.") from error
        return after

    _update(run, path, changed)
    draft.unlink()
    run.write(f"{path}: saved.\n")


def _open_editor(run: CommandContext, path: Path) -> None:
    import shlex
    import subprocess  # an editor needs the terminal, which Marvin's process runner does not pass on

    try:
        words = shlex.split(run.config.editor)
        status = subprocess.run([*words, str(path)], env=run.secrets.child_environment(), check=False).returncode
    except (OSError, ValueError) as error:
        path.unlink()
        raise ConfigError(f"The editor {run.config.editor!r} cannot be started: {error}. Set EDITOR.") from error
    if status:
        raise ConfigError(f"{run.config.editor} ended with status {status}, so nothing was changed. See {path}.")
