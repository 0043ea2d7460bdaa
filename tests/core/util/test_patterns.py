"""Patterns against texts of which a part is not known: what may fit, and what fits in any case."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.patterns.texts import FIRM, GAP, GAPS, STAR, Pattern

LITERAL = st.text(alphabet="ab /", max_size=4)
PATTERN = st.lists(st.sampled_from(["a", "b", " ", "/", "*", "?", "[ab]", "[!a]"]), max_size=6).map("".join)


@given(PATTERN, st.lists(LITERAL, min_size=1, max_size=3), LITERAL)
def test_a_gap_fits_where_some_text_does_and_is_covered_where_every_text_is(
    pattern: str, pieces: list[str], filling: str
) -> None:
    found, line = Pattern(pattern), GAP.join(pieces)
    if found.fits(filling.join(pieces)):
        assert found.may_fit(line)
    if found.covers(line):
        assert found.fits(filling.join(pieces))


@given(PATTERN, LITERAL)
def test_without_gaps_it_is_the_pattern_that_everybody_knows(pattern: str, text: str) -> None:
    assert Pattern(pattern).fits(text) is (
        fnmatchcase(text, pattern) or (pattern.endswith(" *") and len(pattern) > 2 and fnmatchcase(text, pattern[:-2]))
    )


@pytest.mark.parametrize(
    ("pattern", "line", "may", "covers"),
    [
        ("git *", "git", True, True),
        ("git *", f"git {GAPS}", True, True),
        ("git push*", f"git {GAPS}", True, False),
        ("git push*", f"ls {GAPS}", False, False),
        ("git *", f"git log {FIRM['>']} f", True, False),
        ("git * > *", f"git log {FIRM['>']} f", True, True),
        ("cat .env", f"cat .e{STAR}", True, False),
        ("a?c", f"a{GAP}c", True, False),
        ("a*", "a" * 10_000 + GAP, True, False),
    ],
)
def test_gaps_and_signs_of_the_shell(pattern: str, line: str, may: bool, covers: bool) -> None:
    assert Pattern(pattern).may_fit(line) is may
    assert Pattern(pattern).covers(line) is covers
