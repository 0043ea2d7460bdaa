"""Reads config.yaml. A new or changed file is checked, and errors name their line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from ..api import config, limits, timeouts
from ..api.errors import ConfigError
from ..util.state_files import read_trusted_json, write_cache
from ..version import __version__
from .file import sections
from .file.parsing import parsed_config, place_of, read_config
from .file.sections import PackChoices
from .secret_files import secrets_of_address, secrets_of_server

_MAY_HOLD_KEYS: Mapping[str, Sequence[str]] = {
    "providers": ("headers", "base_url", "auth_url"),
    "mcp_servers": ("env", "headers", "url", "args", "client_secret"),
}
"""Parts of entries that may hold keys. They are not cached, but read from the file at each start."""
_SHORTEST_KEY = 12
"""The minimum length of a service's key, in characters."""
_CHECKS = (
    *(str(module.__file__) for module in (config, limits, timeouts, sections)),
    *(str(Path(sections.__file__).with_name(name)) for name in ("checks.py", "model.py")),
)
"""The files that define config.yaml. If they change, config.yaml is checked again."""


class WrongSetting(ConfigError):
    """The code that uses a value of config.yaml rejects it; `keys` is the path of the value."""

    def __init__(self, text: str, *keys: str | int) -> None:
        super().__init__(text)
        self.keys = keys

    def placed(self, path: Path, content: bytes | None = None) -> ConfigError:
        """The same error with the file and the line. `content` is the new content if the file is not written yet."""
        try:
            line = line_of(path.read_bytes() if content is None else content, self.keys)
        except (OSError, ValueError):  # the file is being changed
            return ConfigError(f"{path}: {self}")
        return ConfigError(f"{path}, line {line}: {self}")


def read_settings(path: Path, cache: Path) -> dict[str, Any]:
    """The checked content of config.yaml, for `record_of`; empty if there is no file.

    The result is cached in `cache` by path, time and size, since the libraries that parse and check it take longer to
    import than all else here.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has an unknown key or an invalid value; the text names the
            file and the lines.
    """
    try:
        status = path.stat()
        stamp = [str(path), status.st_mtime_ns, status.st_size, __version__, *map(_changed, _CHECKS)]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from error
    kept = read_trusted_json(cache)
    if isinstance(kept, dict) and kept.get("stamp") == stamp and isinstance(kept.get("data"), dict):
        return _whole(kept["data"], kept["places"], path) if "places" in kept else dict(kept["data"])
    content = read_config(path)
    data = parse_settings(content, path)
    left_out = {"places": _places(data, content)} if _holds_keys(data) else {}
    write_cache(cache, {"stamp": stamp, "data": _without_keys(data) if left_out else data, **left_out})
    return data


def _changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:  # in an archive, whose version is part of the stamp
        return 0


def _holds_keys(data: Mapping[str, Any]) -> bool:
    if any("headers" in entry for entry in data.get("providers", {}).values()):
        return True
    servers = data.get("mcp_servers", {})
    texts = [text for one in servers.values() for name in ("env", "headers") for text in one.get(name, {}).values()]
    texts += [one["client_secret"] for one in servers.values() if "client_secret" in one]
    texts += [text for name, one in servers.items() for text in secrets_of_server(config.McpServer(name=name, **one))]
    places = (one.get(name, "") for one in data.get("providers", {}).values() for name in ("base_url", "auth_url"))
    texts += [text for place in places for text in secrets_of_address(place)]
    return any(len(text) >= _SHORTEST_KEY and "${" not in text for text in texts)


def _without_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        section: {
            name: {key: value for key, value in entry.items() if key not in left_out}
            for name, entry in data[section].items()
        }
        for section, left_out in _MAY_HOLD_KEYS.items()
        if section in data
    }
    return {**data, **kept}


def _places(data: Mapping[str, Any], content: bytes) -> dict[str, Any] | None:
    """The places in the file of all texts that are not cached, as `START:END`, so that a start need not parse it.

    Returns:
        None if a text is not in the file as it is, such as one with an escape sequence.
    """

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: placed(one) for name, one in value.items()}
        if isinstance(value, list):
            return list(map(placed, value))
        start = content.index(value.encode())
        return f"{start}:{start + len(value.encode())}"

    try:
        texts = {
            section: {
                name: placed({key: entry[key] for key in keys if key in entry}) for name, entry in data[section].items()
            }
            for section, keys in _MAY_HOLD_KEYS.items()
            if section in data
        }
    except (ValueError, AttributeError):
        return None
    return {"texts": texts, "rest": _rest(texts, content)}


