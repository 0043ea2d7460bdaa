"""Findings that say the same in other words."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.review.findings import Finding
from marvin_pipeline.review.similarity import say_the_same
from tests.support.examples import examples

PAIRS = tomllib.loads((Path(__file__).parent / "same_claims.toml").read_text(encoding="utf-8"))
words = st.text(max_size=300)


def _finding(claim: str, evidence: str = "", file: str = ".marvin/spec.md") -> Finding:
    return Finding(severity="high", claim=claim, evidence=evidence, file=file)


def _pair(pair: dict[str, str]) -> tuple[Finding, Finding]:
    evidence = pair.get("evidence", "")
    return _finding(pair["one"], evidence), _finding(pair["other"], evidence)


@pytest.mark.parametrize("pair", PAIRS["same"], ids=lambda pair: pair["one"][:40])
def test_other_words_for_the_same(pair: dict[str, str]) -> None:
    one, other = _pair(pair)
    assert say_the_same(one, other)
    assert say_the_same(other, one)


@pytest.mark.parametrize("pair", PAIRS["other"], ids=lambda pair: pair["one"][:40])
def test_near_words_for_something_else(pair: dict[str, str]) -> None:
    one, other = _pair(pair)
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)


def test_another_file_is_another_finding() -> None:
    claim = "The file is opened and never closed."
    assert not say_the_same(_finding(claim, file="src/a.py:3"), _finding(claim, file="src/b.py:3"))
    assert say_the_same(_finding(claim, file="src/a.py:3"), _finding(claim, file="a.py, line 40"))
    assert say_the_same(_finding(claim, file="src/a.py:3"), _finding(claim, file=""))


def test_lines_move_and_are_no_difference() -> None:
    assert say_the_same(
        _finding("The variable total in line 12 is never reset."),
        _finding("The variable total in line 40 is never reset."),
    )


@given(one=words, other=words)
@examples(100)
def test_it_does_not_matter_which_comes_first(one: str, other: str) -> None:
    assert say_the_same(_finding(one), _finding(other)) == say_the_same(_finding(other), _finding(one))
    assert say_the_same(_finding(one), _finding(one))


def test_huge_claims_take_no_time() -> None:
    """Only so much of a claim is compared."""
    begun = time.process_time()
    for word in ("a ", "ab1 ", "登", "e\u0301", "x" * 50 + " ", "1"):
        assert say_the_same(_finding(word * 500_000), _finding(word * 500_000))
    assert time.process_time() - begun < 30
