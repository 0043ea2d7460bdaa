"""What of a code base a review is told to look at."""

from __future__ import annotations

import pytest

from marvin_pipeline.jobs.focus import focus_text

FILES = ("main.py", "src/a.py", "src/deep/b.py", "src/c.js", ".github/x.yml", "a/b/c/d/e/f/g/h/Deep.java")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("**/*.py", ["main.py", "src/a.py", "src/deep/b.py"]),
        ("*.js", ["src/c.js"]),
        ("main.py", ["main.py"]),
        ("src/[ab].py", ["src/a.py"]),
        ("./src/*.js", ["src/c.js"]),
        ("src", ["src/a.py", "src/deep/b.py", "src/c.js"]),
        ("src/deep/", ["src/deep/b.py"]),
        (".github/**", [".github/x.yml"]),
        ("*.java", ["a/b/c/d/e/f/g/h/Deep.java"]),
    ],
)
def test_a_glob_or_a_folder_names_the_files_that_fit(pattern: str, names: list[str]) -> None:
    told = focus_text(FILES, pattern)
    assert [line.strip("- `") for line in told.splitlines() if line.startswith("- ")] == names


@pytest.mark.parametrize("focus", ["all", "backend", "frontend", "tests"])
def test_a_word_says_what_it_means(focus: str) -> None:
    assert "fit" not in focus_text(FILES, focus)


@pytest.mark.parametrize("pattern", ["nothing/*.py", "[", "../*", "srcs"])
def test_a_glob_that_fits_nothing_or_is_odd_is_told_all_the_same(pattern: str) -> None:
    assert f"`{pattern}`" in focus_text(FILES, pattern)


def test_very_many_files_are_counted_and_not_all_named() -> None:
    assert focus_text([f"{number:03}.py" for number in range(300)], "*.py").endswith("and 100 more")
