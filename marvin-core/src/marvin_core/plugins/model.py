"""The data model of installed packs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, TypeVar

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import UISpec
from ..api.tools import ToolSpec

USER = "your configuration"
"""The distribution name of a pack that is a file in the configuration folder."""
PROJECT = "this project"
"""The distribution name of a pack that is a file in a trusted working directory."""

S = TypeVar("S")
Owned: TypeAlias = tuple[str, S]
"""The key of a pack, and an object that it registers."""


class Pack(Record):
    """One entry point of the group `marvin`, with its distribution and its error, if any.

    `module` is a module's name, or the path of a file in the configuration folder.
    """

    name: str
    distribution: str
    version: str
    module: str
    attribute: str = ""
    """The object after the module in the entry point; if not empty, this is an error."""
    folder: str = ""
    """The folder of its module's package, which may have data files; empty for a single module."""
    own: bool = False
    """Whether it is one of Marvin's own distributions, whose names are reserved."""
    hooks: tuple[str, ...] = ()
    chats_only: bool = False
    """Whether all its `Hook` objects are for chats only."""
    cli: tuple[str, ...] = ()
    """The sub-commands that it adds."""
    tools: tuple[str, ...] = ()
    """The tools that it had before it could not be loaded, for error messages."""
    problems: tuple[str, ...] = ()
    traceback: str = ""
    left_out: bool = False
    """Whether it could not be loaded."""
    guards: bool = False
    """Whether it could not be loaded and may register hooks: then every call needs approval."""

    @property
    def key(self) -> str:
        """Its unique key: a distribution may have several packs, and two may have the same name."""
        return f"{self.distribution}:{self.name}"

    @property
    def is_file(self) -> bool:
        """Whether it is a Python file, not a module of an installed distribution."""
        return self.distribution in (USER, PROJECT)

    def is_named(self, names: Collection[str]) -> bool:
        """Whether one of the names is that of the pack or of its distribution."""
        return self.name in names or self.distribution in names


DATA_FOLDERS = ("agents", "skills")
"""Folders of a pack with data files, which are read without running its code."""


def has_data(pack: Pack) -> bool:
    """Whether a pack has data files, so that it needs no hook."""
    from os.path import isdir

    return bool(pack.folder) and any(isdir(f"{pack.folder}/{name}") for name in DATA_FOLDERS)


def data_counts(pack: Pack) -> dict[str, int]:
    """The number of data files of a pack, by kind."""
    from glob import escape, glob

    found = {}
    for what, pattern in (("agent", "agents/*.md"), ("skill", "skills/*/SKILL.md")):
        if pack.folder and (count := len(glob(f"{escape(pack.folder)}/{pattern}"))):
            found[what] = count
    return found


class DeclaredSettings(Record):
    """The declared settings of a pack, known without importing it.

    `name` is that of the pack, `source` its distribution. `schema` is the JSON schema of the model in the normal form,
    and `file` the module that the model is in.
    """

    name: str
    source: str
    schema: Mapping[str, Any]
    variables: Mapping[str, str]
    secrets: Mapping[str, str]
    model: str = ""
    file: str = ""


class Selection(Record):
    """The selection of packs for a run: those in MARVIN_PACKS, without those `off`."""

    chosen: frozenset[str] | None = None
    off: frozenset[str] = frozenset()

    def has(self, pack: Pack) -> bool:
        """Whether a pack is selected."""
        if pack.distribution == CORE:
            return True
        named = self.chosen is None or pack.is_file or pack.is_named(self.chosen)
        return named and not pack.is_named(self.off)


CORE = "marvin-core"
"""The distribution that can be neither deselected nor disabled."""
EVERYTHING = Selection()


class Loaded(Record):
    """A pack and its registered objects, or the pack with its error."""

    pack: Pack
    tools: tuple[ToolSpec, ...] = ()
    providers: tuple[ProviderSpec, ...] = ()
    uis: tuple[UISpec, ...] = ()
    settings: tuple[DeclaredSettings, ...] = ()
    sources: tuple[str, ...] = ()
    """The files that it was loaded from, and their folders."""
    read: tuple[str, ...] = ()
    """The variables that it read: all of them if it could not be loaded, else those read by its own modules."""


class Index(Record):
    """The registered objects of the selected packs, in a stable order: built-ins first, then by distribution."""

    packs: tuple[Pack, ...]
    others: tuple[Pack, ...]
    """The installed packs that are not selected; never imported."""
    tools: tuple[Owned[ToolSpec], ...]
    providers: tuple[Owned[ProviderSpec], ...]
    uis: tuple[Owned[UISpec], ...]
    settings: tuple[Owned[DeclaredSettings], ...] = ()
    secrets: tuple[str, ...] = ()
    """The secrets of packs that are deselected, disabled or could not be loaded."""
