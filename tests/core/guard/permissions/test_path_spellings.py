"""The places that a text may mean, whatever its length."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marvin_core.guard.permissions.path_spellings import binding, meant, spellings


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


@pytest.mark.parametrize("text", ["./" * 2_100 + "secret.txt", "a/../" * 2_000 + "secret.txt", "secret.txt\0.png"])
def test_a_rule_that_denies_finds_the_file_behind_what_says_nothing(text: str, tmp_path: Path) -> None:
    """Programs of others may leave it out as well."""
    assert "secret.txt" in spellings(text, tmp_path)


@pytest.mark.parametrize(
    "text", ["docs/" + "./" * 2_100 + "../secret.txt", "docs/../secret.txt\0", "docs/a.txt\0/../b"]
)
def test_a_rule_that_allows_binds_nothing_that_cannot_be_resolved(text: str, tmp_path: Path) -> None:
    assert binding(text, tmp_path) == []


def test_long_texts_are_bound_as_they_are(tmp_path: Path) -> None:
    assert binding("a long text " * 1_000, tmp_path) == ["a long text " * 1_000]
    assert spellings("a long text " * 100_000, tmp_path) == ["a long text " * 100_000]
