"""A program that compares tests. The input is hostile, so it runs on its own: in the sandbox, with a timeout.

Standard input is an order as JSON: `before` and `now`, the texts of changed files by path, and
`tests`, the test files that existed. It prints JSON: `weakened`, `replaced`, and `unread`, the files
that could not be compared, with the reason.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .comparing import weakenings
from .files import is_settings, language_of
from .model import TestFile, Unreadable, Weakening
from .reading import read_tests
from .runner_settings import settings_weakened

_MOST = 500
"""Places of each kind in the output at most."""
_LONGEST = 600
"""Characters of a text in the output at most."""


def compare(before: Mapping[str, str], now: Mapping[str, str], tests: Sequence[str]) -> dict[str, Any]:
    """The output for an order."""
    old, old_faults = _read(before)
    new, new_faults = _read(now)
    unread = {path: why for path, why in old_faults.items() if path in now} | {
        path: why for path, why in new_faults.items() if path not in old
    }
    comparable = {path: file for path, file in old.items() if path not in new_faults}
    found = weakenings(comparable, new)
    found += [
        Weakening(file=path, line=1, test="", what=f"the tests of this file can no longer be parsed: {why}")
        for path, why in new_faults.items()
        if path in old
    ]
    for path in sorted({*before, *now}):
        if is_settings(path):
            found += settings_weakened(path, before.get(path, ""), now.get(path, ""), tests)
    return {
        "weakened": [_bounded(each.as_dict()) for each in found[:_MOST]],
        "more": max(0, len(found) - _MOST),
        "replaced": [_bounded(each) for each in list(_replaced(old, new))[:_MOST]],
        "unread": [_bounded({"file": path, "why": why}) for path, why in sorted(unread.items())[:_MOST]],
    }


def _read(texts: Mapping[str, str]) -> tuple[dict[str, TestFile], dict[str, str]]:
    """The files that can be parsed, and why the others cannot."""
    found: dict[str, TestFile] = {}
    faults: dict[str, str] = {}
    for path, text in texts.items():
        if is_settings(path) or not language_of(path):
            continue
        try:
            found[path] = read_tests(path, text)
        except Unreadable as error:
            faults[path] = str(error)
    return found, faults


def _replaced(before: Mapping[str, TestFile], now: Mapping[str, TestFile]) -> Iterator[dict[str, Any]]:
    """The new mocks in any file."""
    old = Counter(each.text for file in before.values() for each in file.replacements)
    for path, file in now.items():
        for each in file.replacements:
            if old[each.text]:
                old[each.text] -= 1
            else:
                yield {"file": path, **each.as_dict()}


def _bounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in values.items()}


def main() -> None:
    """Read the order and print the result."""
    order = json.load(sys.stdin)
    json.dump(compare(order["before"], order["now"], order["tests"]), sys.stdout)


if __name__ == "__main__":
    main()
