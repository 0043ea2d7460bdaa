"""The head of a Markdown file."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.yaml.edit import load_mapping
from marvin_core.util.yaml.head import load_head, split_head
from tests.support.yaml_values import UNREADABLE


@pytest.mark.parametrize(
    ("text", "head", "rest"),
    [
        ("---\na: 1\n---\nText.\n", "a: 1\n", "Text.\n"),
        ("\ufeff---\r\na: 1\r\n---\r\nText.", "a: 1\r\n", "Text."),
        ("--- \na: 1\n---\t\n", "a: 1\n", ""),
        ("---\n---\nText.", "", "Text."),
        ("---\na: 1\n", None, "---\na: 1\n"),
        ("----\na: 1\n---\n", None, "----\na: 1\n---\n"),
        ("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n"),
        ("", None, ""),
    ],
)
def test_a_head_stands_between_two_lines_at_the_beginning(text: str, head: str | None, rest: str) -> None:
    assert split_head(text) == (head, rest)


@given(st.text(alphabet="-\n\r: a[]{}&*#'\"|>!%@`1\u2028", max_size=80))
def test_any_head_is_loaded_or_refused_in_one_way(text: str) -> None:
    head, _ = split_head(f"---\n{text}\n---\n")
    with suppress(ValueError):
        assert isinstance(load_head(head or ""), dict)


@pytest.mark.parametrize("value", UNREADABLE)
def test_what_the_library_cannot_read_is_refused(value: str) -> None:
    """One hostile skill does not take away the others."""
    for load in (load_head, load_mapping):
        try:
            load(f"a: {value}\n")
        except ValueError:
            continue
