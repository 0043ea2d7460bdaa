"""What is installed, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.tools import ToolSpec
from ..api.ui import UISpec

USER = "your configuration"
"""What stands for a distribution where a pack is a file in the configuration folder."""


class Pack(Record):
    """One entry point of the group `marvin`: where it comes from, and what went wrong with it.

    `module` is a module's name, or the path of a file in the configuration folder.
    """

    name: str
    distribution: str
    version: str
    module: str
    hooks: tuple[str, ...] = ()
    cli: tuple[str, ...] = ()
    """The sub-commands that it adds."""
    problems: tuple[str, ...] = ()
    traceback: str = ""

    @property
    def key(self) -> str:
        """What tells it from all others: one distribution may have several, and two may use one name."""
        return f"{self.distribution}:{self.name}"


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


class Index(Record):
    """What is installed, in one stable order: built-ins first, then by distribution."""

    packs: tuple[Pack, ...]
    tools: tuple[ToolSpec, ...]
    providers: tuple[ProviderSpec, ...]
    uis: tuple[UISpec, ...]
    owners: Mapping[str, str]
    """The key of the pack of each `tool:NAME`, `provider:NAME`, `ui:NAME`, `settings:NAME` and `cli:NAME`."""
    settings: tuple[DeclaredSettings, ...] = ()
    sources: tuple[str, ...] = ()
    """The source files that the index depends on."""
