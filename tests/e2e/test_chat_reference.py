"""Every key that the page on the chat names, pressed in a terminal emulator."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, hang_after, pause, text
from tests.e2e.support_e2e import Marvin, wait_until
from tests.e2e.support_screen import Screen

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "chat.md"
EDITING: dict[str, tuple[Sequence[str], str]] = {
    "Ctrl+A": (["C-a"], "Xone two three"),
    "Ctrl+E": (["C-a", "C-e"], "one two threeX"),
    "Home": (["Home"], "Xone two three"),
    "End": (["C-a", "End"], "one two threeX"),
    "Alt+Left": (["M-Left"], "one two Xthree"),
    "Alt+Right": (["C-a", "M-Right"], "oneX two three"),
    "Ctrl+Left": (["C-Left"], "one two Xthree"),
    "Ctrl+Right": (["C-a", "C-Right"], "oneX two three"),
    "Alt+B": (["M-b"], "one two Xthree"),
    "Alt+F": (["C-a", "M-f"], "oneX two three"),
    "Ctrl+W": (["C-w"], "one two X"),
    "Alt+Backspace": (["M-BSpace"], "one two X"),
    "Alt+D": (["C-a", "M-d"], "X two three"),
    "Ctrl+K": (["C-a", "C-f", "C-k"], "oX"),
    "Ctrl+U": (["C-u"], "X"),
    "Ctrl+Y": (["C-u", "C-y"], "one two threeX"),
}
"""Pressed where `one two three` is typed; then X is."""


def line(screen: Screen, keys: Sequence[str], expected: str) -> None:
    """What a line becomes."""
    screen.type("one two three")
    screen.at_prompt("one two three")
    screen.press(*keys)
    screen.type("X")
    screen.at_prompt(expected)
    screen.press("C-c")
    screen.at_prompt("")


def enter(screen: Screen) -> None:
    screen.type("first")
    screen.press("Enter")
    screen.until("Answer.")
    at_rest(screen)


def at_rest(screen: Screen) -> None:
    """Wait until the answer is over, which is a moment after its last word."""
    screen.press("C-l")
    screen.type("/jobs")
    screen.press("Enter")
    screen.until("There are no background jobs.")
    screen.at_prompt("")
    screen.press("C-l")
    wait_until(lambda: len(screen.rows()) == 2, "an empty window but for the line and its status")


def alt_enter(screen: Screen) -> None:
    screen.type("one")
    screen.press("M-Enter")
    screen.type("two")
    screen.until("> one\n  two")
    screen.press("C-c")
    screen.at_prompt("")


def backslash(screen: Screen) -> None:
    screen.type("one\\")
    screen.press("Enter")
    screen.type("two")
    screen.until("> one\n  two")
    screen.press("C-c")
    screen.at_prompt("")


def tab(screen: Screen) -> None:
    screen.type("/read_fi")
    screen.press("Tab")
    screen.at_prompt("/read_file")
    screen.press("C-c")
    screen.at_prompt("")


def up(screen: Screen) -> None:
    screen.press("Up", "Up")
    screen.at_prompt("first")
    screen.press("C-c")
    screen.at_prompt("")


def down(screen: Screen) -> None:
    screen.press("Up", "Up")
    screen.at_prompt("first")
    screen.press("Down")
    screen.at_prompt("/jobs")
    screen.press("C-c")
    screen.at_prompt("")


def ctrl_r(screen: Screen) -> None:
    screen.press("C-r")
    screen.type("fir")
    screen.until("backward: fir")
    screen.press("Enter")
    screen.at_prompt("first")
    screen.press("C-c")
    screen.at_prompt("")


def ctrl_l(screen: Screen) -> None:
    screen.press("C-l")
    wait_until(lambda: len(screen.rows()) == 2, "an empty window but for the line and its status")


def ctrl_o(screen: Screen) -> None:
    """And the keys of the pager."""
    screen.press("C-o")
    screen.until("q returns")
    screen.press("Home")
    screen.until("> first")
    for keys in (["Down", "Up"], ["PageDown", "PageUp"], ["End", "Home"]):
        screen.press(*keys)
    screen.type("/Answer")
    screen.press("Enter")
    screen.until("Answer.")
    screen.type("n")
    screen.until("No later row has")
    screen.type("N")
    screen.until("No earlier row has")
    screen.type("q")
    screen.at_prompt("")


def shift_tab(screen: Screen) -> None:
    for mode in ("edit", "auto", "readonly"):
        screen.press("BTab")
        screen.until(f"Permission mode {mode}")
    screen.press("BTab")
    screen.until("Permission mode ask")
    screen.at_prompt("")


def ctrl_g(screen: Screen) -> None:
    screen.type("typed")
    screen.press("C-g")
    screen.at_prompt("typed, edited")
    screen.press("C-c")
    screen.at_prompt("")


def ctrl_x_ctrl_e(screen: Screen) -> None:
    screen.type("typed")
    screen.press("C-x", "C-e")
    screen.at_prompt("typed, edited")
    screen.press("C-c")
    screen.at_prompt("")


def esc(screen: Screen) -> None:
    ended_by(screen, "Escape")


def ctrl_c(screen: Screen) -> None:
    ended_by(screen, "C-c")


def ended_by(screen: Screen, key: str) -> None:
    screen.type("tell")
    screen.press("Enter")
    screen.until("Half of it,")
    screen.type("draft")
    screen.at_prompt("draft")
    screen.press(key)
    screen.until("[Cancelled]")
    screen.at_prompt("draft")
    screen.press("C-u")
    screen.at_prompt("")
    at_rest(screen)


def ctrl_d(screen: Screen) -> None:
    screen.type("ab")
    screen.press("C-a", "C-d")
    screen.at_prompt("b")
    screen.press("C-c")
    screen.at_prompt("")
    screen.press("C-d")
    assert screen.ended() == 0


OTHERS: dict[str, Callable[[Screen], None]] = {
    "Enter": enter,
    "Alt+Enter": alt_enter,
    "\\ at the end of the line and Enter": backslash,
    "Tab": tab,
    "Up": up,
    "Down": down,
    "Ctrl+R": ctrl_r,
    "Ctrl+L": ctrl_l,
    "Ctrl+O": ctrl_o,
    "Shift+Tab": shift_tab,
    "Ctrl+G": ctrl_g,
    "Ctrl+X Ctrl+E": ctrl_x_ctrl_e,
    "Esc": esc,
    "Ctrl+C": ctrl_c,
    "Ctrl+D": ctrl_d,
}
ELSEWHERE = {"Ctrl+Z": "test_chat_suspended"}
"""Keys that need a shell around the chat, with the module whose test presses them."""


def documented() -> list[str]:
    """The keys of the page's table."""
    table = PAGE.read_text("utf-8").split("## Keys\n\n")[1].split("\n\n")[0]
    cells = [row.split("|")[1].strip().replace("`", "") for row in table.splitlines()[2:]]
    return [key for cell in cells for key in re.split(r", or |, ", cell)]


