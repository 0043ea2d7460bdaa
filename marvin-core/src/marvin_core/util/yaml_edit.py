"""Changing a value in a YAML file that people write: comments, order and everything else stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def load_mapping(text: str) -> Any:
    """The mapping that a YAML text holds; None where it holds nothing but comments.

    Raises:
        ValueError: where it is not YAML, or no mapping.
    """
    from ruamel.yaml.error import YAMLError  # the library takes longer to import than all else at the start

    try:
        data = _yaml().load(text)
    except (YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if data is not None and not isinstance(data, dict):
        raise ValueError("expected keys such as `name: value`")
    return data


def with_value(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with a value at this path of keys, or without one where the value is None.

    Raises:
        ValueError: as `load_mapping`, and where a key on the way holds no mapping.
    """
    from io import StringIO

    data = load_mapping(text)
    root = {} if data is None else data
    inner = root
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{key} holds a value and no keys")
    if value is None:
        inner.pop(keys[-1], None)
    else:
        inner[keys[-1]] = value
    if not root:
        return "".join(line for line in text.splitlines(True) if not line.strip() or line.lstrip().startswith("#"))
    stream = StringIO()
    _yaml().dump(root, stream)
    # Comments belong to the data that they stand beside: a file of nothing else has none to carry them.
    above = f"{text.rstrip()}\n\n" if data is None and text.strip() else ""
    return f"{above}{stream.getvalue()}"


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000  # a long line that somebody wrote stays one
    return yaml
