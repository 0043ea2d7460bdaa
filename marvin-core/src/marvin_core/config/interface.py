"""`ui:` of config.yaml where it says more than the name of an interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.config import ChatPreferences
from ..api.errors import ConfigError
from ..util.text import hint_at

STATUS_PARTS = (
    *ChatPreferences().status,
    "profile",
    "shell",
    "messages",
    "tokens",
)
"""What the status row can show."""
ATTENTION = ("bell", "notify", "title")


def interface_fields(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Config that `ui:` sets. Raises `ConfigError` for a value that there is not."""
    usual = ChatPreferences()
    chat = ChatPreferences(
        markdown=_switch("markdown", setting, usual.markdown),
        thinking=_switch("thinking", setting, usual.thinking),
        status=_several("status", setting, usual.status, STATUS_PARTS),
        keys=_one("keys", setting, usual.keys, ("emacs", "vi")),
        completion=_one("completion", setting, usual.completion, ("typing", "tab")),
        pictures=_switch("pictures", setting, usual.pictures),
        attention=_several("attention", setting, usual.attention, ATTENTION),
    )
    return {"ui": setting.get("name", ""), "chat": chat}


def _switch(name: str, setting: Mapping[str, Any], usual: bool) -> bool:
    given = setting.get(name)
    if given not in (None, "on", "off"):
        raise ConfigError(f"ui.{name} in config.yaml is {given!r}; it takes on or off.")
    return usual if given is None else bool(given == "on")


def _one(name: str, setting: Mapping[str, Any], usual: str, known: Sequence[str]) -> Any:
    given = setting.get(name, usual)
    if given not in known:
        raise ConfigError(f"ui.{name} in config.yaml is {given!r}. {_hint(given, known)}")
    return given


def _several(name: str, setting: Mapping[str, Any], usual: tuple[str, ...], known: Sequence[str]) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(map(str, setting.get(name, usual))))
    for one in given:
        if one not in known:
            raise ConfigError(f"ui.{name} in config.yaml holds {one!r}. {_hint(one, known)}")
    return given


def _hint(given: str, known: Sequence[str]) -> str:
    return hint_at(given, known, f"It takes {', '.join(known)}.")
