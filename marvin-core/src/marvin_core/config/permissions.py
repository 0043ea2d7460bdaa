"""The permission mode, and the answer to requests for approval in a non-interactive run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from ..api.config import OnAsk, PermissionMode
from ..api.errors import ConfigError, UsageError
from ..util.text import hint_at

if TYPE_CHECKING:
    from argparse import Namespace

_ANSWERS: tuple[OnAsk, ...] = get_args(OnAsk)
_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


def permission_fields(
    flags: Namespace, mode: str | None, on_ask: str | None, setting: PermissionMode | None
) -> dict[str, Any]:
    """The fields of the configuration for permissions.

    Args:
        mode: MARVIN_PERMISSION_MODE.
        on_ask: MARVIN_ON_ASK.
        setting: the mode in config.yaml.

    Raises:
        UsageError, ConfigError: a mode or an answer is invalid; the text has the nearest valid one.
    """
    default, tools = _answers(flags.on_ask, on_ask)
    return {
        "on_ask": default,
        "on_ask_tools": tools,
        "permission_mode": _mode(flags.permission_mode, mode, setting),
        "trust_project": flags.trust_project,
    }


def _mode(flag: str | None, variable: str | None, setting: PermissionMode | None) -> PermissionMode | None:
    if flag is not None:
        if flag not in _MODES:
            raise UsageError(f"--permission-mode {flag}: unknown mode. {_nearest(flag, _MODES)}")
        return flag
    if variable:
        if variable not in _MODES:
            raise ConfigError(f"MARVIN_PERMISSION_MODE is {variable!r}. {_nearest(variable, _MODES)}")
        return variable
    return setting


def _answers(flag: str | None, variable: str | None) -> tuple[OnAsk, Mapping[str, OnAsk]]:
    if flag is not None or not variable:
        return _on_ask(flag if flag is not None else "allow")
    try:
        return _on_ask(variable)
    except UsageError as error:
        raise ConfigError(f"From MARVIN_ON_ASK: {error}") from None


def _on_ask(given: str) -> tuple[OnAsk, Mapping[str, OnAsk]]:
    """The default answer, and the answers for single tools."""
    default: OnAsk = "allow"
    tools: dict[str, OnAsk] = {}
    for part in given.split(","):
        tool, equals, answer = part.strip().rpartition("=")
        if answer not in _ANSWERS or (equals and not tool):
            raise UsageError(f"--on-ask {given}: {answer!r} is not a valid answer. {_nearest(answer, _ANSWERS)}")
        if tool:
            tools[tool] = answer
        else:
            default = answer
    return default, tools


def _nearest(value: str, known: tuple[str, ...]) -> str:
    return hint_at(value, known)
