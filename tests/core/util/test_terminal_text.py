"""Text of strangers never steers the terminal, however it is cut into pieces, and loses nothing else."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marvin_core.util.terminal_text import (
    TerminalFilter,
    disarm,
    exact,
    exact_line,
    json_for_terminals,
    without_sequences,
)
from tests.support.counting import times_called

ARMED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
PIECES = st.sampled_from(
    [
        "\x1b",
        "[",
        "]",
        "P",
        "\\",
        "\x07",
        "\x9b",
        "\x9d",
        "\x9c",
        "0;",
        "31m",
        "m",
        "(",
        "B",
        "\n",
        "\r",
        "\t",
        "é",
        "a b",
    ]
)
HOSTILE = st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain, naïve 漢字 👩‍👩‍👧\n\tindented", "plain, naïve 漢字 👩‍👩‍👧\n\tindented"),
        ("a\x1b[2Jb\x1b[1;31mc\x1b[0m", "abc"),
        ("a\x1b]0;PWNED\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "ablink"),
        ("a\x1bP1$r\x1b\\b\x1b_Gi=1\x1b\\c\x1b^p\x1b\\d", "abcd"),
        ("a\x9b31mb\x9d0;t\x9cc", "abc"),
        ("a\x1b(Bb\x1bMc\x1b7d\x1b=e", "abcde"),
        ("title \x1b]0;never ended\nnext line", "title \nnext line"),
        ("cut \x1b[31\nnext", "cut \nnext"),
        ("50%\r100%", "50%100%"),
        ("a\r\nb\r\r\nc\r", "a\r\nb\r\nc"),
        ("a\x00\x08\x7f\u202eb\u2066c", "abc"),
        ("\x1b\x1b[31mred", "red"),
        ("half \ud83d", "half \ud83d"),
    ],
)
def test_sequences_go_and_the_text_stays(text: str, left: str) -> None:
    assert disarm(text) == left


@example(["\x1b(", "[["])
@given(st.lists(HOSTILE, max_size=8))
def test_pieces_come_to_the_same_as_the_whole(pieces: list[str]) -> None:
    clean = TerminalFilter()
    shown = "".join(map(clean, pieces))
    assert shown == disarm("".join(pieces))
    assert ARMED.search(shown) is None


@given(st.text())
def test_text_without_controls_is_left_alone(text: str) -> None:
    wanted = "".join(c for c in text if not ARMED.match(c))
    assert disarm(wanted) == wanted


@pytest.mark.parametrize(
    "piece", ["\x1b", "\x1b[", "\x1b[0", "\x1b]", "\x1b]0;a", "\x9d", "\x1b]\x1b", "\r", "\x1b[0\x1b"]
)
def test_the_work_grows_with_the_text(piece: str) -> None:
    """A sequence that never ends is looked at once, in one piece or in many."""
    once, twice = piece * 1_000, piece * 2_000
    steps = [times_called("_step", lambda: disarm(once)), times_called("_step", lambda: disarm(twice))]
    assert steps[1] <= 2 * steps[0] + 10
    clean = TerminalFilter()
    assert times_called("_step", lambda: [clean("0") for _ in range(5_000)]) <= 5_000


PLAIN = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=9)
WITHIN = st.text("0;31?8 http://x[]", max_size=9)
WHOLE = st.one_of(
    st.builds(
        "{}{}{}{}".format, st.sampled_from(["\x1b[", "\x9b"]), st.text("0;1?"), st.text(" !$"), st.sampled_from("mHK~@")
    ),
    st.builds(
        "{}{}{}".format,
        st.sampled_from([*(f"\x1b{start}" for start in "]PX^_"), *"\x90\x98\x9d\x9e\x9f"]),
        WITHIN,
        st.sampled_from(["\x07", "\x1b\\", "\x9c"]),
    ),
    st.sampled_from(["\x1b(B", "\x1bM", "\x1b7", "\x1b=", "\x1b#8", "\x1b%G"]),
)


@given(st.lists(st.tuples(PLAIN, WHOLE), max_size=8), PLAIN)
def test_a_sequence_goes_as_a_whole_or_not_at_all(pieces: list[tuple[str, str]], last: str) -> None:
    text = "".join(plain + sequence for plain, sequence in pieces)
    assert without_sequences(text + last) == "".join(plain for plain, _ in pieces) + last


@pytest.mark.parametrize("cut", ["[31m", "]0;title", "\x1b[31", "\x1b]0;title", "a\x1b", "\x1b(", "\x9d0;title\nnext"])
def test_nothing_is_guessed_of_what_is_cut(cut: str) -> None:
    assert without_sequences(cut) == cut


@pytest.mark.parametrize(
    "piece", ["\x1b", "\x1b[", "\x1b[0 ", "\x1b]", "\x1b]0;a", "\x9d", "\x1b]\x1b", "\x1b ", "0 \x9b", " "]
)
def test_sequences_are_found_in_a_moment(piece: str) -> None:
    begin = time.process_time()
    without_sequences("\x1b[" + piece * 200_000)
    without_sequences("\x1b]" + piece * 200_000)
    assert time.process_time() - begin < 20


@given(st.recursive(st.text(st.characters()) | st.integers(), st.lists, max_leaves=5))
def test_json_says_the_same_and_steers_nothing(value: object) -> None:
    line = json_for_terminals(json.dumps(value, ensure_ascii=False))
    assert json.loads(line) == value
    assert ARMED.search(line) is None
    assert "\ud83d" not in line
    line.encode()


# --- what a person has to judge ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -l", "ls -l"),
        ("grep 'a\\.b' é ü 漢字", "grep 'a\\.b' é ü 漢字"),
        ("printf '\\x1b'", "printf '\\x1b'"),
        ("echo hi \x1b]; rm -rf important \x07# done", "echo hi \\x1b]; rm -rf important \\x07# done"),
        ("printf '\\x1b' \x1b", "printf '\\\\x1b' \\x1b"),
        ("a\rb", "a\\rb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb\u2060c\u00adc", "a\\u200bb\\u2060c\\xadc"),
        ("no\u00a0break", "no\\xa0break"),
        ("\u3164hangul\u2800braille", "\\u3164hangul\\u2800braille"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half\ud800", "half\\ud800"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert exact(text) == shown


@given(st.text())
def test_nothing_is_left_out_and_two_texts_never_look_the_same(text: str) -> None:
    shown = exact(text)
    assert disarm(shown) == shown
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    if shown != text:
        unescaped = re.sub(r"[^\x00-\x7f]", lambda found: f"\\U{ord(found[0]):08x}", shown)
        assert unescaped.encode("ascii").decode("unicode_escape") == text


@given(st.text())
def test_one_exact_line_is_one_line_and_means_one_text(text: str) -> None:
    line = exact_line(text)
    assert not {"\n", "\t"} & set(line)
    assert exact(line) == line, "nothing in it is left to be escaped"
    assert line == exact(text) or "\n" in text or "\t" in text
