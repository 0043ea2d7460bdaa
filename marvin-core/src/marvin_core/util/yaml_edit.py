"""Changing values in a YAML file that people write: comments, order and everything else stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
    return with_mapping(text, root)


def with_mapping(text: str, data: Any) -> str:
    """The text with this mapping, which is what `load_mapping` gave with changes made to it, or a new one.

    Each comment on a line of its own stays, above the line that it stood above, or the next one that is still there. A
    comment behind a value goes with the value.
    """
    if not data:
        inside = _inside_scalars(text)
        kept = [line for number, line in enumerate(_lines(text)) if _is_remark(line) and number not in inside]
        return "".join(f"{line}\n" for line in kept)
    written = dump_mapping(data)
    if text.strip() and not any(not _is_remark(line) for line in _lines(text)):
        # Comments belong to the data that they stand beside: a file of nothing else has none to carry them.
        return f"{text.rstrip()}\n\n{written}"
    return _with_comments(text, written)


def dump_mapping(data: Any) -> str:
    """A mapping as YAML.

    Raises:
        ValueError: where it holds something that YAML cannot.
    """
    from io import StringIO

    from ruamel.yaml.error import YAMLError

    stream = StringIO()
    try:
        _yaml().dump(data, stream)
    except YAMLError as error:
        raise ValueError(str(error)) from error
    return stream.getvalue()


def _with_comments(before: str, after: str) -> str:
    """The new text, with those comments of the old one that went with what was taken out."""
    old, new = _lines(before), _lines(after)
    comments, contents = _parted(before)
    left = Counter(new[number].strip() for number in _parted(after)[0])
    lost: list[int] = []
    for number in comments:
        left[old[number].strip()] -= 1
        if left[old[number].strip()] < 0:
            lost.append(number)
    if not lost:
        return after
    places = {new[number].strip(): number for number in reversed(_parted(after)[1])}
    inserted: dict[int, list[str]] = {}
    for number in lost:
        following = (places.get(old[content].strip()) for content in contents if content > number)
        place = next((found for found in following if found is not None), len(new))
        indent = "" if place == len(new) else new[place][: len(new[place]) - len(new[place].lstrip())]
        inserted.setdefault(place, []).append(f"{indent}{old[number].strip()}")
    lines = [line for number in range(len(new) + 1) for line in (*inserted.get(number, ()), *new[number : number + 1])]
    text = "".join(f"{line}\n" for line in lines)
    if load_mapping(text) == load_mapping(after):
        return text
    # A line of the new text looks like one of the old and means something else.
    return after + "".join(f"{old[number].strip()}\n" for number in lost)


def _parted(text: str) -> tuple[list[int], list[int]]:
    """The numbers of the lines that are comments, and of those with content; blank ones are neither."""
    inside = _inside_scalars(text)
    comments: list[int] = []
    contents: list[int] = []
    for number, line in enumerate(_lines(text)):
        if line.strip() and number not in inside:
            (comments if line.lstrip().startswith("#") else contents).append(number)
    return comments, contents


def _lines(text: str) -> list[str]:
    """The lines as the YAML library counts them."""
    import re

    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    return lines if lines[-1] else lines[:-1]


def _is_remark(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _inside_scalars(text: str) -> set[int]:
    """The numbers of the lines that texts over several lines go on in: `#` begins no comment there."""
    lines = _lines(text)
    found: set[int] = set()
    for node in _scalars(_yaml().compose(text)):
        first, last = node.start_mark.line + 1, node.end_mark.line
        if node.style in ("|", ">"):
            indents = [len(line) - len(line.lstrip()) if line.strip() else None for line in lines[first:]]
            least = next((indent for indent in indents if indent is not None), 0)
            size = next((i for i, indent in enumerate(indents) if indent is not None and indent < least), len(indents))
            last = first + size - 1
        found.update(range(first, last + 1))
    return found


def _scalars(top: Any) -> Iterator[Any]:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    waiting, seen = [top], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            yield node
        elif isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            waiting += [part for pair in node.value for part in pair]


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000  # a long line that somebody wrote stays one
    return yaml
