"""What of a code base a review is told to look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_pipeline.jobs.focus import focus_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("main.py", "src/a.py", "src/deep/b.py", "src/c.js", "node_modules/d.py", ".hidden/e.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("**/*.py", ["main.py", "src/a.py", "src/deep/b.py"]),
        ("*.js", ["src/c.js"]),
        ("main.py", ["main.py"]),
        ("src/[ab].py", ["src/a.py"]),
    ],
)
def test_a_glob_names_the_files_that_fit(root: Path, pattern: str, names: list[str]) -> None:
    told = focus_text(root, pattern)
    assert [line.strip("- `") for line in told.splitlines() if line.startswith("- ")] == names


@pytest.mark.parametrize("focus", ["all", "backend", "frontend", "tests"])
def test_a_word_says_what_it_means(root: Path, focus: str) -> None:
    assert "fit" not in focus_text(root, focus)


@pytest.mark.parametrize("pattern", ["nothing/*.py", "[", "**", "*" * 200, "../*"])
def test_a_glob_that_fits_nothing_or_is_odd_is_told_all_the_same(root: Path, pattern: str) -> None:
    assert f"`{pattern}`" in focus_text(root, pattern)


def test_very_many_files_are_counted_and_not_all_named(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}.py").write_text("")
    assert focus_text(tmp_path, "*.py").endswith("and 100 more")
