"""What stands below `labels:` in config.yaml: what is asked about after what a session has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from ..api.config import Labels, Sink
from ..api.errors import ConfigError
from ..util.text import hint_at

_SINKS: tuple[Sink, ...] = get_args(Sink)


def labels(settings: Mapping[str, Any]) -> Labels:
    """The rules; without settings those that hold everywhere. Raises `ConfigError` for a kind of tool that is none."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        values[name] = tuple(_sink(name, str(one)) for one in value) if isinstance(value, list) else value
    return Labels(**values)


def _sink(name: str, value: str) -> Sink:
    found = next((sink for sink in _SINKS if sink == value), None)
    if found is None:
        raise ConfigError(f"labels.{name} in config.yaml names {value!r}. {hint_at(value, _SINKS, ', '.join(_SINKS))}")
    return found
