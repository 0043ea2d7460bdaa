"""The entry point that Marvin loads: the groups of web tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import ToolGroup, hookimpl


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups pages and downloads."""
    return (
        ToolGroup(name="pages", module=".feeds", tools=("read_rss",), sets=("surf",)),
        ToolGroup(name="downloads", module=".downloads", tools=("download_file",), sets=("lockin",)),
    )
