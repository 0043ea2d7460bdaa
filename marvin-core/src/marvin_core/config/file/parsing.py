"""Parses config.yaml, and finds the lines and the written values of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...api.errors import ConfigError

LARGEST = 1_000_000
"""The maximum size of a config.yaml in bytes. It takes many seconds to parse one of this size."""


def read_config(path: Path) -> bytes:
    """The content of a config.yaml; of a file that is too large, just enough for `parsed_config` to refuse it.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from error


def parsed_config(content: bytes, path: Path) -> Any:
    """The mapping in the file as the YAML library returns it; None for an empty file.

    Raises:
        ConfigError: the file is too large or not YAML; the text names the line.
    """
    if len(content) > LARGEST:
        raise ConfigError(f"{path} has more than {LARGEST:,} bytes, the maximum for this file. Make it shorter.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from error
    data = _loaded(text, path)
    if data is not None and not isinstance(data, dict):
        found = "a list" if isinstance(data, list) else "a value without a key"
        raise ConfigError(
            f"{path}, line 1: expected keys such as `provider: groq`, with a blank after the colon; found {found}."
        )
    return data


def _loaded(text: str, path: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    from ...util.yaml.checked import UNREADABLE, TooComplex, check_yaml
    from ...util.yaml.problems import tagged_value, unreadable_value, yaml_problem

    try:
        check_yaml(text)
        data = YAML().load(text)
        tagged = tagged_value(text)
    except TooComplex as error:
        raise ConfigError(f"{path}, line {error.line}: {error}. Make it simpler.") from error
    except MarkedYAMLError as error:
        line, said = yaml_problem(error)
        raise ConfigError(f"{path}, line {line}: {said}.") from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        said = f"the character U+{error.character:04X} is not allowed. Remove it"
        raise ConfigError(f"{path}, line {line}: {said}.") from error
    except (YAMLError, *UNREADABLE) as error:
        if wrong := unreadable_value(text):
            raise ConfigError(f"{path}, line {wrong[0]}: {wrong[1]}.") from error
        raise ConfigError(
            f"{path} has a value that cannot be read. Correct it, or move the file away to start from defaults."
        ) from error
    if tagged is not None:
        raise ConfigError(f"{path}, line {tagged[0]}: {tagged[1]}.")
    return data


class Place(NamedTuple):
    """Where a value is written, and the value as the YAML library returns it."""

    line: int
    value: Any


def place_of(node: Any, keys: Sequence[str | int]) -> Place:
    """The place of the value at this path, or of the nearest existing value above it."""
    line = 1
    for key in keys:
        found = next(_places(node, key), None)
        if found is None:
            break
        line, node = found
    return Place(line, node)


def _places(node: Any, key: str | int) -> Iterator[Place]:
    """The places of a key: keys may be written as numbers, and come from a merged mapping (`<<`)."""
    places: Mapping[Any, Sequence[int]] = getattr(getattr(node, "lc", None), "data", None) or {}
    for one in _same(places, key):
        yield Place(places[one][0] + 1, node[one])
    for merged in getattr(node, "merge", ()):
        # Before 0.18.7 the library returns pairs of a position and a mapping.
        yield from _places(merged[1] if isinstance(merged, tuple) else merged, key)


def _same(places: Mapping[Any, Any], key: str | int) -> Sequence[Any]:
    """The keys of a mapping that are this one, or are written as a number that reads so."""
    if key in places or not isinstance(key, str):
        return (key,) if key in places else ()
    for kind in (int, float):
        with suppress(ValueError, OverflowError):
            if (number := kind(key)) in places:
                return (number,)
    return [one for one in places if str(one) == key]
