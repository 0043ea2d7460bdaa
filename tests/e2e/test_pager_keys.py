"""Keys in the pager on a real pseudo-terminal: in pieces, at once, and whatever edits the line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin, put_away
from tests.e2e.test_chat_terminal import ENTER, Terminal, bare

pytestmark = pytest.mark.slow

CTRL_O, ESC, LEFT_IT = "\x0f", "\x1b", "\x1b[?1049l"
Open = Callable[..., Terminal]


@pytest.fixture
def chat(marvin: Marvin, marvin_model_server: ModelServer) -> Iterator[Open]:
    """Opens chats in which a long answer came, and closes them after the test."""
    opened: list[Terminal] = []
    marvin_model_server.script(*[text("\n\n".join(f"row {number}" for number in range(100)))] * 5)

    def begin(*args: str, **options: Any) -> Terminal:
        opened.append(Terminal(marvin, *args, **options))
        opened[-1].ready()
        opened[-1].say("tell", "row 99")
        return opened[-1]

    yield begin
    for one in opened:
        put_away(one.process)


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_escape_leaves_it_right_after_it_was_opened(marvin: Marvin, chat: Open, keys: str) -> None:
    """The line waits for the rest of its own keys meanwhile, and takes none of the pager's."""
    marvin.config(f"ui: {{keys: {keys}}}\ntimeouts: {{escape: 0.7}}\n")
    terminal = chat()
    terminal.type(CTRL_O)
    terminal.until("q returns")
    terminal.type(ESC)
    terminal.until(LEFT_IT, raw=True)
    terminal.type("typed")
    terminal.until("typed")


@pytest.mark.parametrize("sequence", ["\x1b[A", "\x1bOA", "\x1b[5~", "\x1b[1;3A", "\x1bb"])
def test_a_key_in_pieces_is_no_escape(marvin: Marvin, chat: Open, sequence: str) -> None:
    """As a slow connection has them. What means nothing there does nothing."""
    marvin.config("timeouts: {escape: 0.7}\n")
    terminal = chat()
    terminal.type(CTRL_O)
    terminal.until("q returns")
    time.sleep(0.8)
    for key in sequence:
        terminal.process.send(key)
        time.sleep(0.05)
    terminal.type("/nowhere")
    terminal.until("/nowhere")
    terminal.type(ENTER)
    terminal.until("row has 'nowhere'")
    assert LEFT_IT not in terminal.output
    terminal.type("q")
    terminal.until(LEFT_IT, raw=True)
    terminal.until("> ")
    assert not bare(terminal.output).rstrip().endswith(("b", "A")), "no piece is in the line"


@pytest.mark.parametrize("key", ["q", CTRL_O, "\x03", "\x04"])
def test_what_is_typed_after_it_is_in_the_line(marvin: Marvin, chat: Open, key: str) -> None:
    terminal = chat()
    terminal.type(CTRL_O)
    terminal.until("q returns")
    terminal.type(f"{key}more words")
    terminal.until(LEFT_IT, raw=True)
    terminal.until("> more words")
