"""The entry point that Marvin loads: the groups of everyday tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import PackSettings, ToolGroup, hookimpl


@hookimpl
def marvin_register_settings() -> PackSettings:
    """Where the exchange rates come from."""
    return PackSettings(model=".settings:LifeSettings", variables={"exchange_rates": "MARVIN_URL_FRANKFURTER"})


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups utilities, profile and timers."""
    return (
        ToolGroup(name="utilities", module=".units", tools=("convert_units",), sets=("surf",)),
        ToolGroup(name="utilities", module=".machine", tools=("system_info",), sets=("surf",)),
        ToolGroup(name="profile", module=".profile", tools=("switch_profile", "update_preferences"), sets=("surf",)),
        ToolGroup(
            name="timers",
            module=".timers",
            tools=("timer_start", "timer_check", "timer_stop"),
            sets=("surf", "lockin"),
        ),
    )
