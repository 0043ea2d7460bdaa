"""Maps lines for the ticket program, as models write them, to our arguments."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..adapters import IGNORED

LINE_NAMES = {"args": ("command", "cmd", "line", "arguments", "input", "argv")}
LINE_IGNORED = IGNORED
_PROGRAMS = ("tk", "ticket", "marvin-tk", "super")
"""First words that are removed: names of the program, which models write before the arguments, and `super`, which
bypasses plugins. There are no plugins here."""


def line_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of tk: a list of words becomes a line, and the program's name is removed."""
    line = given.get("args")
    if isinstance(line, list) and all(isinstance(word, str) for word in line):
        line = shlex.join(line)
    if isinstance(line, str):
        line = line.strip()
        first, _, rest = line.partition(" ")
        while first in _PROGRAMS:
            line = rest.strip()
            first, _, rest = line.partition(" ")
        given["args"] = line
    return given
