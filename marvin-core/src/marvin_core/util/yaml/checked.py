"""Looking at YAML before it is loaded: a short text may be nested so, or stand for so much, that it takes hours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_DEPTH = 100
_GROWTH = 1_000_000
"""Characters that aliases may add to what stands in a text."""
_BEGINS = re.compile(r"^(?: |[-?][ \t]+)+", re.MULTILINE)
"""What stands before the first thing of a line. A block begins further to the right than the one around it."""
_ALIAS = re.compile(r"(?:^|[\s,\[{])\*[^\s*]")


def check_yaml(text: str) -> None:
    """Refuse a YAML text that no person writes. One that is no YAML passes: whoever loads it says what is wrong.

    Raises:
        ValueError: it is nested too deeply, or aliases make too much of it.
    """
    if _could_be_deep(text) and _is_deep(text):
        raise ValueError(f"it is nested more than {_DEPTH} deep")
    if _ALIAS.search(text) and _size(text) - len(text) > _GROWTH:
        raise ValueError(f"its aliases (`*name`) add more than {_GROWTH:,} characters to it")


def _could_be_deep(text: str) -> bool:
    """Whether a closer look is worth its time, which is a third of what loading takes."""
    furthest = max((len(found[0]) for found in _BEGINS.finditer(text)), default=0)
    # A sequence may begin below its key without going further to the right.
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
    """The characters of all values, with each alias written out; without an end where one holds itself."""
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
        sizes[id(node)] = float("inf")  # what is met again before it is measured is inside of itself
        inner = sum(_measured(each, sizes) for each in _inside(node))
        sizes[id(node)] = inner + (len(node.value) if isinstance(node.value, str) else 1)
    return sizes[id(node)]


def _inside(node: Any) -> Iterator[Any]:
    if isinstance(node.value, str):
        return
    for each in node.value:
        yield from each if isinstance(each, tuple) else (each,)
