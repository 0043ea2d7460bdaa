"""Differences as editors take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.acp.differences import Difference, differences
from marvin_core.kit.files.diffs import unified_diff

ROOT = Path("/project")


def test_each_change_of_a_file_stands_alone_with_its_line() -> None:
    lines = [f"line {number}" for number in range(1, 41)]
    changed = [*lines]
    changed[4], changed[34] = "five", "thirty-five"
    diff = unified_diff("a/b.py", "\n".join(lines) + "\n", "\n".join(changed) + "\n")
    first, second = differences(diff, ROOT)
    assert (first.path, first.line, second.line) == ("/project/a/b.py", 2, 32)
    assert first.old is not None
    assert "line 5\n" in first.old
    assert "five\n" in first.new
    assert "thirty-five\n" in second.new


@pytest.mark.parametrize("content", ["one\ntwo\n", "no newline at the end"])
def test_a_new_file_has_no_text_before(content: str) -> None:
    found = differences(unified_diff("new", "", content), ROOT)
    assert found == [Difference(path="/project/new", old=None, new=content)]


@pytest.mark.parametrize("text", ["", "\n", "no difference", "--- a/x\n+++ b/x\n", "Binary files a and b differ\n"])
def test_what_is_no_difference_gives_none(text: str) -> None:
    assert differences(text, ROOT) == []
