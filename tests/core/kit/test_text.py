"""Texts made fit for a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import did_you_mean, head_and_tail, near_names, numbered, one_line, output_text


@given(st.text(), st.integers(2, 50))
def test_a_long_text_keeps_its_head_and_its_tail(text: str, limit: int) -> None:
    shown = head_and_tail(text, limit)
    if len(text) <= limit:
        assert shown == text
        return
    head, note, tail = shown.partition("\n[... ")
    count, _, tail = tail.partition(" characters omitted.]\n")
    assert note
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= limit
    assert len(head) + len(tail) + int(count.replace(",", "")) <= len(text)


def test_it_is_cut_at_ends_of_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    shown = head_and_tail(text, 60, "Ask for a part of it.").splitlines()
    assert shown[:2] == ["line 0", "line 1"]
    assert shown[-1] == "line 999"
    assert any(line.endswith("characters omitted. Ask for a part of it.]") for line in shown)


def test_output_is_without_what_terminals_obey() -> None:
    data = b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07\xff 10%\r20%\r\nend\t\x08x"
    assert output_text(data) == "20%\r\nend\tx"


def test_output_with_a_gap_has_a_note_in_its_middle() -> None:
    assert output_text(b"a\nb" + b"c\nd", 100, "Filter it.") == "a\n[... 103 bytes omitted. Filter it.]\nd"
    assert output_text(b"abcd", 100) == "ab\n[... 100 bytes omitted.]\ncd"


def test_results_are_numbered_as_many_as_fit() -> None:
    results = [f"Title {number}\nhttps://a.example/{number}" for number in range(1, 30)]
    shown = numbered(results, 110, total=500, advice="Ask for fewer.")
    assert shown.startswith("1. Title 1\n   https://a.example/1\n\n2. Title 2\n")
    assert shown.endswith("\n\n[3 of 500 are shown. Ask for fewer.]")
    assert numbered(["a", "b"], 100) == "1. a\n2. b"
    assert numbered([], 100) == ""
    assert numbered(["x" * 50], 10) == "1. xxxxxxx…"
    assert numbered(["a", "b"], 100, total=3) == "1. a\n2. b\n[2 of 3 are shown.]"


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(10, 120))
def test_a_list_is_never_longer_than_its_limit(results: list[str], limit: int) -> None:
    lines = numbered(results, limit)
    listed = lines.rpartition("\n[")[0] if lines.endswith("are shown.]") else lines
    assert len(listed.rstrip()) <= limit + 1


@pytest.mark.parametrize(("asked", "near"), [("kilogrm", "kilogram"), ("KILOGRAM", "kilogram"), ("metre", "meter")])
def test_near_names_are_offered(asked: str, near: str) -> None:
    names = near_names(asked, ["kilogram", "meter", "second"])
    assert names[:1] == [near]
    assert did_you_mean(names).startswith(f"Did you mean '{near}'")


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\tb\u2028c\x1b[2J ", 20) == "a b c"
