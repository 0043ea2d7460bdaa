"""Shell variables: those whose values run as programs, and the commands that set variables by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...util.patterns.texts import is_known
from .outputs import has_letter, operands

_COMMANDS = re.compile(
    r"\w*_COMMAND|\w*EDITOR|\w*PAGER|\w*_ASKPASS|GIT_SSH|GIT_EXTERNAL_DIFF|LESSOPEN|LESSCLOSE|RSYNC_RSH|BROWSER|VISUAL"
)
_FILES = ("BASH_ENV", "ENV")
_OPTIONS = {"TAR_OPTIONS": re.compile(r"exec|command|script|compress-program|-I|-F"), "ZIPOPT": re.compile(r"T")}
"""Variables with options of a program, and the prefixes of options by which it runs another program."""
_LOCAL = frozenset("declare typeset local export readonly".split())
_READERS = frozenset("read mapfile readarray".split())
_NAME = re.compile(r"(?<![\w#])[A-Za-z_]\w*")
_CODE_PIECE = re.compile(r"`|\$(?!\w)|\[[^]]*\$")


def is_command(name: str) -> bool:
    """Whether programs run the value of a variable as a command line."""
    return _COMMANDS.fullmatch(name) is not None


def is_file(name: str) -> bool:
    """Whether shells run the file that a variable names."""
    return name in _FILES


def has_program(name: str, value: str) -> bool:
    """Whether a variable with options of a program contains one by which it runs another program."""
    return name in _OPTIONS and (not is_known(value) or _OPTIONS[name].search(value) is not None)


def may_run(name: str) -> bool:
    """Whether the value of a variable of this name may be run."""
    return is_command(name) or is_file(name) or name in _OPTIONS or name.startswith(("BASH_FUNC_", "GIT_CONFIG_"))


def declared(base: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The names and values in the arguments of `export` and similar builtins."""
    if base in _LOCAL:
        for text in texts[1:]:
            name, equals, value = text.partition("=")
            if equals and not name.startswith("-"):
                yield name.rstrip("+"), value


def set_by_name(base: str, texts: Sequence[str]) -> Iterator[str]:
    """The variables that a builtin sets to values that its arguments do not show."""
    if base in _READERS:
        yield from operands(texts)
    elif base == "printf" and texts[1:2] and texts[1].startswith("-v"):
        yield texts[1][2:] or "".join(texts[2:3])
    elif base == "getopts":
        yield from texts[2:3]
    elif base in _LOCAL and has_letter(texts, "n"):
        yield from (value for _, value in declared(base, texts))


class Numbers:
    """Words that a script uses in arithmetic, and the texts that may have produced them.

    A shell runs code in the brackets of a number, as in `a[$(CODE)]`. Complete code is analysed where it appears; this
    class covers texts that become code only when they are joined or cut.
    """

    def __init__(self) -> None:
        self._computes = self._has_pieces = False

    def may_be_code(self, kept: Sequence[str], computed: Sequence[str]) -> bool:
        """Whether code may run, given these additional stored texts and uses in arithmetic."""
        self._has_pieces = self._has_pieces or any(map(_may_hold_code, kept))
        self._computes = self._computes or any(not is_known(text) or _NAME.search(text) for text in computed)
        return self._computes and self._has_pieces


def _may_hold_code(text: str) -> bool:
    """Whether a text contains the beginning of code; the end of a regular expression does not count."""
    return _CODE_PIECE.search(text.removesuffix("$") if text.startswith("^") else text) is not None
