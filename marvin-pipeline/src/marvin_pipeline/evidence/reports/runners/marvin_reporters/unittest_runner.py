"""Runs unittest as `python -m unittest` does, and reports its results as JSON lines. The project's Python runs it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import unittest
from typing import Any

from .lines import Lines, below, file_of_module, place_of_report, told_of

_ORDER = ("passed", "expected_failure", "skipped", "failed", "error")
_NO_TESTS = 5
"""unittest's exit code without tests, from Python 3.12 on."""


class _Result(unittest.TextTestResult):
    """Reports each test after all have ended."""

    lines: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.found: dict[str, tuple[str, str, dict[str, str]]] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed", {})
        super().startTest(test)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._fault(test, err)
        super().addError(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._fault(test, err)
        super().addFailure(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._fault(test, err)
        super().addSubTest(test, subtest, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped", {})
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._note(test, "expected_failure", {})
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "failed", {"cause": "UnexpectedSuccess"})
        super().addUnexpectedSuccess(test)

    def stopTestRun(self) -> None:  # noqa: N802
        super().stopTestRun()
        if self.lines is not None:
            for name, (outcome, file, told) in self.found.items():
                self.lines.test(name, file, outcome, told)

    def _fault(self, test: Any, err: Any) -> None:
        if type(test).__name__ == "_FailedTest":
            name, file, told = _not_loaded(test, err)
            self.found[name] = ("error", file, told)
            return
        self._note(test, "failed" if _in_test(test, err[2]) else "error", told_of(err[1], err[2]))

    def _note(self, test: Any, outcome: str, told: dict[str, str]) -> None:
        if type(test).__name__ == "_FailedTest":
            return
        name = test.id()
        before = self.found.get(name)
        if before is None or _ORDER.index(outcome) > _ORDER.index(before[0]):
            self.found[name] = (outcome, file_of_module(type(test).__module__), told)


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


def _main() -> int:
    place = place_of_report()
    lines = _Result.lines = Lines(place) if place else None
    program = unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=_Runner, exit=False)
    result = program.result
    if result.testsRun == 0 and not result.skipped and sys.version_info >= (3, 12):
        code = _NO_TESTS
    else:
        code = 0 if result.wasSuccessful() else 1
    if lines is not None:
        lines.end(code)
    return code


def _in_test(test: Any, tb: Any) -> bool:
    """Whether it happened in the test's own function, not in its setup or teardown."""
    name = getattr(test, "_testMethodName", "")
    while tb is not None:
        if tb.tb_frame.f_code.co_name == name:
            return True
        tb = tb.tb_next
    return False


def _not_loaded(test: Any, err: Any) -> tuple[str, str, dict[str, str]]:
    """The name, file and cause of a failed import. unittest keeps only a text, so the module is imported again."""
    module = str(getattr(test, "_testMethodName", ""))
    file = _file_of(module)
    try:
        importlib.import_module(module)
    except BaseException as error:  # a module may also exit the program
        told = told_of(error)
        told["origin"] = told.get("origin") or file
        return file or module, file, told
    return file or module, file, told_of(err[1])


def _file_of(module: str) -> str:
    try:
        found = importlib.util.find_spec(module)
    except BaseException:  # its package runs as well
        return ""
    return below(str(found.origin or "")) if found is not None else ""


if __name__ == "__main__":
    sys.exit(_main())
