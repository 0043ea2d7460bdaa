"""Says in plain words where a text is not YAML, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .checked import UNREADABLE

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

_INSIDE_BRACKETS = ("while parsing a flow sequence", "while parsing a flow mapping")
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "map", "seq", "timestamp", "merge")
)
_KINDS = {"timestamp": "date", "int": "number", "float": "number", "bool": "yes or no"}


def yaml_problem(error: MarkedYAMLError) -> tuple[int, str]:
    """The line, from 1 on, and a sentence about it without the final full stop.

    A construct that is not closed is detected far below it: the line is the one where it begins.
    """
    problem = str(error.problem or "")
    begins = error.context_mark or error.problem_mark
    if error.context in _INSIDE_BRACKETS and problem.startswith("expected ','"):
        return _line(begins), "the bracket that begins here is not closed, or a comma is missing"
    if "unexpected end of stream" in problem:
        return _line(begins), "the quote that begins here is not closed"
    if "could not find expected ':'" in problem:
        return _line(begins), "the colon after the key is missing"
    return _line(error.problem_mark or begins), _sentence(problem)


def _line(mark: Any) -> int:
    return 1 if mark is None else int(mark.line) + 1


def _sentence(problem: str) -> str:
    if found := re.match(r"found character '(.+)' that cannot start any token", problem):
        if found[1] == "\\t":
            return "a tab is not allowed here. Use spaces"
        return f"a value cannot begin with {found[1]}. Put it in quotes"
    if found := re.match(r'found duplicate key "(.*?)" with', problem):  # the values may be secrets
        return f"the key {found[1]!r} is there twice. Remove one of the two"
    if problem.startswith("found undefined alias"):
        return "text that begins with * refers to an anchor, and there is none of that name. Put it in quotes"
    if problem.startswith("mapping values are not allowed"):
        return "a colon is not allowed here. Check the indentation, and put text that contains a colon in quotes"
    if problem.startswith("but found another document"):
        return "a second document begins here. Keep only one"
    if "escape" in problem:
        return "a backslash in double quotes begins an escape sequence, and this is none. Use single quotes"
    if problem.startswith("expected <block end>"):
        return "this does not fit the lines above. Check the indentation and the quotes"
    return f"{problem or 'not YAML'}. Correct that line"


def tagged_value(text: str) -> tuple[int, str] | None:
    """The line of the first value with a tag that JSON data cannot have, such as `!!set`, and a sentence about it.

    Raises:
        YAMLError: the text is not YAML.
    """
    from ruamel.yaml import YAML

    if "!" not in text:
        return None
    for node in _nodes(YAML().compose(text)):
        tag = str(node.tag)
        if tag not in _PLAIN_TAGS:
            known = re.fullmatch(r"tag:yaml\.org,2002:(\w{1,20})", tag)  # another one may be a secret
            said = f"the tag !!{known[1]} is not supported" if known else "text that begins with ! is taken for a tag"
            return _line(node.start_mark), f"{said}. {'Remove it' if known else 'Put it in quotes'}"
    return None


def unreadable_value(text: str) -> tuple[int, str] | None:
    """The line of the first value that looks like a date or a number and is none, and a sentence about it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    try:
        for node in _nodes(yaml.compose(text)):
            kind = _KINDS.get(str(node.tag).rpartition(":")[2])
            if kind is not None:
                try:
                    yaml.constructor.construct_object(node, deep=True)
                except UNREADABLE:
                    return _line(node.start_mark), f"this is not a valid {kind}. Put it in quotes if it is text"
    except (YAMLError, *UNREADABLE):
        pass
    return None


def _nodes(top: Any) -> Iterator[Any]:
    """All nodes below a node in the order of the text, each once."""
    waiting, seen = [top] if top is not None else [], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        yield node
        if not isinstance(node.value, str):
            inner = [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
            waiting += reversed(inner)
