"""Setting one key of config.yaml, where a person chose it in a chat and wants to keep it."""

from __future__ import annotations

from ...api.config import Config
from ...api.errors import ConfigError
from ...util.state_files import update_file


def store_value(config: Config, key: str, value: str) -> None:
    """Set a key of config.yaml, comments kept. Blocks.

    Raises:
        ConfigError: where the file cannot be read, changed, or is not as it should be; it is as it was.
    """
    from ...util.yaml.edit import with_value
    from ..settings import parse_settings

    path = config.config_folder / "config.yaml"

    def changed(content: bytes | None) -> bytes:
        after = with_value((content or b"").decode(), [key], value).encode()
        parse_settings(after, path)
        return after

    try:
        update_file(path, changed, config.timeouts)
    except OSError as error:
        raise ConfigError(f"{path} cannot be changed: {error.strerror}. It is as it was.") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not as it should be: {error}. It is as it was.") from error
