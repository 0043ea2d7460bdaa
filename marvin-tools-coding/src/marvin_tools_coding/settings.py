"""The configuration of the coding tools."""

from __future__ import annotations

from typing import Annotated, Literal

from marvin_core import Field, Settings


class LspSettings(Settings):
    """The language servers that look at each file that is edited."""

    use: bool = True
    """Whether language servers are started."""
    install: Literal["ask", "auto", "never"] = "ask"
    """What happens if a server is missing that Marvin can install: a chat asks, it is installed, or nothing happens."""
    wait: Annotated[float, Field(gt=0, le=30)] = 3.0
    """The seconds that an edit waits for its diagnostics."""


class CodingSettings(Settings):
    """The section `coding` below `packs:` in config.yaml."""

    lsp: LspSettings = LspSettings()
    """Language servers."""
