"""Checking the sections of packs in config.yaml: at the start, before a change of the file, and for `doctor`."""

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
    """The packs of this run, and what they are configured with."""

    @property
    def settings(self) -> tuple[DeclaredSettings, ...]:
        """What the packs in use are configured with."""
        ...

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of all packs that are installed."""
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
    """Check what config.yaml and variables set for packs. `warn` is told of sections that belong to no pack.

    With the `content` of a file that does not hold it yet, only packs count that have a section there.

    What was found right is kept, and not looked at again while nothing has changed: the packs' models take longer to
    import than all else at a start.

    Raises:
        ConfigError: where something is wrong in what was set; the text names the line.
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
    """Check the sections of these packs; returns the names of those whose model could be asked.

    Args:
        limit: the seconds that each model may take.
        warn: is told where one fails by itself, which is no mistake of who set something.
        content: that of config.yaml, where the file does not hold it yet.

    Raises:
        ConfigError: where something is wrong in what was set.
    """
    from .pack_settings import NotSet, PackSection

    right: list[str] = []
    made = [PackSection(one, sections.get(one.name, {}), secrets, path, content) for one in changed]
    for declared, outcome in zip(changed, isolated([partial(_outcome, one) for one in made], limit), strict=True):
        if isinstance(outcome, ConfigError) and not isinstance(outcome, NotSet):
            raise outcome
        if not isinstance(outcome, BaseException) or isinstance(outcome, NotSet):
            right.append(declared.name)
        else:
            reason = with_problem(Pack(name=declared.name, distribution="", version="", module=""), outcome).problems[0]
            warn(f"The settings of the pack {declared.name} of {declared.source} were not checked: {reason}")
    return right


def _outcome(section: PackSection) -> None:
    if section.values:
        section.checked()


def _check_owner(
    name: str, packs: InstalledPacks, path: Path, warn: Callable[[str], None], content: bytes | None
) -> None:
    """Say so where a section can be of no use."""
    if name in {declared.name for declared in packs.settings}:
        return
    in_use = next((pack for pack in packs.packs if pack.name == name), None)
    if name in packs.installed and (in_use is None or in_use.problems):
        return  # left out of this run, or broken, which is told elsewhere
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
    except (OSError, ValueError):  # it is changed at this moment
        return 1


def _given(declared: DeclaredSettings, sections: Mapping[str, Any], secrets: Secrets) -> tuple[Any, Any]:
    by_variable = {name: secrets.setting(name) for name in declared.variables.values() if secrets.setting(name)}
    return sections.get(declared.name, {}), by_variable


def _stamp(declared: DeclaredSettings, given: tuple[Any, Any]) -> list[Any]:
    """What tells a section that was found right from any other one: a change of the model's file counts as well."""
    try:
        changed = os.stat(declared.file).st_mtime_ns if declared.file else 0
    except OSError:
        changed = 0
    return [sys.prefix, declared.model, declared.file, changed, dict(declared.schema), *given]
