"""What test reports prove: that new tests fail for the right reason, and that tests which failed now pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from marvin_core import Record, counted

from .own_modules import OwnModules, is_test
from .records import GateOutcome, TestReport, TestResult
from .reported import Reported, holds, is_file, is_in_package, is_package, without_case
from .reports.go import MISSING, NOT_BUILT, UNREAD

_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError", "MODULE_NOT_FOUND", "MISSING_EXPORT", MISSING})
_OF_RUST = frozenset({"E0432", "E0433", "E0463"})
"""The compiler's errors for an unresolved path or crate: https://doc.rust-lang.org/error_codes/"""
_HERE = frozenset({"crate", "self", "super"})
_NAMES = frozenset({"NameError", "ReferenceError"})
_OF_PYTHON = ("pytest", "unittest")
_TOLD = 50
"""Places that a gate names at most."""


class Judgement(Record):
    """What test reports prove."""

    outcome: GateOutcome
    reason: str
    tests: tuple[str, ...] = ()
    """The tests for which it holds."""
    places: tuple[str, ...] = ()
    """The places that contradict it, one a line."""
    is_missing: bool = False
    """Whether tests that existed before are gone, or not run any more."""
    is_hollow: bool = False
    """Whether they also pass without the code."""
    faults: tuple[str, ...] = ()
    """Why the result is incomplete."""


class Before(Record):
    """The tests before a phase, to tell which ones are new."""

    known: frozenset[str] = frozenset()
    """The names of the tests that existed."""
    changed: frozenset[str] = frozenset()
    """The files that were changed since, relative to the project."""
    earlier: frozenset[str] = frozenset()
    """The tests that failed when the phase was done before, by name."""
    is_as_earlier: bool = False
    """Whether that was measured, and the tests and their settings are unchanged since."""
    renamed: Mapping[str, str] | None = None
    """The new paths of files that were moved since, by their old ones."""

    def following(self, reports: Sequence[TestReport]) -> Before:
        """The same, with the new names of tests that were moved."""
        reported = Reported([one for report in reports for one in report.results], self.known, self.renamed)
        return self.replace(known=self.known | {one for name in self.known for one in reported.called(name)})

    def is_new(self, result: TestResult) -> bool:
        """Whether a test is new.

        The tests of a file that cannot be imported are unknown. Tests that appear there later are new if the file
        was changed, or if no test was reported before at all.
        """
        if is_package(result):
            return result.name not in self.known or any(is_in_package(name, result) for name in self.changed)
        if result.name in self.known:
            return is_file(result) and result.file in self.changed
        was_read = bool(self.known) and result.file not in self.known
        return not result.file or was_read or result.file in self.changed


def judge_red(reports: Sequence[TestReport], before: Before, own: OwnModules) -> Judgement:
    """Whether the new tests fail, each because code is missing.

    Args:
        own: the modules that the project is going to have.
    """
    sorted_out = _Sorted()
    before = before.following(reports)
    for report in reports:
        sorted_out.add(report, before, own)
    by_code = [report for report in reports if not report.runner and not report.fault]
    unclear = sorted_out.unclear + [
        f"`{one.command}` reports only its exit code ({one.exit_code})" for one in by_code if one.exit_code
    ]
    wrong, red, count = sorted_out.wrong, tuple(sorted_out.red), len(sorted_out.red) + sorted_out.uncompiled
    if not count and not wrong and not unclear:
        if not by_code and before.earlier & before.known:
            reason = "There is no new test: the tests that were red in the earlier run of this phase still exist."
            as_then: GateOutcome = "passed" if before.is_as_earlier else "not_measured"
            reason += " They are unchanged." if before.is_as_earlier else " Some of them were changed."
            return Judgement(outcome=as_then, reason=reason, tests=tuple(sorted(before.earlier)))
        passing = [f"`{one.command}` ends with exit code 0, though the code is not there." for one in by_code]
        wrong = passing or ["No new test was run."]
    if wrong:
        reason = f"{counted(len(wrong), 'thing')} about the new tests {_are(len(wrong))} wrong."
        return Judgement(outcome="failed", reason=reason, tests=red, places=tuple(wrong[:_TOLD]))
    if unclear:
        reason = f"It is not known why some tests fail: {'; '.join(unclear[:3])}."
        return Judgement(outcome="not_measured", reason=reason, tests=red, places=tuple(unclear[:_TOLD]))
    what = "new test" if red else "file of tests"
    return Judgement(outcome="passed", reason=f"{counted(count, what)} failed for the right reason.", tests=red)


class _Sorted:
    """The new tests of reports: failing for the right reason, failing for another one, or unclear."""

    def __init__(self) -> None:
        self.red: list[str] = []
        self.wrong: list[str] = []
        self.unclear: list[str] = []
        self.uncompiled = 0
        """Files that do not compile, for the right reason. Their tests are not known yet."""

    def add(self, report: TestReport, before: Before, own: OwnModules) -> None:
        """Sort the tests of a report."""
        if report.fault:
            self.wrong.append(f"{report.command}: {report.fault}")
        for result in report.results if report.is_structured else ():
            if not before.is_new(result):
                continue
            if result.cause == NOT_BUILT:
                self.unclear.append(f"{result.name} does not build, and Go tells programs no reason for it")
            elif why := _why_not_red(result, own, report.runner):
                self.wrong.append(_place(result, why))
            elif report.runner == "cargo":
                self.uncompiled += 1
            else:
                self.red.append(result.name)