def test_each_key_of_the_page_is_pressed_by_a_test() -> None:
    assert sorted(documented()) == sorted([*EDITING, *OTHERS, *ELSEWHERE])
    for name in ELSEWHERE.values():
        assert Path(__file__).with_name(f"{name}.py").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_each_key_does_what_the_page_says(marvin: Marvin, marvin_model_server: ModelServer, columns: int) -> None:
    editor = marvin.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, edited" "$(cat "$1")" > "$1.new"; mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    marvin.env["EDITOR"] = str(editor)
    half = text("Half of it,", chunks=1)
    cut = hang_after(half.body.index(b'finish_reason": "stop'), half)
    marvin_model_server.script(text("Answer."), cut, cut)
    with Screen(marvin, columns=columns, rows=30) as screen:
        OTHERS["Enter"](screen)
        for keys, expected in EDITING.values():
            line(screen, keys, expected)
        for name, press in OTHERS.items():
            if name != "Enter":
                press(screen)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_ctrl_g_and_ctrl_d_at_a_question(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Ctrl+G puts the line aside, Ctrl+D says no, and Up brings back what waits, but not as an answer."""
    gate = threading.Event()
    marvin_model_server.script(
        pause(gate, calls(("run_command", {"command": "touch made"}))), text("Done."), text("Yes?")
    )
    with Screen(marvin) as screen:
        screen.type("go")
        screen.press("Enter")
        screen.until("waiting")
        screen.type("yes")
        screen.press("Enter")
        screen.until("(queued) yes")
        screen.type("draft")
        screen.at_prompt("draft")
        gate.set()
        screen.until("There is an open question above")
        screen.press("C-g")
        screen.until("/view]")
        screen.press("Up")
        screen.press("C-u")
        screen.press("C-d")
        screen.until("Yes?")
        screen.at_prompt("draft")
        assert not (marvin.project / "made").exists(), "a line that waited is no answer"
