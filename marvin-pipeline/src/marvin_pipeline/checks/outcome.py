"""Parses the output of test runs: how many tests passed, which failed, and whether two failures are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from marvin_core import Record

_READ = 200_000
"""Characters that are parsed, half from the start and half from the end."""
_LINE = 400
_NAMES = 2_000
_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:FAILED|ERROR) (?P<name>\S+(?:\.py|::)\S*)",  # pytest
        r"(?:FAIL|ERROR): (?P<name>\w+ \([\w.<>]+\))",  # unittest
        r"not ok \d+ - (?P<name>.+)",  # TAP
        r"[✖✕×✗] (?P<name>.+?)(?: \(?[\d.]+ ?m?s\)?)?$",  # Node, Jest, Vitest
        r"(?:FAIL|❯) +(?P<name>\S+\.[cm]?[jt]sx?(?: >.+)?)(?: \(.*\))?",  # Jest and Vitest: files
        r"--- FAIL: (?P<name>\S+) \(.*\)",  # Go
        r"test (?P<name>\S+) \.\.\. FAILED",  # Cargo
    )
)
_COUNTED = r"\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|deselected|warnings?)"
_COUNTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"=* ?(?P<line>(?:{_COUNTED}(?:, )?)+) in [\d.:]+s?.*",  # pytest
        r"Tests:? +(?P<line>\d+ .+)",  # Jest and Vitest
        r"test result: \w+\. (?P<line>\d+ passed; \d+ failed).*",  # Cargo
    )
)
_NODE = re.compile(r"[#ℹ] (?P<what>pass|fail|cancelled) (?P<count>\d{1,9})")
_MOCHA = re.compile(r"(?P<count>\d{1,9}) (?P<what>passing|failing)\b.*")
_UNITTEST = re.compile(r"Ran (?P<count>\d{1,9}) tests? in .*")
_UNITTEST_END = re.compile(r"FAILED \((?P<line>[\w= ,]+)\)|OK(?: \(.*\))?")
_PASSED = re.compile(r"(\d{1,9}) passed")
_FAILED = re.compile(r"(\d{1,9}) (?:failed|errors?)\b")
_IN_BRACKETS = re.compile(r"(?:failures|errors)=(\d{1,9})")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,30}[A-Za-z]")
_VARYING = (
    re.compile(r"0x[0-9a-fA-F]{4,16}"),
    re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?"),
    re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"),
    re.compile(r"\b\d{1,9}(?:\.\d{1,9})? ?(?:ms|s|sec|seconds|µs|us|ns)\b"),
    re.compile(r"(?<=_ms )\d{1,9}(?:\.\d{1,9})?|(?<=_ms: )\d{1,9}(?:\.\d{1,9})?"),
    re.compile(r"/(?:tmp|var/folders|private/tmp)/[^\s'\":,)]{1,300}"),
    re.compile(r"(?<=pid )\d{1,9}|(?<=pid=)\d{1,9}|(?<=127\.0\.0\.1:)\d{1,5}|(?<=localhost:)\d{1,5}"),
)


class TestCounts(Record):
    """The counts of a test run. `passed` and `failed` are None if the output has none."""

    passed: int | None = None
    failed: int | None = None
    names: tuple[str, ...] = ()
    """The failed tests, or files, sorted."""

    @property
    def is_empty(self) -> bool:
        """Whether the run reports that it ran no tests."""
        return self.passed == 0 and not self.failed and not self.names


def counts_of(output: str) -> TestCounts:
    """The counts in the output of a test runner: pytest, unittest, Node, Jest, Vitest, Mocha, Go, Cargo."""
    passed: int | None = None
    failed: int | None = None
    names: set[str] = set()
    ran: int | None = None
    for line in _lines(output):
        if len(names) < _NAMES:
            names.update(_name_in(line))
        if found := _UNITTEST.fullmatch(line):
            ran = int(found["count"])
        elif ran is not None and (found := _UNITTEST_END.fullmatch(line)):
            bad = sum(map(int, _IN_BRACKETS.findall(found["line"] or "")))
            passed, failed, ran = (passed or 0) + max(0, ran - bad), (failed or 0) + bad, None
        elif (found := _NODE.fullmatch(line)) or (found := _MOCHA.fullmatch(line)):
            if found["what"].startswith("pass"):
                passed = (passed or 0) + int(found["count"])
            else:
                failed = (failed or 0) + int(found["count"])
        elif text := next((found["line"] for pattern in _COUNTS if (found := pattern.fullmatch(line))), ""):
            passed = (passed or 0) + sum(map(int, _PASSED.findall(text)))
            failed = (failed or 0) + sum(map(int, _FAILED.findall(text)))
    if "no tests ran" in output[-_LINE:] or "Ran 0 tests" in output[-_LINE:]:
        passed = passed or 0
    return TestCounts(passed=passed, failed=failed, names=tuple(sorted(names)))


def fingerprint(command: str, exit_code: int | None, output: str) -> str:
    """A fingerprint that is equal for the same failure at any time and place.

    Times, memory addresses, temporary files, ports and process ids are ignored. If tests are named, only they
    and the lines with errors count, so that other warnings do not change the fingerprint.
    """
    lines = [_settled(line) for line in _lines(output)]
    names = counts_of(output).names
    telling = [line for line in lines if re.match(r"E  |.{0,80}(?:Error|Exception|error)\b", line)] if names else lines
    said = "\n".join((command, str(exit_code), *names, *telling[-_NAMES:]))
    return sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


def _settled(line: str) -> str:
    for pattern in _VARYING:
        line = pattern.sub("#", line)
    return line


def _lines(output: str) -> Iterator[str]:
    half = _READ // 2
    text = output if len(output) <= _READ else f"{output[:half]}\n{output[-half:]}"
    for line in _ESCAPES.sub("", text).splitlines():
        if line := line.strip()[:_LINE]:
            yield line


def _name_in(line: str) -> Iterator[str]:
    for pattern in _NAMED:
        if found := pattern.match(line):
            yield found["name"].partition(" - ")[0].strip()
            return
