"""The shapes of ids, branches and options, by which a request tells what it is about without naming it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

ID = "<id>"
_SHAPES: Mapping[str, re.Pattern[str]] = {
    # Letters with digits, or a long number: ids of tickets, commits, applications.
    ID: re.compile(r"(?=[^\W\d_]*\W?\d|[\da-f]*[a-f])(?=.*\d)[\w~^-]{3,}|\d{4,}"),
    "<ticket>": re.compile(r"(?!(?:covid|gpt|top|vitamin)-)[a-z]{1,6}-(?:\d{1,4}|[a-z]?\d[a-z\d]{1,3})", re.IGNORECASE),
    "<commit>": re.compile(r"(?=.*\d)(?=.*[a-f])[\da-f]{7,40}|HEAD(?:[~^]\d*)*"),
    "<imdb>": re.compile(r"tt\d{7,8}"),
    "<mbid>": re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}", re.IGNORECASE),
    "<branch>": re.compile(r"(?:bugfix|chore|feat|feature|fix|hotfix|release|topic)/[\w./-]+"),
}
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
SHAPES = ("<option>", *_SHAPES)
_TAKEN: Mapping[str, str] = {
    ID: r"(^|_)(id|ref|uid|mbid|on|target)$",
    "<ticket>": r"^(ticket|ticket_id|issue_key|depends_on)$",
    "<commit>": r"^(ref|commit|revision|sha)$",
    "<imdb>": r"^imdb",
    "<mbid>": r"^(mbid|uuid)$",
    "<branch>": r"^(branch|target)$",
    "<option>": r"^(command|args)$",
}
"""The parameters that take values of a shape."""


def shapes(word: str) -> Iterator[str]:
    """The names of the shapes that a token has."""
    return (name for name, pattern in _SHAPES.items() if pattern.fullmatch(word))


def has_option(text: str) -> bool:
    """Whether a text contains an option of a command, as in `ls -l` or `tk list --status=open`."""
    return bool(_OPTION.search(text))


def shapes_of(parameter: str) -> Iterator[str]:
    """The names of the shapes that a parameter takes."""
    return (name for name, pattern in _TAKEN.items() if re.search(pattern, parameter))
