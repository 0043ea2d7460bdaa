"""Parses the reports of runners. Code of agents ran in the process that wrote them: nothing in them is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, get_args

from marvin_core import Record, one_line

from ..records import TestOutcome, TestResult

LARGEST = 20_000_000
"""Bytes of a report that are parsed."""
MOST = 50_000
"""Tests in a report at most."""
NAME = 500
"""Characters of a name at most."""
_MESSAGE = 300
_OUTCOMES: tuple[TestOutcome, ...] = get_args(TestOutcome)
_WORSE: tuple[TestOutcome, ...] = ("passed", "expected_failure", "skipped", "failed", "error")
"""Of several outcomes of one test the last one in this order counts."""


class ReadReport(Record):
    """The tests of a report, and what is wrong with it; empty for a complete one."""

    results: tuple[TestResult, ...] = ()
    fault: str = ""


def read_lines(data: bytes, folder: str = ".") -> ReadReport:
    """The report of one of our own reporters.

    Args:
        folder: the one in which the tests were run, relative to the project.
    """
    objects = _objects(data)
    if isinstance(objects, str):
        return ReadReport(fault=objects)
    ends = [one for one in objects if one.get("event") == "end"]
    last = [one for one in objects if one.get("event") != "uncaught"][-1:]
    tests = [one for one in objects if one.get("event") == "test"]
    uncaught = {str(one.get("file")): one for one in objects if one.get("event") == "uncaught"}
    results = _results((_with_reason(one, uncaught) for one in tests), folder)
    if isinstance(results, str):
        return ReadReport(fault=results)
    if len(ends) != 1 or last != ends:
        return ReadReport(results=results, fault="The runner did not finish its report.")
    if ends[0].get("count") != len(tests):
        return ReadReport(results=results, fault="The report does not contain all the tests that it counted.")
    return ReadReport(results=results)


def _objects(data: bytes) -> Sequence[Mapping[str, Any]] | str:
    """The lines of a report; an error text if it is missing or incomplete."""
    if not data.strip():
        return "The runner reported nothing."
    if len(data) >= LARGEST:
        return f"The report has more than {LARGEST:,} bytes."
    found = []
    for line in data.splitlines():
        value = object_of(line)
        if value is None:
            return "The report contains an invalid line."
        found.append(value)
        if len(found) > 2 * MOST:
            return too_many()
    return found


def object_of(line: bytes) -> Mapping[str, Any] | None:
    """The JSON object of a text; None if it is not one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _with_reason(test: Mapping[str, Any], uncaught: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """A file that failed before its tests ran, with the reason."""
    reason = uncaught.get(str(test.get("file")))
    if reason is None or test.get("name") != test.get("file") or test.get("outcome") != "error":
        return test
    return {**test, **{key: reason.get(key, "") for key in ("cause", "missing", "origin", "message")}}


def _results(tests: Iterable[Mapping[str, Any]], folder: str) -> tuple[TestResult, ...] | str:
    results: dict[tuple[str, str], TestResult] = {}
    for test in tests:
        result = result_of(test, folder)
        if result is None:
            return "The report contains an invalid test."
        key = (result.file, result.name)
        before = results.get(key)
        if before is None or _WORSE.index(result.outcome) > _WORSE.index(before.outcome):
            results[key] = result
        if len(results) > MOST:
            return too_many()
    return tuple(results.values())


def result_of(test: Mapping[str, Any], folder: str) -> TestResult | None:
    """A test of a report, with its texts shortened; None if it is malformed.

    Args:
        folder: the one in which the tests were run, relative to the project.
    """
    texts = {key: test.get(key, "") for key in ("name", "file", "outcome", "cause", "missing", "message", "origin")}
    if not all(isinstance(text, str) for text in texts.values()) or texts["outcome"] not in _OUTCOMES:
        return None
    name, file = one_line(texts["name"], NAME), placed(texts["file"], folder)
    if not name:
        return None
    return TestResult(
        name=_name_from(folder, name, one_line(texts["file"], NAME)),
        file=file,
        outcome=texts["outcome"],
        cause=one_line(texts["cause"], NAME),
        missing=one_line(texts["missing"], NAME),
        message=one_line(texts["message"], _MESSAGE),
        origin=placed(texts["origin"], folder),
    )


def _name_from(folder: str, name: str, file: str) -> str:
    """The name of a test relative to the project's folder: two folders may have tests of the same name."""
    if folder == "." or not file:
        return name
    if name.startswith(file):
        return f"{placed(file, folder)}{name[len(file) :]}"
    return f"{folder.replace('/', '.')}.{name}"  # a module and a name in it


def placed(path: str, folder: str) -> str:
    """A path relative to the project."""
    shown = one_line(path, NAME)
    return shown if folder == "." or not shown else str(PurePosixPath(folder, shown))


def too_many() -> str:
    """The error for a report with too many tests."""
    return f"The report has more than {MOST:,} tests."
