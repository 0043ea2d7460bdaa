"""What the plain chat makes of events: rows of an answer as it streams, tool lines, diffs, completions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from marvin_core.api.events import CallOrigin, ToolExecutionEnd, ToolExecutionStart
from marvin_core.ui.plain.terminal_quirks import folds, steady
from marvin_core.ui.rendering import (
    DIFF_LINES,
    Markdown,
    Paint,
    bounded_output,
    call_line,
    call_rows,
    clean,
    diff_lines,
    outcome_line,
    outcome_rows,
    shortened,
    wrapped,
)


def columns(text: str) -> int:
    """Wide characters take two columns."""
    return sum(2 if "\u2e80" <= character <= "\uffef" or character >= "\U0001f300" else 1 for character in text)


def rows(text: str, width: int, *, color: bool = False, piece: int = 10_000) -> list[str]:
    """The rows of an answer that comes in pieces."""
    markdown = Markdown(Paint(color), columns)
    found: list[str] = []
    for start in range(0, len(text), piece):
        found += markdown.feed(text[start : start + piece], width)
    return found + markdown.end()


def test_prose_is_broken_between_words_and_items_hang() -> None:
    assert rows("one two three four", 10) == ["one two", "three four"]
    assert rows("- one two three", 10) == ["- one two", "  three"]
    assert rows("漢字漢字漢字", 7) == ["漢字漢", "字漢字"]
    assert rows("x" * 12, 10) == ["x" * 10, "xx"]


def test_code_and_tables_are_never_broken() -> None:
    code = "```\n" + "long code " * 9 + "\n```\nword word"
    assert rows(code, 10) == ["```", "long code " * 9, "```", "word word"]
    assert rows("| a | bbbbbbbbbbbb |\n", 10) == ["| a | bbbbbbbbbbbb |"]


@given(st.text(alphabet="ab 漢🐎\n-*`#", max_size=200), st.integers(10, 60), st.integers(1, 9))
def test_pieces_make_no_difference_and_no_text_is_lost(text: str, width: int, piece: int) -> None:
    whole = rows(text, width)
    assert rows(text, width, piece=piece) == whole
    assert re.sub(r"\s", "", "".join(whole)) == re.sub(r"\s", "", text)
    if "```" not in text:
        assert all(columns(row.rstrip()) <= width for row in whole)


def test_colours_leave_the_words_as_they_are() -> None:
    text = "# Title\nSome **bold** and `code`.\n```\nx = 1\n```\n"
    colored = rows(text, 80, color=True)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in colored] == rows(text, 80) == text.splitlines()
    assert colored[0].startswith("\x1b[1m# Title")
    assert "\x1b[36m`code`\x1b[0m" in colored[1]
    assert "\x1b[1m**bold**\x1b[0m" in colored[1]
    assert "\x1b[36mx = 1" in colored[3]


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
    assert outcome_line(end("Changed.\nmore")) == "     done in 1.2 s: Changed."
    assert outcome_line(end("Error: no", is_error=True)) == "     failed in 1.2 s: Error: no"
    refused = end("Error: edit was not run: the mode is readonly.", is_error=True)
    assert outcome_line(refused) == "     not run: the mode is readonly."
    assert outcome_line(refused.replace(origin="person")) == "     not run"
    origins: tuple[CallOrigin, ...] = ("person", "router")
    for origin in origins:
        assert outcome_line(end("shown below anyway", origin=origin)) == "     done in 1.2 s"


def test_tool_lines_in_narrow_windows() -> None:
    """A call is wrapped, its outcome is one row, and what failed is told in full."""
    start = ToolExecutionStart(call_id="1", name="edit", arguments={"path": "a.txt", "text": "several words in it"})
    rows = call_rows(start, 40, get_cwidth).split("\n")
    assert [row.strip() for row in rows] == ["🔧 edit(path='a.txt', text='several", "words in it')"]
    assert rows[1].startswith("     words")
    assert outcome_rows(end("Changed a.txt at line 1."), 38, get_cwidth) == "     done in 1.2 s: Changed a.txt at…"
    failed = outcome_rows(end("Error: there is no such file", is_error=True), 38, get_cwidth)
    assert failed == "     failed in 1.2 s: Error: there is\n     no such file"


def test_further_rows_hang_below_the_text_of_their_line() -> None:
    assert wrapped("  /name  what it does here", 18, len) == "  /name  what it\n         does here"
    assert wrapped("- one two three", 9, len) == "- one two\n  three"
    assert wrapped("  /a_long_name_of_it  what it does", 24, len) == "  /a_long_name_of_it\n      what it does"
    assert wrapped("one two", 20, len) == "one two"


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


def test_diffs_are_coloured_and_cut() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n"
    assert [line.strip() for line in diff_lines({"diff": diff}, Paint(False))] == [s.strip() for s in diff.splitlines()]
    assert "     \x1b[31m-old\x1b[0m" in diff_lines({"diff": diff}, Paint(True))
    long = diff_lines({"diff": "+line\n" * 1_100}, Paint(False))
    assert len(long) == DIFF_LINES + 1
    assert long[-1].strip() == "… 1,060 more lines"
    for nothing in (None, {}, {"diff": ""}, {"diff": 3}):
        assert diff_lines(nothing, Paint(True)) == ()


def test_characters_that_are_drawn_as_one_stay_on_one_row() -> None:
    """A family joined of several people, and a letter with its accent, are never broken at the end of a row."""
    family = "👨\u200d👩\u200d👧"
    markdown = Markdown(Paint(False), get_cwidth)
    rows = markdown.feed(family * 9 + "e\u0301" * 40 + "\n", 20)
    assert "".join(rows) == family * 9 + "e\u0301" * 40
    assert not any(row.startswith(("\u200d", "\u0301", "👩", "👧")) for row in rows)
    assert not any(row.endswith("\u200d") for row in rows)


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
