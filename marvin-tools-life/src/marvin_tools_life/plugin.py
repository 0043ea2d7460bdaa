"""The entry point that Marvin loads: the groups of everyday tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import ToolGroup, hookimpl


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups utilities, profile and timers."""
    return (
        _group("utilities", "units", "convert_units"),
        _group("utilities", "machine", "system_info"),
        _group("profile", "profile", "switch_profile", "update_preferences"),
        _group("timers", "timers", "timer_start", "timer_check", "timer_stop"),
    )


def _group(name: str, module: str, *tools: str) -> ToolGroup:
    return ToolGroup(name=name, module=f"{__package__}.{module}", tools=tools, phrases="phrases.toml")
