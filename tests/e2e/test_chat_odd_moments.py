"""The chat on a terminal in odd moments: bytes that are no text, keys while it leaves, storms of windows."""

from __future__ import annotations

import os
import shutil
import threading
import time

import pytest

from marvin_core.testing import Answer, ModelServer, calls, paced, pause, text
from tests.e2e.support_e2e import Marvin, assert_loadable, posts, put_away, wait_until
from tests.e2e.support_screen import Screen
from tests.e2e.support_terminal import CTRL_C, CTRL_D, CTRL_G, ENTER, UP, Open, Terminal, bare, hanging, prompts

pytestmark = pytest.mark.slow
needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


def gated(answer: Answer, word: str) -> tuple[Answer, threading.Event]:
    """The answer, held before the piece with a word until the event is set."""
    gate, steps = threading.Event(), [*answer.steps]
    place = next(at for at, step in enumerate(steps) if isinstance(step, bytes) and word.encode() in step)
    return answer.replace(steps=(*steps[:place], gate, *steps[place:])), gate


# --- what is typed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b"caf\xe9", b"\x1b[200~two\rcaf\xe9 \xff\xfe\x1b[201~", b"\xc3(\xf0\x28"])
def test_bytes_that_are_no_text_are_not_sent(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, odd: bytes
) -> None:
    """As a terminal writes them that is set to another encoding. The line stays, to be changed."""
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    os.write(terminal.process.child_fd, odd)
    time.sleep(0.3)
    terminal.type(ENTER)
    terminal.until("That line is not UTF-8, so it was not sent.")
    assert posts(marvin_model_server) == 0
    terminal.type("\x15" * 3)
    terminal.type("café")
    terminal.until("é")
    terminal.say("", "Fine.")
    assert prompts(marvin_model_server) == ["café"]
    assert terminal.leave() == 0


