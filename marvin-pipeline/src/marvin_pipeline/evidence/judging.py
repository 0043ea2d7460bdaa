"""What reports of tests prove: that new tests are red for the right reason, and that those which were are green."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from marvin_core import Record, counted

from .own_modules import OwnModules, is_test
from .records import GateOutcome, TestReport, TestResult
from .reported import Reported, holds, is_file, is_in_package, is_package, without_case
from .reports.go import MISSING, NOT_BUILT, UNREAD

_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError", "MODULE_NOT_FOUND", "MISSING_EXPORT", MISSING})
_OF_RUST = frozenset({"E0432", "E0433", "E0463"})
"""What the compiler says of a path, or a crate, that it does not find: https://doc.rust-lang.org/error_codes/"""
_HERE = frozenset({"crate", "self", "super"})
_NAMES = frozenset({"NameError", "ReferenceError"})
_OF_PYTHON = ("pytest", "unittest")
_TOLD = 50
"""Places that a gate names."""


class Judgement(Record):
    """What reports prove."""

    outcome: GateOutcome
    reason: str
    tests: tuple[str, ...] = ()
    """The tests that it holds for."""
    places: tuple[str, ...] = ()
    """What stands against it, a line each."""
    is_missing: bool = False
    """Whether tests are gone, or do not run any more, that were there before."""
    is_hollow: bool = False
    """Whether they pass where there is no code, too."""
    faults: tuple[str, ...] = ()
    """Why less is known than should be."""


class Before(Record):
    """What tells new tests from those that were there before."""

    known: frozenset[str] = frozenset()
    """The tests that were there, by their names."""
    changed: frozenset[str] = frozenset()
    """The files that were changed since, relative to the project."""
    earlier: frozenset[str] = frozenset()
    """The tests that were red when the phase was done before, by their names."""
    is_as_earlier: bool = False
    """Whether that was measured, and the tests and what has a say in them are as they were then."""
    renamed: Mapping[str, str] | None = None
    """The new paths of files that were moved since, by their old ones."""

    def following(self, reports: Sequence[TestReport]) -> Before:
        """The same, in which tests that were moved are known by their new names."""
        reported = Reported([one for report in reports for one in report.results], self.known, self.renamed)
        return self.replace(known=self.known | {one for name in self.known for one in reported.called(name)})

    def is_new(self, result: TestResult) -> bool:
        """Whether a test is new.

        What a file has that cannot be imported nobody knows. So what comes to light there later is new where the file
        was changed, and the same holds where no test was reported before at all.
        """
        if is_package(result):
            return result.name not in self.known or any(is_in_package(name, result) for name in self.changed)
        if result.name in self.known:
            return is_file(result) and result.file in self.changed
        was_read = bool(self.known) and result.file not in self.known
        return not result.file or was_read or result.file in self.changed


def judge_red(reports: Sequence[TestReport], before: Before, own: OwnModules) -> Judgement:
    """Whether the new tests fail, and each of them since the code is missing.

    Args:
        own: the modules that the project is to have.
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
    """The new tests of reports: red for the right reason, wrong, or unclear."""

    def __init__(self) -> None:
        self.red: list[str] = []
        self.wrong: list[str] = []
        self.unclear: list[str] = []
        self.uncompiled = 0
        """These files do not compile, for the right reason. Their tests are not known yet."""

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
    """Whether the tests that were red pass, and none of them is missing. They are named as they are called now.

    Args:
        red: the tests that were, by their names; of a file that could not be imported the file.
        let_go: the tests that a review let be gone or skipped, as `FILE::TEST`.
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
    """Whether a test is one that a review let go, or the file in which it was.

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
    """Why a test is not red for the right reason; empty where it is."""
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
