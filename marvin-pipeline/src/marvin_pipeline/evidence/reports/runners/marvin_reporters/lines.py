"""Shared code of the pytest and unittest reporters. The project's own Python runs it, from 3.8 on."""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType, TracebackType

_LONGEST = 1_000
"""Characters of a text."""
_KINDS = (AssertionError, NotImplementedError, ImportError, SyntaxError, NameError, AttributeError)
"""The base classes as which exceptions are reported."""
_TOLD = ("cause", "missing", "origin", "message")


class Lines:
    """The report: one JSON object a line, written when a test ends, and `end` as the last one."""

    def __init__(self, place: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(place, flags, 0o600)
        self._count = 0

    def test(self, name: str, file: str, outcome: str, told: dict[str, str]) -> None:
        """Report a test."""
        self._count += 1
        known = {key: told.get(key, "") for key in _TOLD}
        self._write({"event": "test", "name": name[:_LONGEST], "file": file, "outcome": outcome, **known})

    def end(self, exit_code: int) -> None:
        """Report that the run is complete."""
        self._write({"event": "end", "exit_code": exit_code, "count": self._count})

    def _write(self, line: dict[str, object]) -> None:
        os.write(self._descriptor, (json.dumps(line) + "\n").encode("ascii"))


def told_of(error: BaseException | None, tb: TracebackType | None = None) -> dict[str, str]:
    """The fields of an exception in a report."""
    error = _first(error)
    if error is None:
        return {}
    told = {"cause": cause_of(error), "missing": _missing(error), "origin": _origin(error, tb)}
    try:
        told["message"] = str(error)[:_LONGEST]
    except Exception:  # the class is the project's, and its `__str__` may fail
        told["message"] = ""
    return told


def cause_of(error: BaseException) -> str:
    """The class of an exception, or its well-known base class."""
    if isinstance(error, ModuleNotFoundError):
        return "ModuleNotFoundError"
    for kind in _KINDS:
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__[:_LONGEST]


def below(path: str) -> str:
    """A path relative to the working directory of the tests; empty for one elsewhere."""
    if not path or path.startswith("<"):
        return ""
    here = os.path.realpath(os.getcwd())
    real = os.path.realpath(path)
    return os.path.relpath(real, here) if real.startswith(here + os.sep) else ""


def _first(error: BaseException | None) -> BaseException | None:
    """The first exception of a group."""
    for _ in range(10):
        members = getattr(error, "exceptions", None)
        if not type(error).__name__.endswith("ExceptionGroup") or not members:
            break
        error = members[0]
    return error


def _missing(error: BaseException) -> str:
    """The module that could not be imported, or that lacks a name."""
    if isinstance(error, ImportError):
        return str(error.name or "")[:_LONGEST]
    owner = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    if owner is None:
        return ""
    if isinstance(owner, ModuleType):
        return str(owner.__name__)[:_LONGEST]
    return str(getattr(owner if isinstance(owner, type) else type(owner), "__module__", ""))[:_LONGEST]


def _origin(error: BaseException, tb: TracebackType | None) -> str:
    """The file that raised it."""
    if isinstance(error, SyntaxError):
        return below(str(error.filename or ""))
    tb = tb or error.__traceback__
    path = ""
    while tb is not None:
        path = tb.tb_frame.f_code.co_filename
        tb = tb.tb_next
    return below(path)


def is_elsewhere(tb: TracebackType | None) -> bool:
    """Whether no code of the folder was running when it was raised, for example because the runner skipped the test."""
    while tb is not None:
        if below(tb.tb_frame.f_code.co_filename):
            return False
        tb = tb.tb_next
    return True


def place_of_report() -> str:
    """The path of the report; empty without one. Child processes of the tests do not get it."""
    return os.environ.pop("MARVIN_REPORT", "")


def file_of_module(name: str) -> str:
    """The file of an imported module, relative to the folder."""
    return below(str(getattr(sys.modules.get(name), "__file__", "") or ""))
