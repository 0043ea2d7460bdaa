"""Keys of a real terminal: what is typed goes on at once, what is pasted without being said so becomes one paste."""

from __future__ import annotations

import os
import tty
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.keys import Keys

from marvin_core.ui.plain.pasting_input import ESCAPE, PastingInput
from tests.support.examples import examples

PASTE = Keys.BracketedPaste


class Keyboard:
    """A terminal with the program's end of it."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        tty.setraw(slave)
        self._stdin = os.fdopen(slave)
        self.input = PastingInput(self._stdin)

    def close(self) -> None:
        self._stdin.close()
        os.close(self._master)

    def came(self, text: str) -> list[tuple[str, str]]:
        """The keys that the program is told of at once where these bytes come in one piece."""
        os.write(self._master, text.encode())
        return [
            (str(key.key.value if isinstance(key.key, Keys) else key.key), key.data) for key in self.input.read_keys()
        ]

    def later(self) -> list[tuple[str, str]]:
        """Those that it is told of once nothing more came."""
        return [
            (str(key.key.value if isinstance(key.key, Keys) else key.key), key.data) for key in self.input.flush_keys()
        ]


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    board = Keyboard()
    yield board
    board.close()


def test_a_key_alone_is_never_held(keyboard: Keyboard) -> None:
    for key in "ok\r":
        assert len(keyboard.came(key)) == 1
        assert keyboard.later() == []


def test_a_line_that_comes_in_one_piece_is_sent_a_moment_later(keyboard: Keyboard) -> None:
    assert [data for _, data in keyboard.came("make it now\r")] == list("make it now")
    assert keyboard.later() == [("c-m", "\r")]


def test_a_short_line_with_the_beginning_of_another_is_typing(keyboard: Keyboard) -> None:
    """As a slow connection delivers it."""
    assert [data for _, data in keyboard.came("yes\ry")] == list("yes\ry")


@pytest.mark.parametrize("pieces", [["one\rtwo\rthree"], ["the first line\r", "the second line\r", "three"]])
def test_lines_in_quick_succession_are_one_paste(keyboard: Keyboard, pieces: list[str]) -> None:
    came = [key for piece in pieces for key in keyboard.came(piece)]
    came += keyboard.later()
    assert not [key for key, _ in came if key == "c-m"], "nothing is sent"
    assert "".join(data for _, data in came) == "".join(pieces).replace("\r", "\n")
    assert came[-1][0] == PASTE.value


def test_another_key_ends_what_is_held(keyboard: Keyboard) -> None:
    came = keyboard.came("make it now\r\x03")
    assert [key for key, _ in came][-2:] == ["c-m", "c-c"]


def test_alt_enter_is_no_line_of_a_paste(keyboard: Keyboard) -> None:
    came = keyboard.came("some words here\x1b\rmore words here")
    assert ("escape", "\x1b") in came
    assert [key for key, _ in came].count("c-m") == 1
    assert keyboard.later() == []


@pytest.mark.parametrize(
    ("sequence", "keys"),
    [
        ("\x1bb", ["escape", "b"]),
        ("\x1b[1;3D", ["escape", "left"]),
        ("\x1b[1;9C", ["escape", "right"]),
        ("\x1bOA", ["up"]),
    ],
)
def test_a_key_in_pieces_is_the_key_and_no_escape(keyboard: Keyboard, sequence: str, keys: list[str]) -> None:
    """As a slow connection delivers it, as long as the pieces come before it is asked whether that was all."""
    came = [one for character in sequence for one in keyboard.came(character)]
    assert [key for key, _ in came] == keys


def test_escape_alone_is_told_as_such(keyboard: Keyboard) -> None:
    assert keyboard.came("\x1b") == []
    assert keyboard.later() == [(ESCAPE.value, "\x1b")]
    keyboard.input.escapes = False
    keyboard.came("\x1b")
    assert keyboard.later() == [("escape", "\x1b")]


@examples(100)
@given(st.lists(st.text("ab \ré😀\t", max_size=12), max_size=6))
def test_nothing_that_is_typed_is_lost(pieces: list[str]) -> None:
    board = Keyboard()
    try:
        came = [key for piece in pieces if piece for key in board.came(piece)]
        came += board.later()
        assert "".join(data for _, data in came).replace("\r", "\n") == "".join(pieces).replace("\r", "\n")
    finally:
        board.close()
