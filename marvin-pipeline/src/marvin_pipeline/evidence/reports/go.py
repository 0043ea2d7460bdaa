"""Go's reports of tests, and of packages whose tests do not build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marvin_core import Record, one_line

from ..records import TestOutcome, TestResult
from .reading import MOST, NAME, ReadReport, object_of, placed, result_of, too_many

_FIELDS = "ImportPath,ForTest,DepOnly,Standard,Module,Dir,Error,Deps,TestGoFiles,XTestGoFiles"
_LIST = ("list", "-e", "-test", "-deps", "-buildvcs=false", f"-json={_FIELDS}")
_SELECTING = ("tags", "mod", "modfile")
"""The flags that determine which files and modules exist."""
_OUTCOMES: Mapping[str, TestOutcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
NOT_BUILT = "build"
"""The cause of a package that does not build, where the reason is not machine-readable."""
UNREAD = "load"
"""The cause of a package with files that Go cannot parse."""
MISSING = "MISSING_PACKAGE"
"""The cause of a package that imports a missing one."""
_NOT_BUILT = "The package does not build, or ended early."
_UNFINISHED = (
    "The runner did not finish {name}. A test that ends the program has no result. Before Go 1.20, a test has none "
    "either after a text without a line end on standard output."
)


class GoReport(Record):
    """The tests in Go's output."""

    read: ReadReport
    ended: frozenset[str] = frozenset()
    """The packages with an end event."""


def read_go(output: bytes) -> GoReport:
    """Parse the output of `go test -json`: events of packages and tests (https://pkg.go.dev/cmd/test2json)."""
    events = _Events()
    for line in output.splitlines():
        value = object_of(line)
        if value is not None:  # compiler output stands between the events
            events.add(value)
        if len(events.results) > MOST:
            return GoReport(read=ReadReport(fault=too_many()))
    if not events.results and not output.strip():
        return GoReport(read=ReadReport(fault="The runner reported nothing."))
    fault = _UNFINISHED.format(name=min(events.begun)) if events.begun else ""
    return GoReport(read=ReadReport(results=tuple(events.results.values()), fault=fault), ended=frozenset(events.ended))


class _Events:
    """Processes the events of a run in order."""

    def __init__(self) -> None:
        self.results: dict[str, TestResult] = {}
        self.begun: set[str] = set()
        """The packages and tests without an end event."""
        self._with_tests: set[str] = set()
        self.ended: set[str] = set()
        self._whole: set[str] = set()
        """The packages whose end event says that all their tests passed."""

    def add(self, value: Mapping[str, Any]) -> None:
        package, test, action = (one_line(str(value.get(key, "")), NAME) for key in ("Package", "Test", "Action"))
        if not package:
            return
        if action == "output":
            self._whole |= {package} if not test and value.get("Output") == "PASS\n" else set()
            return
        name = f"{package}.{test}" if test else package
        self.begun |= {package, name}
        if test:
            self._with_tests.add(package)
        if action not in _OUTCOMES:
            return
        self.begun.discard(name)
        if test:
            self.results[name] = TestResult(name=name, file="", outcome=_OUTCOMES[action])
            return
        self.ended.add(package)
        if action == "pass" and package in self._whole:
            self._pass_left(package)
        elif action == "fail" and package not in self._with_tests:
            self.results[name] = TestResult(name=name, file="", outcome="error", cause=NOT_BUILT, message=_NOT_BUILT)

    def _pass_left(self, package: str) -> None:
        """Count tests without an end event as passed if their package ended and none of its tests failed.

        Go before 1.20 loses the end event of a test that printed a text without a line end.
        """
        for name in [one for one in self.begun if one.startswith(f"{package}.")]:
            if "/" not in name.removeprefix(f"{package}."):
                self.results[name] = TestResult(name=name, file="", outcome="passed")
                self.begun.discard(name)


