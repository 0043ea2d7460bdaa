"""What the chats make of texts: rows that fit, tool lines, what is drawn again and again."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from marvin_core.api.events import CallOrigin, ToolExecutionEnd, ToolExecutionStart
from marvin_core.api.messages import Table
from marvin_core.ui.drawing.inline import folded
from marvin_core.ui.drawing.transcript import Line, rows_of
from marvin_core.ui.plain.terminal_quirks import folds, steady
from marvin_core.ui.plain.typed_rows import echoed
from marvin_core.ui.rendering import (
    bounded_output,
    call_line,
    clean,
    outcome_line,
    shortened,
    wrapped,
)
from marvin_core.util.shown import table_lines
from tests.support.examples import examples


def test_nothing_steers_the_terminal() -> None:
    assert clean("a\x1b[2Jb\x1b]0;title\x07c\rd\x07\u202ee\n") == "abcde\n"
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", clean("".join(map(chr, range(0x3000))))) is None


def end(text: str, *, origin: CallOrigin = "model", is_error: bool = False, diff: object = None) -> ToolExecutionEnd:
    return ToolExecutionEnd(
        call_id="1", name="edit", text=text, is_error=is_error, elapsed=1.25, details={"diff": diff}, origin=origin
    )


def test_tool_lines() -> None:
    start = ToolExecutionStart(call_id="1", name="edit", arguments={"path": "a.txt", "text": "x" * 500})
    assert call_line(start).startswith("  🔧 edit(path='a.txt', text='xxx")
    assert len(call_line(start)) < 150
    assert call_line(start).endswith("x…)"), "what is cut is marked"
    several = start.replace(arguments={"path": "a.txt", "text": "one\ntwo\n\nthree\n"})
    assert call_line(several) == "  🔧 edit(path='a.txt', text='one'… (4 lines))", "the difference has them all"
    assert outcome_line(end("Changed.\nmore")) == "     done in 1.2 s: Changed."
    assert outcome_line(end("Error: no", is_error=True)) == "     failed in 1.2 s: Error: no"
    refused = end("Error: edit was not run: the mode is readonly.", is_error=True)
    assert outcome_line(refused) == "     not run: the mode is readonly."
    assert outcome_line(refused.replace(origin="person")) == "     not run"
    origins: tuple[CallOrigin, ...] = ("person", "router")
    for origin in origins:
        assert outcome_line(end("shown below anyway", origin=origin)) == "     done in 1.2 s"


def test_further_rows_hang_below_the_text_of_their_line() -> None:
    assert wrapped("  /name  what it does here", 18, len) == "  /name  what it\n         does here"
    assert wrapped("- one two three", 9, len) == "- one two\n  three"
    assert wrapped("  /a_long_name_of_it  what it does", 24, len) == "  /a_long_name_of_it\n      what it does"
    assert wrapped("one two", 20, len) == "one two"


def test_a_very_long_line_is_broken_in_a_moment() -> None:
    """A model may give any text, and any number of arguments; what holds the event loop holds the keys as well."""
    begun = process_time()
    assert len(wrapped("words of it " * 20_000, 80, get_cwidth).split("\n")) > 1_000
    assert wrapped("a" + "\u0301" * 200_000, 80, get_cwidth).count("\n") == 0
    many = ToolExecutionStart(call_id="1", name="edit", arguments={f"name{number}": "x" for number in range(50_000)})
    assert call_line(many).endswith(", …)")
    assert process_time() - begun < 3.0


def test_long_outputs_keep_their_first_and_last_lines() -> None:
    text = "\n".join(map(str, range(10)))
    assert bounded_output(text, 10) == text
    assert bounded_output(text, 4).split("\n")[:2] == ["0", "1"]
    assert bounded_output(text, 4).split("\n")[3:] == ["8", "9"]
    assert "6 lines are left out" in bounded_output(text, 4)


@given(st.text(alphabet="ab 漢", max_size=60), st.integers(10, 30))
def test_a_shortened_text_is_one_row(text: str, width: int) -> None:
    assert get_cwidth(shortened(text, width, get_cwidth)) <= width
    assert (shortened(text, width, get_cwidth) == text) == (get_cwidth(text) <= width)


@given(st.text(alphabet="ab 漢\u0301\u200d👨\n", max_size=60), st.integers(10, 30))
def test_wrapped_text_keeps_its_words_and_fits(text: str, width: int) -> None:
    rows = wrapped(text, width, get_cwidth).split("\n")
    assert "".join("".join(rows).split()) == "".join(text.split())
    assert all(get_cwidth(row) <= width for row in rows if "\u200d" not in row)


@given(st.lists(st.sampled_from([0, 1, 1, 1, 2]), max_size=60), st.integers(10, 30))
def test_a_row_is_folded_as_often_as_a_terminal_does(widths: list[int], columns: int) -> None:
    """No character is cut in two; a row that fits is not folded."""
    count = folds(widths, columns)
    assert count * columns + columns >= sum(widths)
    assert (count == 0) == (sum(widths) <= columns)
    assert count <= max(0, (sum(widths) - 1) // (columns - 1))


def test_what_is_drawn_again_and_again_has_one_width_everywhere() -> None:
    typed = "👨\u200d👩 🇫🇷 👍🏽 ❤\ufe0f 漢字 שלום"
    assert steady(typed) == "👨\u200c👩 ＦＲ 👍\u3000 ❤\u200c 漢字 שלום"
    assert len(steady(typed)) == len(typed)


FAMILY, FLAG, THUMB, ACCENT = "👨\u200d👩\u200d👧", "🇫🇷", "👍🏽", "e\u0301"


@pytest.mark.parametrize("joined", [FAMILY, FLAG, THUMB, ACCENT])
@pytest.mark.parametrize("width", range(2, 12))
def test_what_is_drawn_as_one_is_not_torn(joined: str, width: int) -> None:
    """In rows of a table, of the pager, of Marvin's own texts; where there is room for it at all."""
    text = joined * 9
    cells = ["".join(part for _, part in row) for row in folded([((), text)], width, get_cwidth)]
    paged = [row.text for row in rows_of([Line(None, text)], width, get_cwidth)]
    broken = wrapped(text, width, get_cwidth).split("\n")
    for rows in (cells, paged, broken):
        assert "".join(rows) == text
        if get_cwidth(joined) <= width:
            assert all(row == joined * (len(row) // len(joined)) for row in rows), rows


@examples(50)
@given(st.text(alphabet=f"a {FAMILY}{FLAG}{THUMB}{ACCENT}", max_size=200), st.integers(1, 20))
def test_no_mark_is_lost_wherever_rows_end(text: str, width: int) -> None:
    paged = "".join(row.text for row in rows_of([Line(None, text)], width, get_cwidth))
    assert paged.replace(" ", "") == text.replace(" ", "")
    cells = folded([((), text)], width, get_cwidth)
    assert "".join(part for row in cells for _, part in row).replace(" ", "") == text.replace(" ", "")


def test_endless_marks_are_folded_in_a_moment() -> None:
    begun = process_time()
    for endless in ("👨\u200d" * 20_000, "🇫" * 40_000, "a" + "\u0301" * 40_000 + "b" * 200):
        rows_of([Line(None, endless)], 20, get_cwidth)
        folded([((), endless[:4_000])], 20, get_cwidth)  # what is longer comes in parts
    assert process_time() - begun < 5


def test_one_is_one() -> None:
    assert bounded_output("\n".join("abc"), 2).split("\n")[1].startswith("… 1 line is left out here")
    assert echoed("\n".join(map(str, range(21))), "> ").endswith("… 1 more line")
    one = Table(columns=("n",), rows=((1,),), omitted=1)
    assert table_lines(one)[-1] == "… 1 more row"
