"""Words that only the authors of the project understood: they stay out of messages, help and documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("marvin-*/src"))
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("marvin-*/README.md"), *(ROOT / "docs").rglob("*.md")]
)

WORDS = {
    r"\bstrangers?\b": "third-party",
    r"\bpurses?\b": "cost ceiling",
    r"\banew\b": "again, or from the beginning",
    r"\b(goes|gone) on with\b": "continues, continued",
    r"\bmend(s|ed|ing)?\b": "repair, fix",
    r"\b[Nn]obody is there\b": "in a non-interactive run",
    r"\bcannot be had\b": "is not available",
    r"\b(take|takes|taken|took) back\b": "undo",
    r"\b(?<!ere )is no (file|folder|text|number|name|time|job|event|theme|phase|commit)\b": "is not a ...",
    r"\bThere are: ": "Available:",
}
"""What must not come back, as a regular expression, and what the field says."""
VOCABULARY = {"marvin-pipeline/src/marvin_pipeline/review/reading.py"}
"""Modules with lists of the words that models use."""
REWRITTEN = sorted(
    [*(folder for folder in SOURCES if folder.parent.name != "marvin-core"), ROOT / "benchmarks", ROOT / "scripts"]
)
STORED = {f"marvin-pipeline/src/marvin_pipeline/{name}.py" for name in ("evidence/findings", "progress")}
"""Modules that explain the values of stored files, which keep their words."""


def messages(folder: Path) -> Iterator[tuple[str, str]]:
    """The texts of a distribution with three words or more, without docstrings, each with its place."""
    for path in sorted(folder.rglob("*.py")):
        if str(path.relative_to(ROOT)) in VOCABULARY:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in docstrings:
                continue
            if isinstance(node.value, str) and len(node.value.split()) > 2:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def docstrings_in(folder: Path) -> Iterator[tuple[str, str]]:
    """The docstrings below a folder, those of attributes included, each with its place."""
    for path in sorted(folder.rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if place in STORED or not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, str):
                yield f"{place}:{node.lineno}", node.value.value


def found_in(text: str) -> list[str]:
    """The house words of a text, each with what the field says."""
    shown = " ".join(text.split())
    return [f"{match[0]!r}: say {better!r}" for word, better in WORDS.items() for match in re.finditer(word, shown)]


@pytest.mark.parametrize("folder", SOURCES, ids=lambda folder: folder.parent.name)
def test_messages_have_no_house_words(folder: Path) -> None:
    texts = list(messages(folder))
    assert texts
    assert [f"{place} {found}" for place, text in texts for found in found_in(text)] == []


@pytest.mark.parametrize("folder", REWRITTEN, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_docstrings_have_no_house_words(folder: Path) -> None:
    texts = list(docstrings_in(folder))
    assert texts
    assert [f"{place} {found}" for place, text in texts for found in found_in(text)] == []


def test_pages_have_no_house_words() -> None:
    assert len(PAGES) > 50
    assert [f"{page.relative_to(ROOT)} {found}" for page in PAGES for found in found_in(page.read_text("utf-8"))] == []


@pytest.mark.parametrize("text", ["It goes on with the next.", "notes.md is no file", "This call was taken\nback."])
def test_a_house_word_would_be_found(text: str) -> None:
    assert found_in(text)


@pytest.mark.parametrize("text", ["There is no file of that name.", "Go on with the tests.", "recommended"])
def test_ordinary_english_passes(text: str) -> None:
    assert not found_in(text)
