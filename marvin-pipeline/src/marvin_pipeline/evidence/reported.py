"""Finds the tests of reports by their earlier names, also after a file or a test was moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from .records import TestResult
from .reports.go import MISSING, NOT_BUILT, UNREAD

_OF_GO = re.compile(r"(.*?)\.((?:Test|Fuzz|Example|Benchmark)\w*(?:/.*)?)")
"""A Go package, and the test in it."""
_DOTTED = re.compile(r"[\w.]+")


class Reported:
    """The tests of reports.

    Args:
        results: all of them.
        known: the requested tests, by their earlier names.
        renamed: the new paths of files that were moved or renamed since, by their old ones.
    """

    def __init__(
        self, results: Sequence[TestResult], known: Iterable[str], renamed: Mapping[str, str] | None = None
    ) -> None:
        self._names: dict[str, list[TestResult]] = {}
        self._files: dict[str, list[TestResult]] = {}
        self._cases: dict[str, list[TestResult]] = {}
        self._packages: dict[str, list[TestResult]] = {}
        for one in results:
            self._names.setdefault(one.name, []).append(one)
            self._files.setdefault(one.file, []).append(one)
            self._cases.setdefault(without_case(one.name), []).append(one)
            if not one.file and (found := _OF_GO.fullmatch(one.name)):
                self._packages.setdefault(found[1], []).append(one)
        self._broken = [one for one in results if is_file(one) and one.outcome == "error"]
        self._known = frozenset(known)
        self._counts = Counter(map(without_case, self._known))
        self._renamed = dict(renamed or {})
        self._lost = Counter(_bare(name) for name in self._known if name not in self._names)
        self._new: dict[str, list[TestResult]] = {}
        for one in results:
            if one.name not in self._known and not is_file(one):
                self._new.setdefault(_bare(one.name), []).append(one)

    def of(self, name: str) -> Sequence[TestResult]:
        """The results of a test or of a file; empty if it is gone."""
        return self._here(name) or self._moved(name) or self._around(name)

    def called(self, name: str) -> Sequence[str]:
        """The current name of a test or a file; unchanged if it is gone."""
        if self._here(name):
            return (name,)
        return (self._new_name(name),) if self._new_name(name) else [one.name for one in self._alone(name)] or (name,)

    def _moved(self, name: str) -> Sequence[TestResult]:
        other = self._new_name(name)
        return self._here(other) if other else self._alone(name)

    def _new_name(self, name: str) -> str:
        """Its name after its file was moved; empty if there is no such test."""
        return next((other for other in self._other_names(name) if self._here(other)), "")

    def _alone(self, name: str) -> Sequence[TestResult]:
        """The results of a test that was moved to another file."""
        # Its own name is unchanged. Several lost tests of one name are matched as a group, which needs as many tests:
        # which one
        # is which cannot be told.
        bare = _bare(name)
        new = self._new.get(bare, ()) if bare else ()
        return new if len(new) >= self._lost[bare] else ()

    def _here(self, name: str) -> Sequence[TestResult]:
        return self._names.get(name) or self._below(name) or self._other_cases(name)

    def _below(self, name: str) -> Sequence[TestResult]:
        """The tests of a file, or below a folder that is a package or that a conftest.py is in."""
        if name in self._packages:
            return self._packages[name]
        if name in self._files or "::" in name:
            return self._files.get(name, ())
        is_conftest = name == "conftest.py" or name.endswith("/conftest.py")
        folder = name.removesuffix("conftest.py") if is_conftest else f"{name}/"
        return [one for file, tests in self._files.items() if file and file.startswith(folder) for one in tests]

    def _other_cases(self, name: str) -> Sequence[TestResult]:
        """The cases of a test whose names change from run to run, such as dates, if none is lost."""
        test = without_case(name)
        cases = self._cases.get(test, ()) if test != name else ()
        return cases if len(cases) >= self._counts[test] else ()

    def _around(self, name: str) -> Sequence[TestResult]:
        """The file of a test that is not reported, because the file can no longer be imported."""
        return [one for one in self._broken if holds(one.file, name)]

    def _other_names(self, name: str) -> Iterator[str]:
        """The names that a test may have after its file was moved."""
        for mark in ("::", " > "):
            file, found, test = name.partition(mark)
            if file in self._renamed:
                yield f"{self._renamed[file]}{found}{test}"
            if found:
                return
        for old, new in self._renamed.items():
            if old.endswith(".py"):
                yield from _of_modules(name, old, new)
            elif old.endswith(".go"):
                yield from _of_packages(name, old, new)


def _of_modules(name: str, old: str, new: str) -> Iterator[str]:
    """Names of unittest's form, by module: the import root is not known."""
    before, after = (path.removesuffix(".py").split("/") for path in (old, new))
    for number in range(len(before)):
        head = f"{'.'.join(before[number:])}."
        if name.startswith(head):
            yield from (f"{'.'.join(after[at:])}.{name.removeprefix(head)}" for at in range(len(after)))


def _of_packages(name: str, old: str, new: str) -> Iterator[str]:
    before, after = (str(PurePosixPath(path).parent) for path in (old, new))
    package, mark, test = name.partition(f"/{before}.")
    if mark and before != ".":
        yield f"{package}.{test}" if after == "." else f"{package}/{after}.{test}"


def _bare(name: str) -> str:
    """The name of a test within its file or module; empty if that is unknown, as for a file."""
    plain = without_case(name)
    for mark in ("::", " > "):
        if mark in plain:
            return plain.partition(mark)[2]
    if found := _OF_GO.fullmatch(name):
        return found[2]
    return ".".join(plain.split(".")[-2:]) if _DOTTED.fullmatch(plain) and plain.count(".") >= 2 else ""


def without_case(name: str) -> str:
    """The name of a pytest test without its case."""
    return name.partition("[")[0]


def holds(file: str, name: str) -> bool:
    """Whether a test is in a file, by its name, which begins with the path or, in unittest, with the module."""
    if name.startswith(file):
        return True
    parts = file.removesuffix(".py").split("/")
    return any(name.startswith(".".join(parts[number:]) + ".") for number in range(len(parts)))


def is_file(result: TestResult) -> bool:
    """Whether the name means a whole file."""
    return bool(result.file) and result.name == result.file


def is_package(result: TestResult) -> bool:
    """Whether the name means a Go package whose tests do not build. Its `file` is the package's folder."""
    return result.cause in (MISSING, NOT_BUILT, UNREAD)


def is_in_package(path: str, package: TestResult) -> bool:
    """Whether a file belongs to the tests of such a package."""
    return path.endswith("_test.go") and str(PurePosixPath(path).parent) == package.file
