"""Parses command lines of the ticket program for the gates: read-only ones, and those that create a ticket."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...api.tools import ToolSpec

_READING = tuple(
    tuple(line.split())
    for line in "show,ls,list,ready,blocked,closed,query,help,dep tree,dep-tree,dep cycle,dep-cycle".split(",")
)
_TAKING_A_VALUE = frozenset(
    "-d --description --design --acceptance -t --type -p --priority -a --assignee --external-ref --tags".split()
)
"""The options of `create` other than --parent that take a value, which may look like an option itself."""
_SHORTEST = len("--pa")
"""The shortest unambiguous abbreviation of --parent."""
_SHORTEST_HELP = len("--h")


def words_of(line: object) -> tuple[str, ...]:
    """The words of a line; none if a shell could not parse it."""
    if not isinstance(line, str):
        return ()
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def only_reads(words: Sequence[str]) -> bool:
    """Whether a line changes no ticket."""
    return any(tuple(words[: len(reading)]) == reading for reading in _READING)


def only_looks(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    """Whether a call of a ticket tool changes no ticket."""
    return (
        bool(spec.ticket_line) and "readonly" in spec.passes and only_reads(words_of(arguments.get(spec.ticket_line)))
    )


def creates(words: Sequence[str]) -> bool:
    """Whether a line creates a ticket; a request for help does not."""
    return (
        bool(words)
        and words[0] == "create"
        and not any(
            option == "-h" or (len(option) >= _SHORTEST_HELP and "--help".startswith(option))
            for option, _ in _options(words)
        )
    )


def parents_of(words: Sequence[str]) -> set[str]:
    """The parents that a line with `create` names; an option without a value names the empty one."""
    return {value for option, value in _options(words) if len(option) >= _SHORTEST and "--parent".startswith(option)}


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options of a `create` line that take no value other than a parent, each with that; none after `--`."""
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            return
        if word in _TAKING_A_VALUE:
            next(rest, "")
            continue
        option, equals, value = word.partition("=")
        is_parent = len(option) >= _SHORTEST and "--parent".startswith(option)
        yield option, value if equals or not is_parent else next(rest, "")
