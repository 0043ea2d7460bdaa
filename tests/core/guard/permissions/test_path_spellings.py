"""The places that a text may mean, whatever its length."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marvin_core.guard.permissions.path_spellings import meant


@pytest.mark.parametrize("between", ["", "./" * 2_100, "/" * 5_000, "./" * 500_000])
def test_a_link_is_resolved_behind_any_number_of_parts_that_say_nothing(between: str, tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "kept").mkdir()
    os.symlink("kept", root / "link")
    found = meant(f"link/{between}file", root)
    assert found == [str(root / "link" / "file"), str(root / "kept" / "file")]


@pytest.mark.parametrize("text", ["a" * 100_000, "a/" * 100_000, "a\0b", "../" * 100_000, ""])
def test_what_no_system_opens_is_told_at_once(text: str, tmp_path: Path) -> None:
    assert meant(text, tmp_path)[0].startswith("/")
