"""Answers on the screen: what is drawn of them, that no text is lost, and that it matters not how they came in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from marvin_core.ui.drawing.answer import RULE, Answer
from marvin_core.ui.drawing.blocks import LONG, LONG_TABLE, PART
from marvin_core.ui.rendering import Paint
from tests.support.examples import examples

PIECES = [
    *(
        "word ",
        "**bold** ",
        "*it ",
        "`code` ",
        "漢字 ",
        "👨\u200d👩 ",
        "\\",
        "[t](http://a.b) ",
        "<http://x.y> ",
        "&amp; ",
    ),
    *("\n", "\n\n", "- ", "  1. ", "> ", "# ", "```", "```py\n", "---\n", "===\n", "    "),
    *("| a | b |\n|---|--:|\n", "| 1 | 2 |\n"),
]


def plain(text: str) -> str:
    """The text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def drawn(text: str, width: int = 80, *, color: bool = True, piece: int = 0, raw: bool = False) -> list[str]:
    """The rows of an answer that comes in pieces."""
    answer = Answer(Paint(color), get_cwidth, lambda: raw)
    rows: list[str] = []
    for start in range(0, len(text), piece or max(1, len(text))):
        rows += answer.feed(text[start : start + (piece or len(text))], width)
        answer.open_rows(width, 5)
    return rows + answer.end(width)


def shown(text: str, width: int = 80) -> list[str]:
    """The rows, without their colours."""
    return list(map(plain, drawn(text, width)))


def test_words_are_drawn_without_their_signs() -> None:
    (row,) = drawn("Some **bold *both*** and `co*de` ~~gone~~.")
    assert row == ("Some \x1b[1mbold \x1b[0m\x1b[1;3mboth\x1b[0m and \x1b[36mco*de\x1b[0m \x1b[9mgone\x1b[0m.")
    assert shown("2 * 3 * 4, a_b_c, \\*not\\*") == ["2 * 3 * 4, a_b_c, *not*"]


def test_without_colours_the_signs_say_what_is_meant() -> None:
    text = "# Title\nSome **bold** and `code`.\n\n- one"
    assert drawn(text, color=False) == text.split("\n")


def test_a_paragraph_is_one_row_however_long_so_that_the_terminal_breaks_and_copies_it() -> None:
    text = "several words " * 40
    assert shown(text, 40) == [text.rstrip()]
    assert shown("one\ntwo\n\nthree") == ["one", "two", "", "three"], "lines that were typed as lines stay lines"


def test_a_link_says_where_it_leads() -> None:
    assert shown("See [the docs](https://a.example/x).") == ["See the docs (https://a.example/x)."]
    assert shown("[https://bank.example](https://evil.example)") == ["https://bank.example (https://evil.example)"]
    assert shown("<https://a.example>") == ["https://a.example"]
    assert shown("![a cat](cat.png)") == ["[picture: a cat, cat.png]"]


def test_items_quotes_headings_and_rules() -> None:
    assert shown("- one\n  more\n  - two\n10. ten\n") == ["- one", "  more", "  - two", "10. ten"]
    assert shown("> said\n> by **her**\n") == ["│ said", "│ by her"]
    assert shown("## Big\nText\n===\n***\n") == ["Big", "Text", RULE]
    assert drawn("# Big\n")[0].startswith("\x1b[1;4mBig")


def test_code_is_what_was_typed_in_colours() -> None:
    code = 'def f(x):\n    """Doc\n    more"""\n    return x  # it\n\n\nclass A: pass'
    rows = drawn(f"```python\n{code}\n```\n")
    assert list(map(plain, rows)) == ["─── python", *code.split("\n"), "───"]
    assert rows[1].startswith("\x1b[35mdef\x1b[0m")
    assert rows[3].startswith("\x1b[32m    more"), "inside of a string that began before"
    assert list(map(plain, drawn("- a\n  ```\n  x\n    y\n  ```"))) == ["- a", "───", "x", "  y", "───"]


def test_a_table_is_aligned_and_folded_within_its_cells() -> None:
    table = "| Name | Count |\n|---|--:|\n| a | 1,000 |\n| `x\\|y` **b** | 2 |\n"
    assert shown(table) == ["Name   Count", "─────  ─────", "a      1,000", "x|y b      2"]
    narrow = shown("| Name | The description |\n|---|---|\n| a | some words that are too long |\n", 24)
    assert narrow == [
        "Name  The description",
        "────  ──────────────────",
        "a     some words that",
        "      are too long",
    ]
    assert shown("|漢字|b|\n|-|-|\n|c|d|\n") == ["漢字  b", "────  ─", "c     d"]


def test_a_table_without_room_stays_as_it_was_typed() -> None:
    heads = "|" + "|".join(f"column {number}" for number in range(20)) + "|"
    table = f"{heads}\n|{'---|' * 20}\n"
    assert shown(table, 40) == table.rstrip("\n").split("\n")


