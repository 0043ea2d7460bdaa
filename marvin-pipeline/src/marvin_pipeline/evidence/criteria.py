"""The acceptance criteria of a specification, and the tests that name them.

A specification has each criterion on a line of its own, as `AC-7: given ..., when ..., then ...`; a test names its
criterion in its own name (`test_ac_7_...`, `'AC-7: ...'`) or in a comment. Both are found by searching the text line by
line: agents write it, and none of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from marvin_core import Record, one_line

_LINE = re.compile(
    r"[\s>#*+\-|\d.)\[\]xX]{0,24}[*_`]{0,3}AC-0{0,3}(?P<number>[1-9]\d{0,3})[*_`\]]{0,4}"
    r"\s{0,8}[:.)|–—-][*_`]{0,3}\s*(?P<text>\S.*)"
)
_NAMED = re.compile(r"(?:(?<![A-Za-z0-9])[aA][cC]|(?<=[a-z_])(?<!0x)AC)[-_]?0{0,3}([1-9]\d{0,3})(?!\d)")
_PYTHON = r"\s*(?:async\s+)?def\s+(?P<name>test\w*)"
_JAVASCRIPT = (
    r"\s*(?:await\s+)?(?:test|it)(?:\.\w{1,20}){0,3}\s*(?:\([^()]{0,200}\)\s*)?"
    r"\(\s*(?P<quote>['\"`])(?P<name>.{1,300}?)(?P=quote)"
)
_GO = r"func\s+(?P<name>Test\w*)\s*\("
_RUST = r"\s*(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)\s*[(<]"
_DECLARED = tuple(map(re.compile, (_PYTHON, _JAVASCRIPT, _GO, _RUST)))
_COMMENT = ("#", "//", "/*", "*", "@")
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.(?:py|go|rs)|.*\.(?:test|spec)\.[cm]?[jt]sx?")
_TEST_FOLDERS = frozenset(("tests", "test", "__tests__", "e2e", "spec"))
_SOURCES = frozenset((".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".go", ".rs"))
_LONGEST_LINE, _LINES = 2_000, 50_000
_TEXT = 500
"""Characters of a criterion that are kept."""
MOST = 1_000
"""Criteria of one specification at most."""


class Criterion(Record):
    """One acceptance criterion."""

    id: str
    """In the form `AC-7`, without leading zeros."""
    text: str
    line: int
    """Its line in the specification, from 1."""


class Mention(Record):
    """A place where a test names a criterion."""

    criterion: str
    file: str
    """Relative to the project."""
    line: int
    test: str
    """The name of the test in its file; empty if the mention belongs to the whole file."""


def criteria_of(specification: str) -> Sequence[Criterion]:
    """The criteria in order; of duplicate ids the first one counts. Takes linear time."""
    found: dict[str, Criterion] = {}
    lines = specification.splitlines()[:_LINES]
    for number, line in enumerate(lines, 1):
        matched = _LINE.fullmatch(line[:_LONGEST_LINE])
        if matched and len(found) < MOST:
            id = f"AC-{matched['number']}"
            text = " ".join([matched["text"].rstrip(" |*_`"), *_continued(lines, number)])
            found.setdefault(id, Criterion(id=id, text=one_line(text, _TEXT), line=number))
    return tuple(found.values())


_MORE = 8
"""Lines below a criterion that may continue it."""


def _continued(lines: Sequence[str], after: int) -> Iterator[str]:
    """The continuation lines of a criterion: indented, up to the next one or an empty line."""
    for line in lines[after : after + _MORE]:
        if not line[:1].isspace() or not line.strip() or _LINE.fullmatch(line[:_LONGEST_LINE]):
            return
        yield line.strip()[:_TEXT]


def named_in(text: str) -> frozenset[str]:
    """The ids of the criteria that a text names."""
    return frozenset(f"AC-{number}" for number in _NAMED.findall(text))


def is_test_file(name: str) -> bool:
    """Whether a file contains tests, by its name as git gives it."""
    path = PurePosixPath(name)
    if path.suffix not in _SOURCES:
        return False
    return bool(_TEST_FILE.fullmatch(path.name) or _TEST_FOLDERS & set(path.parts[:-1]))


def mentions_in(file: str, text: str) -> Sequence[Mention]:
    """The places of a test file that name a criterion, each with its test. Takes linear time.

    A comment or a decorator belongs to the test right below it; anything else to the test around it.
    """
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()[:_LINES]]
    declared = [_declared(line) for line in lines]
    below = _tests_below(lines, declared)
    found, above = dict[tuple[str, str], Mention](), ""
    for number, line in enumerate(lines):
        above = declared[number] or above
        ids = named_in(line)
        if ids:
            test = declared[number] or below[number] or above
            for id in sorted(ids):
                found.setdefault((id, test), Mention(criterion=id, file=file, line=number + 1, test=test))
    return tuple(found.values())


def _declared(line: str) -> str:
    """The name of the test that a line declares; empty without one."""
    return next((matched["name"] for pattern in _DECLARED if (matched := pattern.match(line))), "")


def _tests_below(lines: Sequence[str], declared: Sequence[str]) -> Sequence[str]:
    """For each line with a comment or a decorator, the test that the next other line declares."""
    found, following = [""] * len(lines), ""
    for number in range(len(lines) - 1, -1, -1):
        stripped = lines[number].strip()
        if not stripped:
            following = ""
        elif stripped.startswith(_COMMENT):
            found[number] = following
        else:
            following = declared[number]
    return found
