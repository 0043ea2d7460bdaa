"""A plugin that reports pytest's results as JSON lines. The project's own Python and pytest load it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from .lines import Lines, below, is_elsewhere, place_of_report, told_of

_PLACE = place_of_report()
_TOLD = "marvin_told"
"""An attribute of reports; xdist transfers it from the worker with the rest of the report."""

_GIVEN_UP = "given up"
"""The mark of a test that pytest did not start, such as an async one without a plugin for them."""
_USAGE = 4
"""pytest's exit code if a conftest.py cannot be imported."""
_ORDER = ("passed", "expected_failure", "skipped", "failed", "error")
"""From the best to the worst; the worst phase or part of a test counts."""


class _Reporter:
    """Collects the phases of each test, and reports it at its end."""

    def __init__(self, lines: Lines, root: str) -> None:
        self._lines = lines
        self._root = root
        self._begun: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        found = self._begun.setdefault(report.nodeid, {"outcome": "passed", "told": {}})
        told = getattr(report, _TOLD, {})
        outcome = _outcome(report, told)
        if _ORDER.index(outcome) > _ORDER.index(found["outcome"]):
            found.update(outcome=outcome, told=told)
        if report.when == "teardown":
            done = self._begun.pop(report.nodeid)
            self._told(report.nodeid, done["outcome"], done["told"])

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._told(report.nodeid, "error", getattr(report, _TOLD, {}))
        elif report.skipped and report.nodeid:
            self._told(report.nodeid, "skipped", {})

    def pytest_sessionfinish(self, exitstatus: Any) -> None:
        for name, done in self._begun.items():  # pytest was stopped during these
            self._told(name, "error", done["told"])
        self._lines.end(int(exitstatus))

    def _told(self, nodeid: str, outcome: str, told: dict[str, str]) -> None:
        """Report a test, with its file relative to pytest's working directory: its settings may lie in a folder
        above."""
        path, mark, rest = nodeid.partition("::")
        if self._root and path:
            path = below(os.path.join(self._root, path)) or path
        self._lines.test(path + mark + rest, path, outcome, told)


def _outcome(report: Any, told: dict[str, str]) -> str:
    is_expected = hasattr(report, "wasxfail")
    if report.skipped:
        return "expected_failure" if is_expected else "skipped"
    if report.failed:
        return "failed" if report.when == "call" and not told.get(_GIVEN_UP) else "error"
    # A hook of the project may report success: the exception counts.
    return "failed" if told.get("cause") and report.when == "call" else "passed"


def _root(config: Any) -> str:
    """The folder to which pytest's file names are relative; empty for the working directory."""
    root = os.path.realpath(str(getattr(config, "rootpath", None) or getattr(config, "rootdir", "")))
    return "" if root == os.path.realpath(os.getcwd()) else root


def pytest_configure(config: Any) -> None:
    if _PLACE and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(Lines(_PLACE), _root(config)), "marvin-report")


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    """Report a conftest.py that cannot be imported: pytest then exits without a report."""
    outcome: Any = yield
    found = getattr(outcome, "excinfo", None)
    if _PLACE and found is not None:
        error = found[1]
        kept = getattr(error, "cause", None) or getattr(error, "excinfo", (None, None))[1] or error
        file = below(str(getattr(error, "path", "")))
        told = told_of(kept)
        told["origin"] = told.get("origin") or file
        lines = Lines(_PLACE)
        lines.test(file or "conftest.py", file, "error", told)
        lines.end(_USAGE)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: Any) -> Iterator[None]:
    outcome: Any = yield
    error = call.excinfo
    told = {} if error is None else told_of(error.value, error.tb)
    if told.get("cause") == "Failed" and is_elsewhere(error.tb):
        told[_GIVEN_UP] = "yes"
    setattr(outcome.get_result(), _TOLD, told)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: Any) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    call = getattr(report, "call", None)
    error = None if call is None or call.excinfo is None else call.excinfo.value
    # pytest reports a module that cannot be imported as an error of its own.
    cause = getattr(error, "__cause__", None) or error
    told = told_of(cause)
    if told and not told["origin"]:
        told["origin"] = below(str(getattr(collector, "path", None) or getattr(collector, "fspath", "")))
    setattr(report, _TOLD, told)
