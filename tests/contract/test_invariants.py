"""The invariants of the design, and the tests that prove them: each id that a test cites exists, and is cited."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

# On one worker, so that the tests are read once.
pytestmark = pytest.mark.xdist_group("citations")

TESTS = Path(__file__).parents[1]
INVARIANTS = {
    "I1": "state never downgrades",
    "I2": "phase reads are never cached",
    "I3": "no write without a ticket in a sub-agent",
    "I4": "paths cannot escape",
    "I5": "no stdout-to-file fallback",
    "I6": "no mocks",
    "I7": "depth is bounded",
    "I8": "GIT_DIR never reaches a child",
    "I9": "large reads are bounded",
    "I10": "tool errors are actionable",
    "I11": "every model call is priced per provider and model",
    "I12": "documents exist and have 1,000 bytes",
    "I13": "busy and done are reset in `finally`",
    "I14": "dispatch never raises",
    "I15": "every call has exactly one output, also after an interrupt",
    "I16": "the backup is written before compaction",
    "I17": "one submission in flight",
    "I18": "chat-log roles are you / assistant / system",
    "I19": "notes go to `.marvin/notes/` in coding mode",
    "I20": "tools get a context, no globals",
    "I21": "the environment is read in `config` only",
    "I22": "a non-interactive run always ends and MARVIN_COST is its last stderr line",
    "I23": "what binds an agent survives compaction",
    "I24": "secrets appear nowhere but in request headers and the children they were handed to",
    "I25": "after a time-out or cancel no descendant is alive",
    "I26": "cut-off arguments never run",
    "I27": "no model string is read as an option",
    "I28": "one listener for all requests of a Copilot session",
    "I29": "after a time-out Copilot gets a new session",
    "I30": "tools give whole results, dispatch cuts them to the window",
    "I31": "a silent model is waited for 180 s, in coding mode 900 s",
    "I32": "standard output ends with one newline and keeps those inside the text",
    "I33": "apply_patch applies a Codex patch",
}
# What this speaks of is not built yet: patches (which are refused with calls that do the same).
LATER = {"I33"}


@cache
def citations() -> dict[str, list[str]]:
    """The tests that cite each id, in their docstrings."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                for cited in re.findall(r"\bI\d+\b", ast.get_docstring(node) or ""):
                    found[cited].append(f"{path.name}::{node.name}")
    return found


@pytest.mark.parametrize("invariant", sorted(INVARIANTS.keys() - LATER))
def test_each_invariant_is_cited_by_a_test(invariant: str) -> None:
    assert invariant in citations(), f"{invariant}: {INVARIANTS[invariant]}"


def test_each_id_that_a_test_cites_exists() -> None:
    assert {cited: tests for cited, tests in citations().items() if cited not in INVARIANTS} == {}


def test_what_comes_later_is_still_to_come() -> None:
    """Who builds one of these takes it off the list."""
    assert LATER & citations().keys() == set()
