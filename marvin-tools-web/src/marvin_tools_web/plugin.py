"""The entry point that Marvin loads: the groups of web tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import ToolGroup, hookimpl


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups pages and downloads."""
    return (
        _group("pages", "feeds", "read_rss"),
        _group("downloads", "downloads", "download_file"),
    )


def _group(name: str, module: str, *tools: str) -> ToolGroup:
    return ToolGroup(name=name, module=f"{__package__}.{module}", tools=tools, phrases="phrases.toml")
