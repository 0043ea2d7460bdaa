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


UNREADABLE = (ValueError, RecursionError, LookupError, ArithmeticError, AttributeError, TypeError)
"""What the YAML library raises besides its own errors, such as for `0x_`, `!!bool x` and `"\\UFFFFFFFF"`."""


class TooComplex(ValueError):
    """A YAML text that no person writes; `line` is the line of the construct, from 1 on."""

    def __init__(self, said: str, line: int) -> None:
        super().__init__(said)
        self.line = line


def check_yaml(text: str) -> None:
    """Refuse a YAML text that no person writes. Invalid YAML passes: the loader reports the error.

    Raises:
        TooComplex: it is nested too deeply, or aliases expand it too much.
    """
    if _could_be_deep(text):
        _check_depth(text)
    if found := _ALIAS.search(text):
        _check_aliases(text, text.count("\n", 0, found.start() + 1) + 1)


def _could_be_deep(text: str) -> bool:
    """Whether a complete check is needed; that takes a third of the time for loading."""
    furthest = max((len(found[0]) for found in _BEGINS.finditer(text)), default=0)
    # A sequence may begin below its key without further indentation.
    return text.count("[") + text.count("{") + 2 * (furthest + 1) > _DEPTH


def _check_depth(text: str) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    depth = 0
    try:
        for token in YAML().scan(text):
            name = type(token).__name__
            depth += name.endswith(("SequenceStartToken", "MappingStartToken"))
            depth -= name.endswith(("SequenceEndToken", "MappingEndToken", "BlockEndToken"))
            if depth > _DEPTH:
                break
    except (YAMLError, *UNREADABLE):
        return
    if depth > _DEPTH:
        raise TooComplex(f"it is nested more than {_DEPTH} deep", token.start_mark.line + 1)


def _check_aliases(text: str, first: int) -> None:
    """Check how far aliases expand a text. `first` is the line of the first alias."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        top = YAML().compose(text)
    except (YAMLError, *UNREADABLE):
        return
    if top is not None and _measured(top, {}) - len(text) > _GROWTH:
        raise TooComplex(f"its aliases (`*name`) add more than {_GROWTH:,} characters to it", first)


def _measured(node: Any, sizes: dict[int, int | None]) -> int:
    """The number of characters of a value with every alias expanded. `sizes` has None for those around it."""
    if id(node) in sizes:
        known = sizes[id(node)]
        if known is None:
            raise TooComplex(f"the value of &{node.anchor} contains itself", node.start_mark.line + 1)
        return known
    sizes[id(node)] = None
    own = len(node.value) if isinstance(node.value, str) else 1
    size = own + sum(_measured(each, sizes) for each in _inside(node))
    sizes[id(node)] = size
    return size


def _inside(node: Any) -> Iterator[Any]:
    if isinstance(node.value, str):
        return
    for each in node.value:
        yield from each if isinstance(each, tuple) else (each,)