def test_a_hidden_answer_forgets_no_other_paste(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """What was pasted before a key was asked for is sent whole again afterwards."""
    marvin_model_server.script(text("First."), text("Second."))
    pasted = "\n".join(f"line {number}" for number in range(40))
    terminal = chat()
    terminal.type(f"\x1b[200~{pasted}\x1b[201~")
    terminal.until("[pasted 40 lines]")
    terminal.say("", "First.")
    terminal.say("/login groq", "[hidden]")
    terminal.type(f"\x1b[200~{'k' * 3000}\x1b[201~")
    terminal.until("*****")
    terminal.type("\x7f")  # it is one thing
    terminal.say("", "No key was given")
    terminal.type(f"{UP}{UP}")
    terminal.until("[pasted 40 lines]")
    terminal.say("", "Second.")
    assert prompts(marvin_model_server) == [pasted, pasted]


def test_a_paste_of_a_megabyte_is_one_message_that_is_asked_about(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """It is larger than the window; no is sent nowhere, and Up brings it back."""
    marvin.config("providers: {openai-compat: {context_window: 100000}}\n")
    marvin_model_server.script(text("Read."))
    pasted = "\r".join(f"line {number:6} {'x' * 80}" for number in range(12_000))
    terminal = chat()
    terminal.process.send("\x1b[200~")
    for begin in range(0, len(pasted), 50_000):
        terminal.process.send(pasted[begin : begin + 50_000])
    terminal.type("\x1b[201~")
    terminal.until("[pasted 12,000 lines]")
    terminal.type(ENTER)
    terminal.until("This message has 1,1")
    terminal.asked("[yes/no]")
    terminal.type("n")
    terminal.until("Nothing was sent.")
    assert posts(marvin_model_server) == 0
    terminal.type(UP)
    terminal.until("[pasted 12,000 lines]")


# --- lines of others in the middle of an answer ----------------------------------------------------------------


@needs_tmux
def test_what_is_said_in_the_middle_of_code_does_not_end_it(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Shift+Tab, an editor that fails, a notice: the rest of the code is drawn as code."""
    pieces = ["```py\nfirst = 1\n\n", "# no heading\nla", "st = 2\n```\n\nEnd."]
    answer, gate = gated(paced(0.0, text("", chunks=pieces)), "no h")
    marvin_model_server.script(answer)
    marvin.env["EDITOR"] = "false"
    with Screen(marvin, columns=80) as screen:
        screen.type("go")
        screen.press("Enter")
        screen.until("first = 1")
        screen.press("BTab")
        screen.until("Permission mode edit")
        screen.press("C-g")
        screen.until("false could not be used")
        gate.set()
        screen.until("End.")
        rows = [row.rstrip() for row in screen.rows()]
    assert rows[rows.index("# no heading") :][:3] == ["# no heading", "last = 2", "───"]
    assert rows.count("───") == 1, "the block has one end"


# --- Ctrl+C and the end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[CTRL_C], [CTRL_C, CTRL_C], ["\x1b"]])
def test_keys_that_end_while_a_question_waits_for_the_line(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, keys: list[str]
) -> None:
    """A draft is there, a question waits behind it, a line is queued: nothing runs, and what was said is kept."""
    gate = threading.Event()
    marvin_model_server.script(pause(gate, calls(("run_command", {"command": "touch made"}))), *[text("Fine.")] * 3)
    terminal = chat()
    terminal.say("go", "waiting")
    terminal.enter("queued line")
    terminal.type("dra")
    terminal.until("dra")
    gate.set()
    terminal.until("There is an open question above")
    for key in keys:
        terminal.type(key)
        time.sleep(0.2)
    terminal.until("[Cancelled]")
    terminal.process.send("\x7f" * 40)
    assert terminal.leave() == 0
    assert not (marvin.project / "made").exists()
    assert posts(marvin_model_server) == 1
    assert_loadable(marvin.messages())


def test_ctrl_c_while_it_leaves_leaves_at_once(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Whatever is still to be closed; what was said is saved."""
    marvin.config("timeouts: {close: 60, hook: 60}\n")
    marvin_model_server.script(calls(("run_command", {"command": "sleep 61 & echo started; wait"})), text("Fine."))
    terminal = chat()
    terminal.say("go", "/view]")
    terminal.asked()
    terminal.type("y")
    terminal.until("… run_command")
    terminal.type(CTRL_C)
    terminal.until("[Cancelled]")
    begun = time.monotonic()
    terminal.process.send(CTRL_D + CTRL_C)
    for _ in range(20):
        if not terminal.process.isalive():
            break
        time.sleep(0.05)
        terminal.process.send(CTRL_C)
    assert terminal.ended() in (0, 130)
    assert time.monotonic() - begun < 20
    assert_loadable(marvin.messages())


# --- windows -----------------------------------------------------------------------------------------------------


@needs_tmux
@pytest.mark.parametrize("open_question", [False, True])
def test_a_storm_of_sizes(marvin: Marvin, marvin_model_server: ModelServer, open_question: bool) -> None:
    """A hundred sizes in a second, also absurd ones: the chat goes on, and nothing is twice on the screen."""
    marvin_model_server.script(calls(("run_command", {"command": "echo hi"})), text("Fine."))
    with Screen(marvin, columns=80) as screen:
        if open_question:
            screen.type("go")
            screen.press("Enter")
            screen.until("/view]")
        for number in range(100):
            columns, rows = (1, 1) if number % 25 == 24 else (20 + 37 * number % 200, 2 + 11 * number % 60)
            screen._tmux("resize-window", "-x", str(columns), "-y", str(rows))
        screen.resize(80, 30)
        if open_question:
            wait_until(lambda: "/view]" in "".join(screen.rows()[-2:]), "the question at the bottom")
            screen.type("n")
            screen.until("Fine.")
        screen.at_prompt("")
        screen.type("a line")
        screen.at_prompt("a line")
        assert sum(row.startswith("> a line") for row in screen.rows()) == 1


# --- plain lines on a terminal --------------------------------------------------------------------------------------


def test_plain_lines_on_a_terminal(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """M11: --plain is linear on a terminal, too, and says that it waits."""
    marvin.config("timeouts: {progress: 0.3}\n")
    gate = threading.Event()
    marvin_model_server.script(pause(gate, text("# Hello.")), hanging("Half"))
    terminal = Terminal(marvin, "--plain")
    try:
        terminal.until("works.")
        terminal.until("> ")
        terminal.say("hi", "Still working, ")
        gate.set()
        terminal.until("# Hello.")
        terminal.say("more", "Half")
        terminal.type(CTRL_C)
        terminal.until("[Cancelled]")
        assert terminal.leave() == 0
        shown = terminal.output.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")  # readline's own
        assert "\x1b" not in shown
        assert bare(shown).count("# Hello.") == 1
    finally:
        put_away(terminal.process)


# --- Ctrl+C everywhere ----------------------------------------------------------------------------------------------


@needs_tmux
def test_ctrl_c_everywhere(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Wherever somebody is, it leads back to an empty line, nothing was done, and the chat goes on."""
    editor = marvin.home / "editor"
    editor.write_text("#!/bin/sh\necho in the editor\nexec sleep 100\n")
    editor.chmod(0o755)
    marvin.env["EDITOR"] = str(editor)
    marvin_model_server.script(text("First."), text("Last."))
    places = (
        (["/the"], "with a name, switch"),
        (["C-r"], "backward"),
        (["/resume", "Enter"], "Enter choose"),
        (["/login groq", "Enter"], "[hidden]"),
        (["!echo begun; sleep 100", "Enter"], "begun"),
        (["/run_command command='touch made'", "Enter"], "/view]"),
        (["/run_command command='touch made'", "Enter", "a"], "The rule would be"),
        (["a line", "C-g"], "in the editor"),
        (["C-o"], "q returns"),
    )
    with Screen(marvin, columns=100, rows=40) as screen:
        screen.type("first")
        screen.press("Enter")
        screen.until("First.")
        for keys, shown in places:
            screen.press("C-l")
            screen.at_prompt("")
            for key in keys:
                if key == "a":
                    screen.until("/view]")
                    time.sleep(0.6)
                screen.press(key)
                time.sleep(0.1)
            screen.until(shown)
            screen.press("C-c")
            wait_until(lambda: screen.rows()[-1].startswith(">") and "q returns" not in screen.rows()[-1], "the prompt")
            if "C-g" in keys:
                screen.until("> a line")
                screen.press("C-c")
            screen.at_prompt("")
        assert not (marvin.project / "made").exists()
        screen.type("go on")
        screen.press("Enter")
        screen.until("Last.")
    assert prompts(marvin_model_server) == ["first", "go on"]


# --- a terminal that closes -----------------------------------------------------------------------------------------


@needs_tmux
@pytest.mark.parametrize("place", ["question", "secret", "menu"])
def test_the_window_closes_wherever_somebody_is(marvin: Marvin, marvin_model_server: ModelServer, place: str) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Fine."))
    places = {
        "question": (["go", "Enter"], "/view]"),
        "secret": (["/login groq", "Enter"], "[hidden]"),
        "menu": (["/the"], "with a name, switch"),
    }
    keys, shown = places[place]
    with Screen(marvin, columns=100) as screen:
        for key in keys:
            screen.press(key)
            time.sleep(0.1)
        screen.until(shown)
        screen.close()
        assert screen.ended() in (0, 129, 130)
    assert not (marvin.project / "made").exists()
    if place == "question":
        assert_loadable(marvin.messages())


def test_the_window_closes_below_an_editor_that_does_not_want_to_end(marvin: Marvin, chat: Open) -> None:
    editor = marvin.home / "editor"
    editor.write_text("#!/bin/sh\ntrap '' HUP TERM INT\necho in the editor\nwhile :; do sleep 1; done\n")
    editor.chmod(0o755)
    terminal = chat(EDITOR=str(editor))
    terminal.type("a line")
    terminal.until("a line")
    terminal.type(CTRL_G)
    terminal.until("in the editor")
    own = terminal.process.pid
    terminal.process.ptyproc.fileobj.close()  # what a window does that is closed: the kernel sends SIGHUP
    code = os.waitstatus_to_exitcode(os.waitpid(own, 0)[1])
    terminal.process.closed = terminal.process.ptyproc.closed = terminal.process.ptyproc.terminated = True
    assert code == 130
