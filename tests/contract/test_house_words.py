"""Words that only the authors of the project understood: they stay out of messages, help, pages and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("marvin-*/src"))
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
        *(page for name in ("README.md", "CHANGELOG.md") for page in ROOT.glob(f"marvin-*/{name}")),
        *(ROOT / "docs").rglob("*.md"),
    ]
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
    r"\b(None|empty|nothing|unchanged) where\b": "if",
    r"\bwhere (there (is|are) (no|none)|it is (none|missing)|that fails|one works)\b": "if",
    r"\bcome to (its|their) end\b": "finish",
}
"""What must not come back, as a regular expression, and what the field says."""
IN_DOCSTRINGS = WORDS | {
    r"\bwho(m|so)?ever\b": "the caller, the user",
    r"(?i)\bgo(es|ing)? over to\b": "switches to",
    r"\b(is|are|be) told of\b": "is notified, is shown",
    r"\b(is|are|be|was) asked about\b": "needs approval",
    r"\bside by side\b": "in parallel",
    r"\bwhat (waits|lies)\b": "a noun: the queued messages, the files",
    r"(?i)\bgo(es)? on with\b": "continue, resume, switch to",
    r"\bwhere (nobody|somebody) (said|says|is)\b": "by default, in a non-interactive run",
}
"""What must not come back in the docstrings that authors of packs read."""
READ_BY_PACKS = [ROOT / "marvin-core/src/marvin_core" / folder for folder in ("api", "kit")]
VOCABULARY = {"marvin-pipeline/src/marvin_pipeline/review/reading.py"}
"""Modules with lists of the words that models use."""
REWRITTEN = sorted([*SOURCES, ROOT / "benchmarks", ROOT / "scripts"])
STORED = {
    "marvin-core/src/marvin_core/testing/grading/findings.py",
    *(f"marvin-pipeline/src/marvin_pipeline/{name}.py" for name in ("evidence/findings", "progress")),
}
"""Modules that explain the names of fields and the values of stored files, which keep their words."""


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


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """The docstrings below a folder, those of attributes included, each with its place."""
    for path in sorted(folder.rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if place in STORED or not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, str):
                yield f"{place}:{node.lineno}", node.value.value


def found_in(text: str, words: Mapping[str, str] = WORDS) -> list[str]:
    """The house words of a text, each with what the field says."""
    shown = " ".join(text.split())
    return [f"{match[0]!r}: say {better!r}" for word, better in words.items() for match in re.finditer(word, shown)]


@pytest.mark.parametrize("folder", SOURCES, ids=lambda folder: folder.parent.name)
def test_messages_have_no_house_words(folder: Path) -> None:
    texts = list(messages(folder))
    assert texts
    assert [f"{place} {found}" for place, text in texts for found in found_in(text)] == []


@pytest.mark.parametrize("folder", READ_BY_PACKS, ids=lambda folder: folder.name)
def test_docstrings_that_packs_read_have_no_house_words(folder: Path) -> None:
    texts = list(docstrings(folder))
    assert len(texts) > 300
    assert [f"{place} {found}" for place, text in texts for found in found_in(text, IN_DOCSTRINGS)] == []


@pytest.mark.parametrize("folder", REWRITTEN, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_docstrings_have_no_house_words(folder: Path) -> None:
    texts = list(docstrings(folder))
    assert texts
    assert [f"{place} {found}" for place, text in texts for found in found_in(text)] == []


def test_pages_have_no_house_words() -> None:
    assert len(PAGES) > 50
    assert [f"{page.relative_to(ROOT)} {found}" for page in PAGES for found in found_in(page.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text", ["It goes on with the next.", "notes.md is no file", "This call was taken\nback.", "None where that fails."]
)
def test_a_house_word_would_be_found(text: str) -> None:
    assert found_in(text)


@pytest.mark.parametrize("text", ["Go over to another mode.", "Which tools are asked\nabout.", "Run side by side."])
def test_a_house_word_of_docstrings_would_be_found(text: str) -> None:
    assert found_in(text, IN_DOCSTRINGS)


@pytest.mark.parametrize("text", ["There is no file of that name.", "Go on with the tests.", "recommended"])
def test_ordinary_english_passes(text: str) -> None:
    assert not found_in(text)
