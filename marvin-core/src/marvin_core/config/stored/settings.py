"""Writes changes to config.yaml that the user requests in Marvin. Comments are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...api.config import Config
from ...api.errors import ConfigError
from ...util.state_files import update_file


def store_value(config: Config, key: str, value: str) -> None:
    """Set a key of config.yaml. Blocks. Raises the same errors as `store_allow_rule`."""
    store_setting(config, [key], value)


def store_setting(config: Config, keys: Sequence[str], value: Any) -> Path:
    """Set the value at a path of keys in config.yaml, or remove it with None; returns the file. Blocks.

    Raises the same errors as `store_allow_rule`.
    """
    from ...util.yaml.edit import with_value

    return _update(config, lambda text: with_value(text, keys, value))


def store_allow_rule(config: Config, rule: str) -> Path:
    """Add an allow rule to config.yaml; returns the file. Blocks.

    Raises:
        ConfigError: the file is invalid, or cannot be read or changed; it is left unchanged.
    """
    from ...util.yaml.edit import load_mapping, with_value

    def changed(text: str) -> str | None:
        permissions = (load_mapping(text) or {}).get("permissions") or {}
        rules = permissions.get("allow") or []
        if not isinstance(rules, list):
            raise TypeError("permissions.allow is not a list")
        return None if rule in rules else with_value(text, ["permissions", "allow"], [*rules, rule])

    return _update(config, changed)


def _update(config: Config, change: Callable[[str], str | None]) -> Path:
    """Replace the content of the file with the result of `change`; None leaves it unchanged."""
    from ..settings import parse_settings

    path = config.config_folder / "config.yaml"

    def changed(content: bytes | None) -> bytes | None:
        after = change((content or b"").decode())
        if after is None:
            return None
        parse_settings(after.encode(), path)
        return after.encode()

    try:
        update_file(path, changed, config.timeouts)
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}. It was left unchanged.") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path} has an unexpected form: {error}. It was left unchanged.") from error
    return path
