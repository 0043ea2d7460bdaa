"""What is installed, as data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, TypeVar

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import UISpec
from ..api.tools import ToolSpec

USER = "your configuration"
"""What stands for a distribution where a pack is a file in the configuration folder."""
PROJECT = "this project"
"""The same where it is a file that the working directory brings, and that somebody trusts."""

S = TypeVar("S")
Owned: TypeAlias = tuple[str, S]
"""The key of a pack, and something that it brings."""


class Pack(Record):
    """One entry point of the group `marvin`: where it comes from, and what went wrong with it.

    `module` is a module's name, or the path of a file in the configuration folder.
    """

    name: str
    distribution: str
    version: str
    module: str
    attribute: str = ""
    """What its entry point names behind the module, which is a mistake."""
    folder: str = ""
    """The folder of the package that its module is in, where it may have data; empty for a module of its own."""
    own: bool = False
    """Whether it is one of Marvin's own distributions, whose names nobody else can take."""
    hooks: tuple[str, ...] = ()
    chats_only: bool = False
    """Whether all `Hook` objects that it registers are for chats alone."""
    cli: tuple[str, ...] = ()
    """The sub-commands that it adds."""
    tools: tuple[str, ...] = ()
    """The tools that it had, where it could not be loaded: who asks for one is told so."""
    problems: tuple[str, ...] = ()
    traceback: str = ""
    left_out: bool = False
    """Whether it could not be loaded."""
    guards: bool = False
    """Whether it could not be loaded and registers hooks, or may: then no call runs unasked."""

    @property
    def key(self) -> str:
        """What tells it from all others: one distribution may have several, and two may use one name."""
        return f"{self.distribution}:{self.name}"

    @property
    def is_file(self) -> bool:
        """Whether it is a file of Python, and no module of an installed distribution."""
        return self.distribution in (USER, PROJECT)

    def is_named(self, names: Collection[str]) -> bool:
        """Whether one of the names is that of the pack or of its distribution."""
        return self.name in names or self.distribution in names


DATA_FOLDERS = ("agents", "skills")
"""Folders in a pack's own that are read as data: none of its code runs for them."""


def has_data(pack: Pack) -> bool:
    """Whether a pack brings something that is no code, so that it needs no hook."""
    from os.path import isdir

    return bool(pack.folder) and any(isdir(f"{pack.folder}/{name}") for name in DATA_FOLDERS)


def data_counts(pack: Pack) -> dict[str, int]:
    """How much of such data a pack has, by the name of one."""
    from glob import escape, glob

    found = {}
    for what, pattern in (("agent", "agents/*.md"), ("skill", "skills/*/SKILL.md")):
        if pack.folder and (count := len(glob(f"{escape(pack.folder)}/{pattern}"))):
            found[what] = count
    return found


class DeclaredSettings(Record):
    """What a pack is configured with, as far as that is known without importing it.

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
    """Which packs there are for a run, before any is imported: those that MARVIN_PACKS names, without those `off`."""

    chosen: frozenset[str] | None = None
    off: frozenset[str] = frozenset()

    def has(self, pack: Pack) -> bool:
        """Whether a pack is used."""
        if pack.distribution == CORE:
            return True
        named = self.chosen is None or pack.is_file or pack.is_named(self.chosen)
        return named and not pack.is_named(self.off)


CORE = "marvin-core"
"""The distribution that can be neither left out nor switched off."""
EVERYTHING = Selection()


class Loaded(Record):
    """A pack and what it brings, or the pack with what went wrong."""

    pack: Pack
    tools: tuple[ToolSpec, ...] = ()
    providers: tuple[ProviderSpec, ...] = ()
    uis: tuple[UISpec, ...] = ()
    settings: tuple[DeclaredSettings, ...] = ()
    sources: tuple[str, ...] = ()
    """The files that it was made of, and their folders."""
    read: tuple[str, ...] = ()
    """The variables that it read: all of them where it could not be loaded, else those that its own modules read."""


class Index(Record):
    """What the selected packs bring, in one stable order: built-ins first, then by distribution."""

    packs: tuple[Pack, ...]
    others: tuple[Pack, ...]
    """What is installed and not selected; never imported."""
    tools: tuple[Owned[ToolSpec], ...]
    providers: tuple[Owned[ProviderSpec], ...]
    uis: tuple[Owned[UISpec], ...]
    settings: tuple[Owned[DeclaredSettings], ...] = ()
    secrets: tuple[str, ...] = ()
    """The variables that packs declare as secrets which are left out, switched off or could not be loaded."""