def _rest(places: Any, content: bytes) -> int:
    """A checksum of the file without the texts at these places: a checksum of a key would tell something about it."""
    texts: set[bytes] = set()

    def collect(value: Any) -> None:
        if isinstance(value, str):
            texts.add(_at(value, content))
        else:
            for one in value.values() if isinstance(value, dict) else value:
                collect(one)

    collect(places)
    for text in sorted(texts, key=lambda one: (-len(one), one)):  # wherever it occurs: two servers may have one key
        content = content.replace(text, b"")
    return crc32(content)


def _filled(places: Any, content: bytes) -> Any:
    """The same with the texts instead of their places."""
    if isinstance(places, dict):
        return {name: _filled(one, content) for name, one in places.items()}
    if isinstance(places, list):
        return [_filled(one, content) for one in places]
    return _at(places, content).decode()


def _at(place: str, content: bytes) -> bytes:
    """The text at a place. Raises `ValueError` if the file is too short for it."""
    start, _, end = place.partition(":")
    found = content[int(start) : int(end)]
    if len(found) != int(end) - int(start):
        raise ValueError(place)
    return found


def _whole(data: Mapping[str, Any], places: Any, path: Path) -> dict[str, Any]:
    """The cached content, completed with the parts from the file that are not cached."""
    content = read_config(path)
    whole: dict[str, Any] = {}
    try:
        if places and _rest(places["texts"], content) != places["rest"]:
            return parse_settings(content, path)  # another file with the same time and size
        written = _filled(places["texts"], content) if places else written_settings(content, path)
        for section in _MAY_HOLD_KEYS.keys() & data.keys():
            whole[section] = {
                name: {**entry, **_as_checked(section, written[section][name])} for name, entry in data[section].items()
            }
    except (KeyError, AttributeError, TypeError, ValueError):  # such a file, too, or a damaged cache
        return parse_settings(content, path)
    return {**data, **whole}


def _as_checked(section: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an entry that may hold keys, with numbers converted to strings as in the check."""
    here = {key: value for key, value in entry.items() if key in _MAY_HOLD_KEYS[section]}
    for key in here.keys() & {"headers", "env"}:
        here[key] = {name: str(text) for name, text in here[key].items()}
    return {**here, "args": list(map(str, here["args"]))} if "args" in here else here


def parse_settings(content: bytes, path: Path) -> dict[str, Any]:
    """The settings of a config.yaml with this content. `path` is for errors, which are those of `read_settings`."""
    node = parsed_config(content, path)
    data = _plain(node, path)
    if not data:
        return {}
    from pydantic import ValidationError

    from .file.model import file_model, file_schema

    try:
        checked = file_model().model_validate(data)
    except ValidationError as error:
        from .file.problems import Source, told

        found = Source(file_schema(), path, lambda keys: place_of(node, keys), hidden=_may_be_key)
        raise ConfigError(told(error.errors(include_url=False), found)) from None
    return checked.model_dump(mode="json", exclude_unset=True)


def written_settings(content: bytes, path: Path) -> dict[str, Any]:
    """The keys and values as written in a config.yaml. Raises `ConfigError` if it is not YAML."""
    return _plain(parsed_config(content, path), path)


def _plain(node: Any, path: Path) -> dict[str, Any]:
    """The content with JSON types only. A key with an empty string counts as not set."""
    from ..util.plain_data import plain

    try:
        data: dict[str, Any] = plain(node or {})
    except ValueError as error:
        keys = _culprit(node, ())
        place = f"{path}, line {place_of(node, keys).line}: {'.'.join(map(str, keys))}"
        raise ConfigError(f"{place} cannot be used: {error}. Make it simpler.") from error
    return {key: value for key, value in data.items() if value != ""}


def _culprit(node: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The path of the value that cannot be converted: a key, or the section of a pack."""
    from ..util.plain_data import plain

    for key, inner in node.items():
        try:
            plain(inner)
        except ValueError:
            return _culprit(inner, (*keys, key)) if isinstance(inner, dict) and not keys else (*keys, key)
    return keys


def _may_be_key(location: Sequence[str | int]) -> bool:
    """Whether the value at this location may be a key of a service."""
    if location[:1] == ("mcp_servers",):
        return location[2:3] in (("env",), ("headers",), ("client_secret",))
    return location[:1] == ("providers",) and location[2:3] in (("key",), ("headers",))


def pack_sections(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The sections of packs: the content of `packs:` without Marvin's own keys."""
    return {name: section for name, section in settings.get("packs", {}).items() if not is_own_of_packs(name)}


def is_own_of_packs(name: str) -> bool:
    """Whether a key in `packs:` is Marvin's own, so that it cannot be the name of a pack."""
    return name in PackChoices._defaults and name != PackChoices.rest


def line_of(content: bytes, keys: Sequence[str | int]) -> int:
    """The line of the value at this path in a config.yaml, or of the nearest existing value above it."""
    from ruamel.yaml import YAML

    return place_of(YAML().load(content.decode("utf-8")), keys).line
