"""The contents of a test file in any language: tests, helpers, assertions, and mocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from marvin_core import Record

AssertionKind: TypeAlias = Literal[
    "exact",
    "equal",
    "raises",
    "helper",
    "close",
    "contains",
    "matches",
    "one of",
    "bound",
    "type",
    "differs",
    "truthy",
    "falsy",
    "either",
    "nothing",
]
"""How an assertion checks its subject. helper: an asserting function of the project or a library. either: one of
several is enough. nothing: it is always true, whatever the program does."""
STRENGTH: Mapping[AssertionKind, int] = {
    "exact": 6,
    "equal": 5,
    "raises": 5,
    "helper": 5,
    "close": 4,
    "contains": 3,
    "matches": 3,
    "one of": 3,
    "bound": 3,
    "type": 2,
    "differs": 2,
    "falsy": 2,
    "truthy": 1,
    "either": 1,
    "nothing": 0,
}
"""The strength of each kind: the higher, the less it allows."""


class Unreadable(Exception):
    """A file cannot be parsed as its language; the text says why."""


class Mark(Record):
    """A piece of source with its line."""

    text: str
    line: int
    guards: tuple[str, ...] = ()
    """The conditions under which it runs, from the outermost on, such as `if False`."""


class Assertion(Record):
    """One assertion. All texts are normalized, without layout."""

    kind: AssertionKind
    subject: str
    """The expression that is checked."""
    expected: str
    """The expected value; the class for an expected exception."""
    text: str
    """The whole assertion."""
    line: int
    guards: tuple[str, ...] = ()
    """As of `Mark`."""
    detail: str = ""
    """Further conditions: the message that an exception must have, or how a tolerance is given."""
    tolerance: float | None = None
    """The allowed difference; None if that is not given as a number."""


class Unit(Record):
    """A test, or a function next to the tests."""

    name: str
    """With its classes and groups, such as `TestAdd::test_adds` or `add > adds`."""
    line: int
    is_test: bool
    body: str
    """Its normalized source without its name, the same for equal functions."""
    assertions: tuple[Assertion, ...] = ()
    statements: tuple[Mark, ...] = ()
    """Its other statements: simple ones, and the heads of loops."""
    skips: tuple[Mark, ...] = ()
    """What keeps it from running, or from counting."""
    marks: tuple[Mark, ...] = ()
    """Other decorators and attributes."""
    cases: tuple[Mark, ...] = ()
    """The values that parametrize it."""
    exits: tuple[Mark, ...] = ()
    """Early returns."""


class Body:
    """Collects the contents of one function's body, for the reader of its language.

    Args:
        is_test: whether the function is a test.
    """

    def __init__(self, *, is_test: bool) -> None:
        self.is_test = is_test
        self.assertions: list[Assertion] = []
        self.statements: list[Mark] = []
        self.skips: list[Mark] = []
        self.exits: list[Mark] = []

    def unit(self, name: str, line: int, body: str) -> Unit:
        """The function with its contents; the reader adds the context."""
        return Unit(
            name=name,
            line=line,
            is_test=self.is_test,
            body=body,
            assertions=tuple(self.assertions),
            statements=tuple(self.statements),
            skips=tuple(self.skips),
            exits=tuple(self.exits),
        )


class Replacement(Record):
    """A place that replaces real behaviour."""

    line: int
    text: str
    kind: str
    """One of `mocks.ALTERNATIVES`."""


class TestFile(Record):
    """A file of tests."""

    units: tuple[Unit, ...] = ()
    values: Mapping[str, Mark]
    """Named values outside of functions, such as `EXPECTED`."""
    skips: tuple[Mark, ...] = ()
    """What keeps the whole file, or unspecified tests of it, from running."""
    replacements: tuple[Replacement, ...] = ()


class Weakening(Record):
    """A place where tests were weakened."""

    file: str
    line: int
    test: str
    """Empty if it is about several tests."""
    what: str
    before: str = ""
    after: str = ""
