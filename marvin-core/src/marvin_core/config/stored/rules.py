"""Adding a rule to config.yaml, where a person said that it shall hold from now on."""

from __future__ import annotations

from pathlib import Path

from ...api.config import Config
from ...api.errors import ConfigError
from ...util.state_files import update_file


def store_allow_rule(config: Config, rule: str) -> Path:
    """Add an allow rule to config.yaml, comments kept; returns the file. Blocks.

    Raises:
        ConfigError: where the file cannot be read, changed, or is not as it should be; it is as it was.
    """
    from ...util.yaml.edit import load_mapping, with_value
    from ..settings import parse_settings

    path = config.config_folder / "config.yaml"

    def changed(content: bytes | None) -> bytes | None:
        text = (content or b"").decode()
        permissions = (load_mapping(text) or {}).get("permissions") or {}
        rules = permissions.get("allow") or []
        if rule in rules:
            return None
        rules.append(rule)
        after = with_value(text, ["permissions", "allow"], rules).encode()
        parse_settings(after, path)
        return after

    try:
        update_file(path, changed, config.timeouts)
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}. It is as it was.") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path} is not as it should be: {error}. It is as it was.") from error
    return path
