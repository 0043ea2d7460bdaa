"""The page about faults: it has every fault that the engine must survive, and tests that exist prove each row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "reference" / "faults.md"
FAULTS = (
    "provider down before",
    "provider down during",
    "provider down after",
    "429 four times",
    "500",
    "401",
    "HTML body",
    "SSE split at every byte boundary",
    "split, doubled, string-encoded, out of order; two calls with one id",
    "empty answer",
    "only thinking",
    "overflow",
    "clock going backwards",
    "disk full",
    "configuration root read-only",
    "session file torn at every byte",
    "eight agents on one ledger",
    *(
        f"{signal}.* during (the |a )?{moment}"
        for signal in ("SIGINT", "SIGTERM", "SIGKILL")
        for moment in ("model stream", "tool run", "compaction", "save")
    ),
)


def rows() -> list[list[str]]:
    """The cells of each row of the page's tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| Fault |")]


def functions_of(name: str) -> set[str]:
    """The tests of the files of this name, wherever below tests they are."""
    trees = [ast.parse(path.read_text("utf-8")) for path in TESTS.rglob(name)]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_a_row(fault: str) -> None:
    assert [row for row in rows() if re.search(fault, row[0])]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_every_row_is_proven(row: list[str]) -> None:
    fault, seen, kept, tests = row
    assert all((fault, seen, kept))
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", tests)
    assert named
    assert len(named) == tests.count("::")
    assert [f"{file}::{test}" for file, test in named if test not in functions_of(file)] == []
