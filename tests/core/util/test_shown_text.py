"""Tables, pictures and links as lines of text: aligned whatever the script, bounded, safe for a terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from marvin_core.api.events import ToolExecutionUpdate
from marvin_core.api.messages import Cell, Link, Picture, Shown, Table
from marvin_core.util.shown import ProgressLines, bar, cell_text, columns_of, shown_lines
from tests.support.examples import examples

EVIL = "\x1b]0;title\x07\x1b[31mred\x1b[0m\nnext\u202e"


def test_a_table_is_aligned_with_wide_characters_and_numbers_to_the_right() -> None:
    table = Table(
        columns=("name", "size", "ok"),
        rows=[("日本", 7, True), ("e\u0301", 1234.5, False), ("plain", None)],
        title="Files",
    )
    assert shown_lines([table]) == [
        "Files",
        "name     size  ok",
        "-----  ------  ---",
        "日本        7  yes",
        "e\u0301      1234.5  no",
        "plain",
    ]


def test_what_is_too_wide_is_folded_within_its_cell() -> None:
    table = Table(
        columns=("name", "what it says"), rows=[("a.py", "several words, which fold behind spaces"), ("b", 7)]
    )
    assert shown_lines([table], 26) == [
        "name  what it says",
        "----  --------------------",
        "a.py  several words, which",
        "      fold behind spaces",
        "b     7",
    ]
    (line, more) = shown_lines([Table(columns=("",), rows=[("日" * 16,)])], 20)
    assert (line, more) == ("日" * 10, "日" * 6)


def test_columns_without_room_are_listed_row_by_row() -> None:
    table = Table(columns=("first", "second", "third", "fourth"), rows=[("word " * 3,) * 4, ("a", "", None, "d" * 30)])
    assert shown_lines([table], 26) == [
        "first: word word word",
        "second: word word word",
        "third: word word word",
        "fourth: word word word",
        "",
        "first: a",
        "fourth:",
        "d" * 26,
        "d" * 4,
    ]


def test_what_is_too_long_is_counted() -> None:
    table = Table(columns=("a", "b"), rows=[("x" * 100, "日" * 100)] * 60, omitted=5)
    lines = shown_lines([table], 41)
    assert lines[-1] == "… 41 more rows"
    assert len(lines) < 310
    assert len(shown_lines([Table(columns=("a",), rows=[("x",)] * 60)])) == 2 + 50 + 1
    assert len(shown_lines([Table(columns=("a",), rows=[("x",)] * 60)], rows=2)) == 5
    assert shown_lines([Table(columns=("a",), rows=[("x" * 600,)])], 700)[-1] == "x" * 500 + "…"


def test_no_terminal_sequence_and_no_line_break_gets_through() -> None:
    shown: list[Shown] = [
        Table(columns=(EVIL,), rows=[(EVIL,)], title=EVIL),
        Link(url=EVIL, text="t"),
        Picture(path=EVIL, alt=EVIL),
    ]
    assert shown_lines(shown) == [
        "red next", "red next", "--------", "red next", "t: red next", "[picture: red next, red next]",
    ]  # fmt: skip


def test_pictures_and_links_say_what_is_known() -> None:
    assert shown_lines([Picture(path="/a/plot.png", alt="A plot", media_type="image/png", size=12_345)]) == [
        "[picture: A plot, /a/plot.png, image/png, 12.3 KB]"
    ]
    small, large = Picture(path="", size=900), Picture(path="p", size=2_000_000)
    assert shown_lines([small, large, Link(url="https://a.example")]) == [
        "[picture: 900 bytes]", "[picture: p, 2.0 MB]", "https://a.example",
    ]  # fmt: skip


def test_a_table_of_any_shape_is_drawn() -> None:
    assert shown_lines([Table(columns=(), rows=())]) == []
    assert shown_lines([Table(columns="abcdef", rows=())], 7) == ["a  b  c", "-  -  -", "… 3 more columns"]
    assert shown_lines([Table(columns=(), rows=[(), (1, 2)])]) == ["", "1  2"]
    assert shown_lines([Table(columns=("a", "b"), rows=())]) == ["a  b", "-  -"]


CELLS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.just(EVIL))


@examples(200)
@given(
    columns=st.lists(st.text(max_size=12), max_size=5),
    rows=st.lists(st.lists(CELLS, max_size=6), max_size=6),
    width=st.integers(min_value=30, max_value=120),
)
def test_no_line_is_wider_than_the_screen_or_steers_it(columns: list[str], rows: list[list[Cell]], width: int) -> None:
    for line in shown_lines([Table(columns=columns, rows=rows)], width, get_cwidth):
        assert get_cwidth(line) <= width
        assert line.isprintable()


@examples(200)
@given(rows=st.lists(st.lists(st.text(max_size=60), max_size=4), max_size=4), width=st.integers(30, 120))
def test_no_character_of_a_cell_is_lost(rows: list[list[str]], width: int) -> None:
    def visible(texts: Iterable[str]) -> Counter[str]:
        return Counter("".join("".join(texts).split()))

    cells = [cell_text(cell) for row in rows for cell in row]
    assert visible(shown_lines([Table(columns=(), rows=rows)], width, get_cwidth)) == visible(cells)


@examples(200)
@given(st.text(st.characters(exclude_categories=["Cs", "Cn", "Co", "Cc"]), max_size=3))
def test_columns_are_counted_as_terminals_draw_them(text: str) -> None:
    assert columns_of(text) >= 0
    if text.isascii():
        assert columns_of(text) == len(text)


def test_a_huge_table_is_drawn_at_once() -> None:
    table = Table(columns=("a",) * 10_000, rows=[("x" * 100_000,) * 1_000] * 1_000)
    begin = time.monotonic()
    shown_lines([table])
    assert time.monotonic() - begin < 30


def test_how_far_a_call_is() -> None:
    assert [bar(share) for share in (0, 0.25, 0.999, 1)] == [
        "[..........] 0 %", "[##........] 25 %", "[#########.] 99 %", "[##########] 100 %",
    ]  # fmt: skip


def test_lines_of_progress_do_not_flood() -> None:
    def report(call: str, done: int) -> ToolExecutionUpdate:
        return ToolExecutionUpdate(call_id=call, name="fetch", text=f"at {done}\x1b[2J", done=done, total=1_000)

    rare, often = ProgressLines(1_000), ProgressLines(0)
    assert [rare.line(report("1", done)) for done in range(1_000)] == ["fetch: at 0 (0 %)"] + [""] * 999
    assert rare.line(report("2", 500)) == "fetch: at 500 (50 %)"
    rare.ended("1")
    assert rare.line(report("1", 7)) == "fetch: at 7 (0 %)"
    assert all(often.line(report("1", done)) for done in range(10))
