"""Validates the sections of packs in config.yaml: at the start, before a change of the file, and for `doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..api.config import Config
from ..api.errors import ConfigError
from ..config.program import command_name
from ..config.secrets import Secrets
from ..util.state_files import read_trusted_json, write_cache
from ..util.text import did_you_mean, near_names
from .isolation import isolated, with_problem
from .model import DeclaredSettings, Pack

if TYPE_CHECKING:
    from .pack_settings import PackSection


class InstalledPacks(Protocol):
    """The packs of this run, and their declared settings."""

    @property
    def settings(self) -> tuple[DeclaredSettings, ...]:
        """The declared settings of the packs in use."""
        ...

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of all installed packs."""
        ...

    @property
    def packs(self) -> tuple[Pack, ...]:
        """The packs in use."""
        ...


def check_settings(
    packs: InstalledPacks,
    config: Config,
    secrets: Secrets,
    warn: Callable[[str], None],
    content: bytes | None = None,
) -> None:
    """Validate the values for packs in config.yaml and variables. `warn` is called for sections without a pack.

    With `content`, the planned content of the file, only packs with a section there are checked.

    The result of a successful check is cached until something changes: importing the models takes longer than
    everything else at a start.

    Raises:
        ConfigError: a value is wrong; the text names the line.
    """
    path, sections = config.config_folder / "config.yaml", config.pack_sections
    for name in sections:
        _check_owner(name, packs, path, warn, content)
    cache = config.cache_folder / "pack-settings.json"
    kept = read_trusted_json(cache)
    known = kept if isinstance(kept, dict) else {}
    given = {declared.name: _given(declared, sections, secrets) for declared in packs.settings}
    meant = [one for one in packs.settings if content is None or one.name in sections]
    stamps = {one.name: _stamp(one, given[one.name]) for one in meant if any(given[one.name])}
    changed = [one for one in packs.settings if one.name in stamps and known.get(one.name) != stamps[one.name]]
    if changed:
        right = _check_sections(changed, sections, secrets, path, config.timeouts.pack, warn, content)
        write_cache(cache, {**known, **{name: stamps[name] for name in right}})


def _check_sections(
    changed: Sequence[DeclaredSettings],
    sections: Mapping[str, Mapping[str, Any]],
    secrets: Secrets,
    path: Path,
    limit: float,
    warn: Callable[[str], None],
    content: bytes | None,
) -> list[str]:
    """Validate the sections of these packs; returns the names of those whose model could be used.

    Args:
        limit: the seconds that each model may take.
        warn: called if a model itself fails, which is not an error of the user.
        content: the planned content of config.yaml, if it differs from the file.

    Raises:
        ConfigError: a value is wrong.
    """
    from .pack_settings import NotSet, PackSection

    right: list[str] = []
    wrong: list[str] = []
    changed = sorted(changed, key=lambda one: [*sections, one.name].index(one.name))  # errors in the order of the file
    made = [PackSection(one, sections.get(one.name, {}), secrets, path, content) for one in changed]
    for declared, outcome in zip(changed, isolated([partial(_outcome, one) for one in made], limit), strict=True):
        if isinstance(outcome, ConfigError) and not isinstance(outcome, NotSet):
            wrong.append(str(outcome))
        elif not isinstance(outcome, BaseException) or isinstance(outcome, NotSet):
            right.append(declared.name)
        else:
            reason = with_problem(Pack(name=declared.name, distribution="", version="", module=""), outcome).problems[0]
            warn(f"The settings of the pack {declared.name} of {declared.source} were not checked: {reason}")
    if wrong:
        raise ConfigError("\n".join(wrong))
    return right


def _outcome(section: PackSection) -> None:
    if section.values:
        section.checked()


def _check_owner(
    name: str, packs: InstalledPacks, path: Path, warn: Callable[[str], None], content: bytes | None
) -> None:
    """Warn about a section without effect."""
    if name in {declared.name for declared in packs.settings}:
        return
    in_use = next((pack for pack in packs.packs if pack.name == name), None)
    if name in packs.installed and (in_use is None or in_use.problems):
        return  # not in use, or broken, which is reported elsewhere
    if in_use is not None:
        said = f"The pack {name} has no settings. Remove the section: `{command_name()} config edit`."
    else:
        hint = did_you_mean(near_names(name, packs.installed))
        said = f"No pack is called {name!r}. {hint or f'See `{command_name()} packs list`.'}"
    warn(f"{path}, line {_line(path, name, content)}: {said}")


def _line(path: Path, name: str, content: bytes | None) -> int:
    from ..config.settings import line_of

    try:
        return line_of(path.read_bytes() if content is None else content, ("packs", name))
    except (OSError, ValueError):  # the file is being changed
        return 1


def _given(declared: DeclaredSettings, sections: Mapping[str, Any], secrets: Secrets) -> tuple[Any, Any]:
    by_variable = {name: secrets.setting(name) for name in declared.variables.values() if secrets.setting(name)}
    return sections.get(declared.name, {}), by_variable


def _stamp(declared: DeclaredSettings, given: tuple[Any, Any]) -> list[Any]:
    """The cache key of a valid section; it changes with the file of the model as well."""
    try:
        changed = os.stat(declared.file).st_mtime_ns if declared.file else 0
    except OSError:
        changed = 0
    return [sys.prefix, declared.model, declared.file, changed, dict(declared.schema), *given]
