"""Keys in the pager: right after it was opened, in pieces, several at once, and whatever edits the line."""

from __future__ import annotations

import shutil
import time

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin, put_away, wait_until
from tests.e2e.support_screen import Screen
from tests.e2e.support_terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")]

SLOW = "timeouts: {escape: 0.7}\n"
"""The machine may be busy, and send the pieces of a key late."""
FOOTER = "q returns"


def begin(screen: Screen, server: ModelServer) -> None:
    """Have a long answer in the chat, and the pager open."""
    server.script(text("\n\n".join(f"row {number}" for number in range(100))))
    screen.type("tell")
    screen.press("Enter")
    screen.until("row 99")
    screen.at_prompt("")
    screen.press("C-o")
    screen.until(FOOTER)


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_escape_leaves_it_right_after_it_was_opened(
    marvin: Marvin, marvin_model_server: ModelServer, keys: str
) -> None:
    """The line waits for the rest of its own keys meanwhile, and takes none of the pager's."""
    marvin.config(f"ui: {{keys: {keys}}}\n{SLOW}")
    with Screen(marvin) as screen:
        begin(screen, marvin_model_server)
        screen.press("Escape")
        screen.at_prompt("")
        screen.type("typed")
        screen.at_prompt("typed")


def test_keys_in_pieces_are_no_escape(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """As a slow connection has them. What means nothing there does nothing."""
    marvin.config(SLOW)
    with Screen(marvin) as screen:
        begin(screen, marvin_model_server)
        for sequence in ("\x1b[A", "\x1bOA", "\x1b[5~", "\x1b[1;3A", "\x1bb"):
            for key in sequence:
                screen.type(key)
                time.sleep(0.05)
        screen.type("/nowhere")
        screen.press("Enter")
        screen.until("row has 'nowhere'")
        screen.press("q")
        screen.at_prompt("")


@pytest.mark.parametrize("key", ["q", "\x0f", "\x03", "\x04"])
def test_what_is_typed_after_it_is_in_the_line(marvin: Marvin, marvin_model_server: ModelServer, key: str) -> None:
    with Screen(marvin) as screen:
        begin(screen, marvin_model_server)
        screen.type(f"{key}more words")
        screen.at_prompt("more words")


@pytest.mark.parametrize("columns", [40, 120])
def test_it_is_left_in_a_window_of_another_size(marvin: Marvin, marvin_model_server: ModelServer, columns: int) -> None:
    """The line is there once, below what was said."""
    with Screen(marvin, columns=80) as screen:
        begin(screen, marvin_model_server)
        screen.resize(columns, 30)
        screen.until("row 99")
        screen.press("q")
        screen.type("a line")
        screen.at_prompt("a line")

        def counts() -> list[int]:
            rows = [row.rstrip() for row in screen.everything()]
            begun = ("> a line", "row 50", "qwen/qwen3-32b")
            return [sum(row.startswith(text) for row in rows) for text in begun]

        wait_until(lambda: counts() == [1, 1, 1], "each row once", 20)


@pytest.mark.parametrize(("env", "scrolls"), [({"STY": "1.pts"}, True), ({}, False), ({"XTERM_VERSION": "1"}, False)])
def test_gnu_screen_keeps_what_the_pager_covers(
    marvin: Marvin, marvin_model_server: ModelServer, env: dict[str, str], scrolls: bool
) -> None:
    """It has no other screen, if nobody told it to, so the window is scrolled up before. tmux has the same TERM."""
    marvin.env |= env
    terminal = Terminal(marvin, TERM="screen")
    try:
        terminal.ready()
        terminal.type("\x0f")
        terminal.until(FOOTER)
        before = terminal.output.partition("\x1b[?1049h")[0]
        assert ("\n" * 24 in before.replace("\r", "")) is scrolls
        terminal.type("q")
        terminal.until("context ")  # the line is there again, and its keys
        assert terminal.leave() == 0
    finally:
        put_away(terminal.process)
