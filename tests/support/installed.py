"""What is installed from this repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from marvin_core import ToolSpec
from marvin_core.plugins.index import load_index

PACKS = ("marvin-core", "marvin-tools-coding", "marvin-tools-life", "marvin-tools-web")


@cache
def specs() -> tuple[ToolSpec, ...]:
    """The tools of the core and of the packs of this repository."""
    with TemporaryDirectory() as folder:
        return tuple(spec for _, spec in load_index(Path(folder)).tools if spec.source in PACKS)