def list_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The command that lists the packages of a test command, and what they import, as JSON.

    Empty if the command does not show which of its words are packages.
    """
    words = list(argv[2 : list(argv).index("-args") if "-args" in argv else None])
    flags: list[str] = []
    for number, word in enumerate(words):
        if word.lstrip("-").partition("=")[0] in _SELECTING and word.startswith("-"):
            flags += [word] if "=" in word else words[number : number + 2]
    others = [word for word in words if not word.startswith("-") and word not in flags]
    patterns = [word for word in others if word.startswith(".") or "/" in word]
    return (argv[0], *_LIST, *flags, *patterns) if patterns or not others else ()


def with_unbuilt(report: GoReport, listing: bytes, folder: str) -> ReadReport:
    """The report with the packages whose tests did not build, and the known reasons.

    Go before 1.24 has no event for a package that does not build. Its listing shows missing imports
    and unreadable files. Compiler errors are available as text only.

    Args:
        listing: the output of the command of `list_argv`.
        folder: the one in which the tests were run, relative to the project.
    """
    packages = list(_listed(listing))
    found = {one.name: one for one in report.read.results}
    for package in packages:
        path = str(package.get("ImportPath", ""))
        has_tests = package.get("TestGoFiles") or package.get("XTestGoFiles")
        is_asked_for = has_tests and not package.get("ForTest") and not package.get("DepOnly")
        if is_asked_for and (path in found or path not in report.ended):
            told = {"name": path, "file": _inside(path, package), "outcome": "error", **_reason(path, packages, folder)}
            if result := result_of(told, folder):
                found[path] = result.replace(name=path)
    return report.read.replace(results=tuple(found.values()))


def _reason(path: str, packages: Sequence[Mapping[str, Any]], folder: str) -> Mapping[str, str]:
    """Why a package does not build. A missing import of another project counts before one of this project."""
    own = [one for one in packages if path in (one.get("ForTest"), one.get("ImportPath"), _tested(one))]
    broken = {str(one.get("ImportPath")): _said(one) for one in packages if isinstance(one.get("Error"), dict)}
    if unread := next((broken[name] for one in own if (name := str(one.get("ImportPath"))) in broken), ""):
        return {"cause": UNREAD, "message": unread}
    there = {str(one.get("ImportPath")) for one in packages if one.get("Dir")}
    missing = [name for one in own for name in _names(one.get("Deps")) if name in broken and name not in there]
    if not missing:
        return {"cause": NOT_BUILT, "message": _NOT_BUILT}
    modules = [one["Module"] for one in own if isinstance(one.get("Module"), dict)]
    inside = {name: next((at for module in modules if (at := _below(name, module))), "") for name in missing}
    foreign = next((name for name in missing if not inside[name]), "")
    name = foreign or missing[0]
    told = foreign or f"./{placed(inside[name], folder)}"
    return {"cause": MISSING, "missing": told, "message": broken[name]}


def _tested(package: Mapping[str, Any]) -> str:
    """The package of a test program."""
    return str(package.get("ImportPath", "")).removesuffix(".test")


def _said(package: Mapping[str, Any]) -> str:
    return str(package["Error"].get("Err") or "it gives no reason")


def _names(value: object) -> Sequence[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _inside(path: str, package: Mapping[str, Any]) -> str:
    """The folder of a package within its module."""
    module = package.get("Module")
    return _below(path, module) if isinstance(module, dict) else ""


def _below(path: str, module: Mapping[str, Any]) -> str:
    """The folder of a package relative to its module; empty for one of another module."""
    name = str(module.get("Path", ""))
    if path == name:
        return "."
    return path.removeprefix(f"{name}/") if name and path.startswith(f"{name}/") else ""


def _listed(listing: bytes) -> Iterator[Mapping[str, Any]]:
    """The objects of a listing, each of several lines, with messages for people in between."""
    lines: list[bytes] = []
    for line in listing.splitlines():
        if line == b"{":
            lines.clear()
        lines.append(line)
        if line == b"}" and (value := object_of(b"\n".join(lines))) is not None:
            yield value
