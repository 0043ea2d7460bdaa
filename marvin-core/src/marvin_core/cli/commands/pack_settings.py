"""The settings, secrets and folders of packs, for `marvin config` and `marvin doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.errors import ConfigError, MarvinError
from ...config.settings import pack_sections
from ...plugins.manager import Plugins
from ...util.schemas.texts import schema_at
from ...util.text import hint_at

if TYPE_CHECKING:
    from ...app import App
    from ...plugins.pack_settings import PackSection
    from ..run import CommandContext


def _plugins(run: CommandContext) -> Plugins:
    return Plugins(run.config, lambda text: None)


def _path(run: CommandContext) -> Path:
    return run.config.config_folder / "config.yaml"


def _sections(
    run: CommandContext, plugins: Plugins, sections: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, PackSection, Mapping[str, str]]]:
    """The name, the settings and the declared secrets of each pack that can be configured."""
    from ...plugins.pack_settings import PackSection

    for declared in plugins.settings:
        section = PackSection(declared, sections.get(declared.name, {}), run.secrets, _path(run))
        yield declared.name, section, declared.secrets


def shown_settings(run: CommandContext, settings: Mapping[str, Any]) -> list[str]:
    """A line for each setting of the packs, with the origin of its value. Secrets are shown only as set or not set."""
    plugins = _plugins(run)
    known = {declared.name for declared in plugins.settings}
    lines = [
        f"packs.{name}: {json.dumps(section, ensure_ascii=False)} (no pack in use reads them)"
        for name, section in pack_sections(settings).items()
        if name not in known
    ]
    for name, section, secrets in _sections(run, plugins, pack_sections(settings)):
        run.secrets.declare(secrets)
        for keys, value, origin in section.leaves():
            shown = json.dumps(run.redactor.value(value), ensure_ascii=False)
            lines.append(f"{'.'.join(('packs', name, *keys))}: {shown} (from {origin})")
        for variable, meaning in secrets.items():
            is_set = "set" if run.secrets.has(variable) else "not set"
            lines.append(f"packs.{name}, secret {variable}: {is_set} ({meaning})")
    return lines


def schema_of(run: CommandContext, keys: Sequence[str]) -> Mapping[str, Any]:
    """The schema of `packs.NAME.KEY`.

    Raises:
        ConfigError: no pack has such settings; the text gives the nearest names.
    """
    declared = {one.name: one for one in _plugins(run).settings}
    name = keys[1] if len(keys) > 1 else ""
    if name not in declared:
        raise ConfigError(f"No pack with settings is called {name!r}. {hint_at(name, declared)}")
    return schema_at(declared[name].schema, keys[2:])


def missing(run: CommandContext, app: App) -> Iterator[tuple[str, str]]:
    """The required settings and secrets of packs that are not set: for each, what is missing and how to set it."""
    from ...plugins.pack_settings import NotSet

    for name, section, secrets in _sections(run, app.plugins, run.config.pack_sections):
        try:
            section.checked()
        except NotSet as error:
            yield f"{name} is not configured", str(error)
        except MarvinError as error:
            yield f"{name} cannot be configured", str(error)
        for variable, meaning in secrets.items():
            if not run.secrets.has(variable):
                yield f"{name} has no {variable}", f"If you need it, set the variable to {meaning.rstrip('.')}."


def folders(app: App) -> Iterator[str]:
    """The existing folders of packs."""
    for pack in app.plugins.packs:
        for what, folder in app.packs.of(pack).folders.there().items():
            yield f"{what} of {pack.name}: {folder}"
