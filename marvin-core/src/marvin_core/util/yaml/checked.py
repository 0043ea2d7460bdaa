"""Checks YAML before it is loaded: a short text may take hours because of nesting or aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_DEPTH = 100
_GROWTH = 1_000_000
"""Characters that aliases may add to a text."""
_BEGINS = re.compile(r"^(?: |[-?][ \t]+)+", re.MULTILINE)
"""The part of a line before its first content. A block begins further to the right than the block around it."""
_ALIAS = re.compile(r"(?:^|[\s,\[{])\*[^\s*]")


def check_yaml(text: str) -> None:
    """Refuse a YAML text that no person writes. Invalid YAML passes: the loader reports the error.

    Raises:
        ValueError: it is nested too deeply, or aliases expand it too much.
    """
    if _could_be_deep(text) and _is_deep(text):
        raise ValueError(f"it is nested more than {_DEPTH} deep")
    if _ALIAS.search(text) and _size(text) - len(text) > _GROWTH:
        raise ValueError(f"its aliases (`*name`) add more than {_GROWTH:,} characters to it")


def _could_be_deep(text: str) -> bool:
    """Whether a complete check is needed; that takes a third of the time for loading."""
    furthest = max((len(found[0]) for found in _BEGINS.finditer(text)), default=0)
    # A sequence may begin below its key without further indentation.
    return text.count("[") + text.count("{") + 2 * (furthest + 1) > _DEPTH


def _is_deep(text: str) -> bool:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    depth = 0
    try:
        for token in YAML().scan(text):
            name = type(token).__name__
            depth += name.endswith(("SequenceStartToken", "MappingStartToken"))
            depth -= name.endswith(("SequenceEndToken", "MappingEndToken", "BlockEndToken"))
            if depth > _DEPTH:
                return True
    except (YAMLError, ValueError):
        pass
    return False


def _size(text: str) -> float:
    """The number of characters of all values with every alias expanded; infinite if one contains itself."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        top = YAML().compose(text)
    except (YAMLError, ValueError, RecursionError):
        return 0
    sizes: dict[int, float] = {}
    return _measured(top, sizes) if top is not None else 0


def _measured(node: Any, sizes: dict[int, float]) -> float:
    if id(node) not in sizes:
        sizes[id(node)] = float("inf")  # what is met again before it is measured contains itself
        inner = sum(_measured(each, sizes) for each in _inside(node))
        sizes[id(node)] = inner + (len(node.value) if isinstance(node.value, str) else 1)
    return sizes[id(node)]


def _inside(node: Any) -> Iterator[Any]:
    if isinstance(node.value, str):
        return
    for each in node.value:
        yield from each if isinstance(each, tuple) else (each,)
