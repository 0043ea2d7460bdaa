"""Changes values in a YAML file that people write; comments, order and everything else stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .checked import UNREADABLE, TooComplex, check_yaml
from .problems import yaml_problem

_LONGEST = 1_000_000
"""Characters of a text. It takes many seconds to load one of this size."""
_COMPARED = 4_000_000
"""Pairs of lines that are compared at most, to find equal ones."""


def load_mapping(text: str) -> Any:
    """The mapping in a YAML text; None if the text contains only comments.

    Raises:
        ValueError: it is not YAML, not a mapping, or nothing that a person writes.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST:,} characters, the maximum for such a file")
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # importing takes longer than the rest of a start

    try:
        check_yaml(text)
        data = _yaml().load(text)
    except MarkedYAMLError as error:
        line, said = yaml_problem(error)
        raise ValueError(f"line {line}: {said}") from error
    except YAMLError as error:
        raise ValueError(str(error)) from error
    except TooComplex:
        raise
    except UNREADABLE as error:
        raise ValueError("a value in it cannot be read. Put it in quotes if it is text") from error
    if data is not None and not isinstance(data, dict):
        raise ValueError("expected keys such as `name: value`")
    return data


def with_value(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with a value at this path of keys, or without it if the value is None.

    Raises:
        ValueError: as of `load_mapping`; also if a key of the path has no mapping.
    """
    data = load_mapping(text)
    root = {} if data is None else data
    inner = root
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{key} is a single value, not a mapping")
    if value is None:
        inner.pop(keys[-1], None)
    else:
        inner[keys[-1]] = value
    return with_mapping(text, root)


def with_mapping(text: str, data: Any) -> str:
    """The text with this mapping, which is a new one or a changed result of `load_mapping`.

    Each comment on a line of its own stays above its line, or above the next line that still exists. A comment after a
    value is removed with the value.
    """
    if not data:
        inside = _inside_scalars(text)
        kept = [line for number, line in enumerate(_lines(text)) if _is_remark(line) and number not in inside]
        return "".join(f"{line}\n" for line in kept)
    written = dump_mapping(data)
    if _loaded(written) != _plain(data):  # comments of an emptied list make the library join lines
        _drop_comments(data)
        written = dump_mapping(data)
    if text.strip() and not any(not _is_remark(line) for line in _lines(text)):
        # Comments belong to the data beside them: a file without data has none to carry them.
        return f"{text.rstrip()}\n\n{written}"
    return _with_comments(text, written)


def dump_mapping(data: Any) -> str:
    """A mapping as YAML.

    Raises:
        ValueError: it contains a value that YAML does not support.
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
    """The new text with the comments and blank lines of the old one, each above its line.

    The library itself loses comments that it attaches to something before them, and misplaces others.
    """
    if _remarks(before) == _remarks(after):
        return after
    old, new = _Lines(before), _Lines(after)
    if len(old.contents) * len(new.contents) <= _COMPARED:
        text = _merged(old, new)
        if _loaded(text) == load_mapping(after):
            return text
    left = Counter(remark.strip() for gap in new.gaps for remark in gap)
    lost: list[str] = []
    for remark in (remark.strip() for gap in old.gaps for remark in gap):
        left[remark] -= 1
        if remark and left[remark] < 0:
            lost.append(remark)
    return after + "".join(f"{remark}\n" for remark in lost)


def _remarks(text: str) -> list[tuple[str, str]]:
    """Each comment with the beginning of the line below it. If these are equal, no comment has moved."""
    found: list[tuple[str, str]] = []
    above: list[str] = []
    for line in map(str.strip, _lines(text)):
        if line.startswith("#"):
            above.append(line)
        elif line:
            found += [(remark, _key(line) or line) for remark in above]
            above.clear()
    return [*found, *((remark, "") for remark in above)]


class _Lines:
    """The lines of a text: `contents`, and `gaps` with the comments and blank lines before each line and at the end."""

    def __init__(self, text: str) -> None:
        self.contents: list[str] = []
        self.gaps: list[list[str]] = [[]]
        self.names: list[str] = []
        inside = _inside_scalars(text)
        for number, line in enumerate(_lines(text)):
            if _is_remark(line) and number not in inside:
                self.gaps[-1].append(line)
            else:
                self.contents.append(line)
                self.gaps.append([])
                self.names.append("" if number in inside else " ".join(line.split()))


def _merged(old: _Lines, new: _Lines) -> str:
    same = _same_lines(old.names, new.names)
    merged: list[str] = []
    done = 0
    for number, line in enumerate(new.contents):
        place = same.get(number)
        if place is not None:
            merged += [remark for gap in old.gaps[done:place] if any(map(str.strip, gap)) for remark in gap]
            before, now = _indent(old.contents[place]), _indent(line)
            merged += [now + gap.lstrip() if gap and _indent(gap) == before else gap for gap in old.gaps[place]]
            done = place + 1
        merged.append(line)
    merged += [remark for gap in old.gaps[done:-1] if any(map(str.strip, gap)) for remark in gap]
    if done < len(old.gaps):
        merged += old.gaps[-1]
    return "".join(f"{line}\n" for line in merged)


def _same_lines(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """The old line of each new line: found by the whole text, and between such lines by the key. Both only increase."""
    same: dict[int, int] = {}
    last = (0, 0)
    for old_start, new_start, size in [*_matches(old, new), (len(old), len(new), 0)]:
        between = [_key(name) for name in old[last[0] : old_start]], [_key(name) for name in new[last[1] : new_start]]
        for old_place, new_place, count in _matches(*between):
            same.update({last[1] + new_place + i: last[0] + old_place + i for i in range(count)})
        same.update({new_start + i: old_start + i for i in range(size)})
        last = (old_start + size, new_start + size)
    return same


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    from difflib import SequenceMatcher

    # Lines without a key match nothing: two lists that have no entry in common.
    named_old = [name or f"\0{number}" for number, name in enumerate(old)]
    named_new = [name or f"\1{number}" for number, name in enumerate(new)]
    for found in SequenceMatcher(None, named_old, named_new, autojunk=False).get_matching_blocks():
        if found.size:
            yield found.a, found.b, found.size


def _key(line: str) -> str:
    """The key at the beginning of a line; empty if it has none."""
    import re

    found = re.match(r"""(?:- )*(?:"[^"]*"|'[^']*'|[^\s"'#:][^:#]*) ?:(?= |$)""", line)
    return found[0] if found else ""


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _drop_comments(data: Any) -> None:
    """Remove the comments that the library attaches to data. Anchors, merges and styles stay."""
    from ruamel.yaml.comments import Comment

    if hasattr(data, Comment.attrib):
        delattr(data, Comment.attrib)
    for inner in data.values() if isinstance(data, dict) else data:
        if isinstance(inner, dict | list):
            _drop_comments(inner)


def _plain(data: Any) -> Any:
    """The data as plain mappings and lists."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _loaded(text: str) -> Any:
    try:
        return load_mapping(text)
    except ValueError:
        return None


def _lines(text: str) -> list[str]:
    """The lines as the YAML library counts them."""
    import re

    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    return lines if lines[-1] else lines[:-1]


def _is_remark(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _inside_scalars(text: str) -> set[int]:
    """The numbers of the continuation lines of multi-line texts: `#` begins no comment there."""
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
    yaml.width = 10_000  # a long line of a person stays one line
    return yaml