def test_nothing_stands_behind_a_row() -> None:
    text = "| a | b |\n|---|---|\n| cc |  |\n| d | long cell |\n\n# H\n- x\n\n```py\nx = 1\n```\ntext"
    assert not [row for row in shown(text) if row.endswith(" ")]


def test_blocks_that_are_very_long_are_written_before_they_end() -> None:
    """Nothing is held back without a bound; a table with more rows than anybody sees is no longer aligned."""
    answer = Answer(Paint(False), get_cwidth, lambda: False)
    assert len(answer.feed("a line\n" * (PART + 1), 80)) == PART
    answer.end(80)
    assert len(answer.feed("```\n" + "code\n" * (PART + 1), 80)) == PART + 1
    answer.end(80)
    rows = answer.feed("x" * (LONG * 3), 80)
    assert len(rows) >= 1
    answer.end(80)
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * (LONG_TABLE + 50)
    assert [*answer.feed(table, 80), *answer.end(80)] == table.rstrip("\n").split("\n")


def test_what_is_written_in_between_does_not_end_code() -> None:
    answer = Answer(Paint(False), get_cwidth, lambda: False)
    assert answer.feed("```py\nx = 1\ny =", 80) == []
    assert answer.pause(80) == ["─── py", "x = 1"]
    assert answer.feed(" 2\n# no title\n```\nText *he", 80) == ["y = 2", "# no title", "───"]
    assert answer.pause(80) == ["Text *he"]
    assert [*answer.feed("re*\n", 80), *answer.end(80)] == ["re*"]


def test_raw_is_what_was_typed() -> None:
    text = "# T\n**b** | x |\n\n- [a](b)\n```py\nx\n```\n"
    assert drawn(text, raw=True) == text.rstrip("\n").split("\n")


@pytest.mark.parametrize("block", ["text", "# head", "- item", "> quote"])
def test_the_mark_stands_before_the_first_words_only(block: str) -> None:
    answer = Answer(Paint(False), get_cwidth, lambda: False)
    answer.mark = "■"
    rows = [*answer.feed(f"\n{block}\n\n", 80), *answer.feed("more\n", 80), *answer.end(80)]
    assert rows[0].startswith("■ ")
    assert sum("■" in row for row in rows) == 1


def test_the_mark_stands_above_code_and_tables() -> None:
    for block in ("```\nx\n```\n", "|a|b|\n|-|-|\n"):
        answer = Answer(Paint(False), get_cwidth, lambda: False)
        answer.mark = "■"
        assert [*answer.feed(block, 80), *answer.end(80)][0] == "■"


@examples(120)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(10, 90), st.integers(1, 9))
def test_how_it_comes_in_makes_no_difference(text: str, width: int, piece: int) -> None:
    assert drawn(text, width, piece=piece) == drawn(text, width)


@examples(120)
@given(st.lists(st.sampled_from(sorted({*PIECES} - {"&amp; "})), max_size=30).map("".join), st.integers(10, 90))
def test_no_word_is_lost(text: str, width: int) -> None:
    """Whatever is drawn of the signs, letters and digits come through, each as often as it was typed."""
    letters = [character for character in text if character.isalnum()]
    seen = [character for row in shown(text, width) for character in row if character.isalnum()]
    assert sorted(seen) == sorted(letters)


@examples(100)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=20).map("".join))
def test_nothing_steers_the_terminal(text: str) -> None:
    rows = "\n".join(drawn(text, 40))
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain(rows)) is None


@pytest.mark.parametrize(
    "attack",
    [
        "&#27;[2J", "&#x1b;]0;t&#7;", "<http://a/%1b[2J>", "[a](http://x/%1b%5d0;t%07)", "![\x1b]0;t\x07](x)",
        "`\x1b[2J`", "| \x1b[2J |&#x9b;2J|\n|-|-|\n|&#13;x|&#x202e;|\n", "```\x1b]0;t\x07\n\x1b[2J\x9b2J\n```",
        "```python\n'\x1b[2J\x85'\n```", "# \x1b[?1049h\n", "> \x1b[31m\n", "- \u202eabc\n", "&#10;&#13;&#9;",
    ],
)  # fmt: skip
def test_attacks_through_every_kind_of_block(attack: str) -> None:
    for piece in (0, 1):
        for raw in (False, True):
            rows = plain("\n".join(drawn(f"{attack}\n", piece=piece, raw=raw)))
            assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rows) is None


@pytest.mark.parametrize(
    "text",
    ["[" * LONG, "*a_" * 1_300, "![[" * 1_300, "`a``b" * 800, "[a](" * 1_000, "<a" * 2_000, "> " * 2_000, "- " * 2_000,
     "|" * LONG + "\n|-|\n", "#  " + " " * 3_000 + "x", "```python\n" + "'" * 450 + "\n" + '"""' * 150 + "\n```"],
)  # fmt: skip
def test_hostile_text_is_drawn_in_a_moment(text: str) -> None:
    """Far below the time-out of the test; what holds the event loop holds the keys as well."""
    from time import process_time

    begun = process_time()
    drawn(text + "\n")
    assert process_time() - begun < 2.0