def judge_green(
    reports: Sequence[TestReport],
    red: Collection[str],
    let_go: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Judgement:
    """Whether the tests that failed now pass, and none of them is missing. The result has their current names.

    Args:
        red: the names of the tests that failed; for a file that could not be imported the file.
        let_go: the tests whose removal or skipping a review accepted, as `FILE::TEST`.
        renamed: as of `Before`.
    """
    reported = Reported([result for report in reports for result in report.results], red, renamed)
    faults = [f"{report.command}: {report.fault}" for report in reports if report.fault]
    by_code = [report for report in reports if report.runner in ("", "cargo") and not report.fault]
    whole = by_code if red else [report for report in reports if not report.fault]
    failing = [f"`{one.command}` ends with exit code {one.exit_code}." for one in whole if one.exit_code]
    green: list[str] = []
    missing: list[str] = []
    left_out = 0
    for name in red:
        found = reported.of(name)
        is_missing = all(one.outcome == "skipped" for one in found)
        if is_missing and any(is_let_go(name, one) for one in let_go):
            left_out += 1
        elif is_missing:
            missing.append(f"{name}: {'it is skipped' if found else 'it was removed'}")
        elif bad := next((one for one in found if one.outcome not in ("passed", "skipped")), None):
            failing.append(_place(bad, f"it does not pass ({bad.outcome}) {_cause(bad)}".rstrip()))
        else:
            green += reported.called(name)
    places, green = [*faults, *missing, *failing], list(dict.fromkeys(green))
    if places:
        return Judgement(
            outcome="failed",
            reason=f"{len(green)} of {len(red)} tests pass. {counted(len(places), 'thing')} kept the gate from "
            "passing.",
            tests=tuple(green),
            places=tuple(places[:_TOLD]),
            is_missing=bool(missing),
        )
    how = " Only the exit code shows this." if by_code and not red else ""
    how += f" A review accepted the removal of {counted(left_out, 'further test')}." if left_out else ""
    told = f"{counted(len(green), 'test')} that failed before {'passes' if len(green) == 1 else 'pass'} now."
    return Judgement(outcome="passed", reason=f"{told}{how}", tests=tuple(green))


def is_let_go(name: str, let_go: str) -> bool:
    """Whether a review accepted the removal of a test, or of one with its file.

    Args:
        name: as its runner names it.
        let_go: as it is named where tests are compared, `FILE::TEST`.
    """
    file, _, test = let_go.partition("::")
    if name == file:
        return True
    known = without_case(name)
    return (
        name == f"{file} > {test}"
        or known == let_go
        or (holds(file, name) and known.endswith(f".{test.replace('::', '.')}"))
    )


def _why_not_red(result: TestResult, own: OwnModules, runner: str) -> str:
    """Why a test does not fail for the right reason; empty if it does."""
    if result.outcome == "passed":
        return "it passes, although the code does not exist yet"
    if result.outcome == "skipped":
        return "it is skipped"
    if result.outcome == "expected_failure" or result.cause == "UnexpectedSuccess":
        return "it is marked as expected to fail"
    if result.cause in _IMPORTS:
        is_own = own.has(result.missing, of_python=runner in _OF_PYTHON)
        return "" if is_own else _foreign_import(result)
    if runner == "cargo" and result.cause in _OF_RUST:
        is_own = result.missing[:1].isupper() or result.missing in _HERE or own.has(result.missing, of_python=False)
        return "" if is_own else _foreign_import(result)
    if result.cause == UNREAD:
        return f"Go cannot read its files: {result.message}"
    if result.cause == "SyntaxError":
        return f"{result.origin or 'a file'} has a syntax error: {result.message}"
    in_test = not result.origin or is_test(result.origin)
    if result.cause == "NotImplementedError" and result.origin and in_test:
        return "the test itself raises NotImplementedError, so it tests nothing yet"
    if result.cause in _NAMES and in_test:
        return f"it uses an undefined name: {result.message}"
    if result.cause == "AttributeError" and in_test and result.missing not in ("", "builtins"):
        if own.has(result.missing):
            return ""
        return (
            f"{result.missing} is not a module of the project, and does not contain what the test uses: "
            f"{result.message}"
        )
    if result.outcome == "error" and runner != "cargo":
        is_stub = not in_test and result.cause in ("NotImplementedError", "AttributeError")
        return "" if is_stub else f"its setup fails, such as a fixture {_cause(result)}".rstrip()
    if not result.cause and runner in _OF_PYTHON:
        return "it fails without an exception"
    return ""


def _foreign_import(result: TestResult) -> str:
    if not result.missing:
        return f"an import fails, and it is not known which {_cause(result)}"
    return (
        f"it imports {result.missing}, which cannot be imported and is not a planned module of the project, "
        "according to its files, its manifest and the design"
    )


def _place(result: TestResult, why: str) -> str:
    return (
        f"{result.name}: {why}"
        if not result.file or result.name.startswith(result.file)
        else (f"{result.file}: {result.name}: {why}")
    )


def _cause(result: TestResult) -> str:
    said = ": ".join(part for part in (result.cause, result.message) if part)
    return f"({said})" if said else ""


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
