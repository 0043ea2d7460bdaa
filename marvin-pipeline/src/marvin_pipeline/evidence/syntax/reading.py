"""Parses a test file with the reader of its language."""

from __future__ import annotations

from .files import is_among_tests, language_of
from .model import TestFile, Unreadable
from .python_tests import read_python

_LARGEST = 1_000_000
"""Characters of a file that are parsed."""
_MOST, _UNITS = 2_000, 5_000
"""Assertions of a test, and tests of a file, that are compared: some comparisons are pairwise."""


def read_tests(path: str, source: str) -> TestFile:
    """The tests of a file.

    Raises:
        Unreadable: no reader can parse it; the text says why.
    """
    found = _read(path, source)
    if len(found.units) > _UNITS or any(len(unit.assertions) > _MOST for unit in found.units):
        raise Unreadable(f"it has more than {_UNITS:,} tests, or {_MOST:,} assertions in one of them")
    return found


def _read(path: str, source: str) -> TestFile:
    if len(source) > _LARGEST:
        raise Unreadable(f"it has more than {_LARGEST:,} characters")
    language = language_of(path)
    if language == "python":
        return read_python(source)
    try:
        if language == "go":
            from .go_rust_tests import read_go

            return read_go(source)
        if language == "rust":
            from .go_rust_tests import read_rust

            return read_rust(source, is_test_file="tests/" in path and is_among_tests(path))
        if language:
            from .javascript_tests import read_javascript

            return read_javascript(source, language)
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except ImportError as error:
        raise Unreadable(f"the parser for it is not installed: {error.name}") from error
    raise Unreadable("its language is not supported")
