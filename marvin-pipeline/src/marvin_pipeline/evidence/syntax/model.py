"""What a file of tests holds, whatever its language: tests, helpers, what they assert, and what replaces behaviour."""

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
"""How an assertion looks at its subject. helper: a function of the project or of a library that asserts. either: one of
several will do. nothing: it is always true, whatever the program does."""
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
"""How much each kind leaves to the program: the higher, the less."""


class Unreadable(Exception):
    """A file cannot be read as what its name says; the text says why."""


class Mark(Record):
    """Something at a place, as it stands there."""

    text: str
    line: int
    guards: tuple[str, ...] = ()
    """The conditions under which it is come to, from the outermost on, as `if False`."""


class Assertion(Record):
    """One assertion. All texts are in one form, however they are laid out."""

    kind: AssertionKind
    subject: str
    """What is looked at."""
    expected: str
    """What it is compared with; the class of the exception where it is to be raised."""
    text: str
    """All of it."""
    line: int
    guards: tuple[str, ...] = ()
    """As of `Mark`."""
    detail: str = ""
    """What narrows it: the words that an exception has to say, or how a tolerance is given."""
    tolerance: float | None = None
    """How far off a value may be; None where that is not said by a number."""


class Unit(Record):
    """A test, or a function beside the tests."""

    name: str
    """With the classes and groups around it, as `TestAdd::test_adds` or `add > adds`."""
    line: int
    is_test: bool
    body: str
    """All of it in one form, without its name; the same for two that do the same in the same words."""
    assertions: tuple[Assertion, ...] = ()
    statements: tuple[Mark, ...] = ()
    """What it does besides, simple statements and the heads of loops."""
    skips: tuple[Mark, ...] = ()
    """What keeps it from being run, or from counting."""
    marks: tuple[Mark, ...] = ()
    """What else stands above it: decorators and attributes."""
    cases: tuple[Mark, ...] = ()
    """The values that it is run with."""
    exits: tuple[Mark, ...] = ()
    """Where it returns early."""


class Body:
    """What is found in the body of one function, by the reader of its language.

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
        """The function, with what was found; what stands around it is for the reader to add."""
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
    """A place that puts something in place of real behaviour."""

    line: int
    text: str
    kind: str
    """One of `mocks.ALTERNATIVES`."""


class TestFile(Record):
    """A file of tests."""

    units: tuple[Unit, ...] = ()
    values: Mapping[str, Mark]
    """What has a name of its own beside the functions, as `EXPECTED`."""
    skips: tuple[Mark, ...] = ()
    """What keeps the whole file, or others than those it stands at, from being run."""
    replacements: tuple[Replacement, ...] = ()


class Weakening(Record):
    """A place where tests ask for less than they did."""

    file: str
    line: int
    test: str
    """Empty where it concerns more than one."""
    what: str
    before: str = ""
    after: str = ""
