"""The command that starts this Marvin, for hints that the user can copy."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_NAME = "marvin"
_WRAPPER = f"{_NAME}="
"""The prefix of the -X option by which the wrapper of a checkout passes the path that was called."""
_MODULE = ("-m", "marvin_core")


def command_name() -> str:
    """The shell command that runs this Marvin: `marvin` if that is on PATH, else the command that started it."""
    from shutil import which  # hints are rare, so a start does not import this

    return command_of(sys.orig_argv, sys.argv[0], which(_NAME))


def command_of(started: Sequence[str], script: str, found: str | None) -> str:
    """The command of a process.

    Args:
        started: the complete command line of its interpreter.
        script: the file that the interpreter ran.
        found: the path of `marvin` on PATH, if there is one.
    """
    from itertools import pairwise
    from shlex import quote

    pairs = list(pairwise(started))
    program = next((word[len(_WRAPPER) :] for flag, word in pairs if flag == "-X" and word.startswith(_WRAPPER)), "")
    if not program and _MODULE in pairs:
        own = found is not None and _same_folder(found, started[0])
        return _NAME if own else f"{quote(started[0])} {' '.join(_MODULE)}"
    program = program or script
    if os.path.basename(program) != _NAME or (found is not None and _same_file(found, program)):
        return _NAME
    return quote(program)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _same_folder(program: str, interpreter: str) -> bool:
    """Whether a program belongs to the environment of an interpreter, which means that both are in the same folder."""
    from shutil import which

    found = which(interpreter)
    return found is not None and _same_file(os.path.dirname(program), os.path.dirname(os.path.abspath(found)))
