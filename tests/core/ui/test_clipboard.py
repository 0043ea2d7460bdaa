"""What has a terminal put a text on the clipboard."""

from __future__ import annotations

import re
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.ui.clipboard import LONGEST, clipboard_sequence
from tests.support.examples import examples


@examples(50)
@given(st.text(min_size=1, max_size=200))
def test_the_terminal_gets_the_text_and_nothing_that_steers_it(text: str) -> None:
    sequence = clipboard_sequence(text, "xterm-256color")
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", sequence)
    assert found is not None
    assert b64decode(found[1]) == text.encode("utf-8", "replace")


def test_screen_hands_the_pieces_on() -> None:
    sequence = clipboard_sequence("漢字" * 1_000, "screen-256color")
    own, *pieces = sequence.split("\x1bP")
    assert "".join(piece.removesuffix("\x1b\\") for piece in pieces) == own
    assert max(map(len, pieces)) < 768


@pytest.mark.parametrize("terminal", ["", "dumb", "unknown", "linux"])
def test_a_terminal_without_a_clipboard_gets_nothing(terminal: str) -> None:
    assert clipboard_sequence("x", terminal) == ""


def test_a_text_that_terminals_drop_is_not_sent() -> None:
    assert clipboard_sequence("x" * (LONGEST + 1), "xterm") == ""
    assert clipboard_sequence("", "xterm") == ""
