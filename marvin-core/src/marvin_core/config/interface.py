"""`ui:` of config.yaml where it says more than the name of an interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.config import ChatPreferences
from ..api.errors import ConfigError


def interface_fields(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Config that `ui:` sets. Raises `ConfigError` for a value that there is not."""
    usual = ChatPreferences()
    chat = ChatPreferences(
        markdown=_switch("markdown", setting, usual.markdown), thinking=_switch("thinking", setting, usual.thinking)
    )
    return {"ui": setting.get("name", ""), "chat": chat}


def _switch(name: str, setting: Mapping[str, Any], usual: bool) -> bool:
    given = setting.get(name)
    if given not in (None, "on", "off"):
        raise ConfigError(f"ui.{name} in config.yaml is {given!r}; it takes on or off.")
    return usual if given is None else bool(given == "on")
