"""Keys of the chat on a real pseudo-terminal: Escape, words and lines, the editor, questions, pastes, completion."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, pause, text
from tests.e2e.support_e2e import Marvin, conversation, posts, told
from tests.e2e.support_terminal import CTRL_C, CTRL_G, ENTER, TAB, UP, Open, bare, hanging, prompts

pytestmark = pytest.mark.slow

ESC = "\x1b"


def run_command(command: str) -> Any:
    return calls(("run_command", {"command": command}))


# --- escape --------------------------------------------------------------------------------------------


def test_escape_ends_an_answer_and_keeps_what_is_typed(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin_model_server.script(hanging("Once upon"), text("Fine."))
    terminal = chat()
    terminal.say("tell", "Once upon")
    terminal.type("a draft")
    terminal.until("a draft")
    terminal.type(ESC)
    terminal.until("[Cancelled]")
    terminal.until("> a draft")
    terminal.type("/")
    terminal.until("/")  # the key after it is not eaten
    terminal.say("", "Fine.")
    assert prompts(marvin_model_server)[-1] == "a draft/"


def test_escape_with_nothing_under_way_does_nothing(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    terminal.type("hel")
    terminal.until("hel")
    terminal.type(ESC)
    time.sleep(0.3)
    terminal.say("lo", "Fine.")
    assert prompts(marvin_model_server) == ["hello"]


@pytest.mark.parametrize(
    ("sequence", "line"),
    [
        ("\x1bb", "one two Xthree"),
        ("\x1b[1;3D", "one two Xthree"),
        ("\x1b[1;5D", "one two Xthree"),
        ("\x1b[1;9D", "one two Xthree"),
        ("\x1b[H\x1bf", "oneX two three"),
        ("\x1b[H\x1b[1;3C", "oneX two three"),
        ("\x1b[H\x1b[1;5C", "oneX two three"),
        ("\x1b[H\x1b[1;9C", "oneX two three"),
        ("\x1b[H\x1bd", "X two three"),
        ("\x1b\x7f", "one two X"),
        ("\x1b[H", "Xone two three"),
        ("\x1b[1~\x1b[F", "one two threeX"),
        ("\x1bOH\x1bOF", "one two threeX"),
    ],
)
def test_option_and_command_keys(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, sequence: str, line: str
) -> None:
    """By words and to the ends of the line; also in pieces, as a slow connection has them, and during an answer."""
    marvin.config("timeouts: {escape: 0.7}\n")  # the machine may be busy, and send the pieces late
    marvin_model_server.script(hanging("Well"), text("Fine."))
    terminal = chat()
    terminal.say("begin", "Well")
    terminal.type("one two three")
    terminal.until("one two three")
    for key in sequence:
        terminal.process.send(key)
        time.sleep(0.02)
    terminal.process.send("X")
    terminal.process.send(ENTER)
    terminal.until(f"(queued) {line}")
    assert "[Cancelled]" not in bare(terminal.output)
    terminal.type(ESC)
    terminal.until("[Cancelled]")


# --- lines that wait, and the editor -----------------------------------------------------------------------


def test_up_on_an_empty_line_brings_back_what_waits(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    go_on = threading.Event()
    marvin_model_server.script(text("One."), pause(go_on, text("Two.")), text("Three."))
    terminal = chat()
    terminal.say("first", "One.")
    terminal.say("second", "waiting")
    terminal.say("thrid", "(queued) thrid")
    terminal.type(UP)
    terminal.until("> thrid")
    terminal.type("\x7f\x7f\x7fird" + ENTER)
    terminal.until("(queued) third")
    go_on.set()
    terminal.until("Three.")
    assert prompts(marvin_model_server) == ["first", "second", "third"]
    terminal.type(UP)
    terminal.until("third")  # the history, as nothing waits; only what is new is drawn


def test_up_in_one_go_with_the_key_that_empties_the_line(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """The empty line is not drawn in between, and the history is loaded with it."""
    marvin.config("ui: {attention: [title]}\n")
    marvin_model_server.script(text("One."), text("Two."))
    terminal = chat()
    terminal.say("first", "One.")
    terminal.until("\x1b]2;marvin\x07", raw=True)  # the run is over, so that the key empties the line
    terminal.type("dropped")
    terminal.until("dropped")
    terminal.type(f"{CTRL_C}{UP}")
    terminal.until("first")
    terminal.say("", "Two.")
    assert prompts(marvin_model_server) == ["first", "first"]


def test_the_editor_of_the_user(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    editor = marvin.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, edited\\nsecond" "$(cat "$1")" > "$1.new"; mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    marvin_model_server.script(text("Fine."))
    terminal = chat(EDITOR=str(editor))
    terminal.type("typed")
    terminal.until("typed")
    terminal.type(CTRL_G)
    terminal.until("second")
    terminal.say("", "Fine.")
    assert prompts(marvin_model_server) == ["typed, edited\nsecond"]
    terminal.type("again")
    terminal.until("again")
    terminal.type("\x18\x05")
    terminal.until("again, edited")


def test_an_editor_that_fails_changes_nothing(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    terminal = chat(EDITOR="false")
    terminal.type("typed")
    terminal.until("typed")
    terminal.type(CTRL_G)
    terminal.until("false could not be used")
    terminal.until("> typed")


# --- questions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "runs"), [("y", True), ("n", False)])
def test_a_key_alone_answers(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, key: str, runs: bool
) -> None:
    marvin_model_server.script(run_command("touch made"), text("Done."))
    terminal = chat()
    terminal.say(
        "do it",
        "(Press the first letter of an answer, after a pause of half",
    )
    terminal.asked()
    terminal.type(key)
    terminal.until("Done.")
    assert (marvin.project / "made").exists() is runs


def test_a_word_typed_by_hand_leaves_nothing_behind(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """The first letter answers; its rest and Enter are not sent as a message."""
    marvin_model_server.script(run_command("touch made"), text("Done."), text("Later."))
    terminal = chat()
    terminal.say("do it", "/view]")
    terminal.asked()
    for key in f"yes{ENTER}":
        terminal.process.send(key)
        time.sleep(0.05)
    terminal.until("Done.")
    terminal.say("later", "Later.")
    assert prompts(marvin_model_server) == ["do it", "later"]


def test_t_tells_the_model_why_not(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(run_command("yarn add x"), text("Done."))
    terminal = chat()
    terminal.say("do it", "/view]")
    terminal.asked()
    terminal.type("t")
    terminal.until("no")
    terminal.say("use npm", "Done.")
    assert "The user says: use npm" in told(marvin_model_server)[0]


def test_no_key_answers_right_after_typing(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """What comes within half a second of the last key is a draft."""
    typed = threading.Event()
    marvin.config("timeouts: {answer_key: 4}\n")
    marvin_model_server.script(pause(typed, run_command("touch made")), text("Done."))
    terminal = chat()
    terminal.say("do it", "waiting")
    terminal.process.send("x\x7f")
    typed.set()
    terminal.until("Run run_command?")
    terminal.process.send("y")
    terminal.until("(There is an open question above. Press Ctrl+G to answer; this line is kept.)")
    assert not (marvin.project / "made").exists()
    terminal.type("\x7f")
    terminal.asked()
    terminal.type("n")
    terminal.until("Done.")
    assert not (marvin.project / "made").exists()


def test_a_command_at_a_question_is_no_answer(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(run_command("touch made"), text("Done."))
    terminal = chat()
    terminal.say("do it", "/view]")
    terminal.asked()
    terminal.say("/steer be brief", "(the model reads this with its next request) be brief")
    terminal.asked()
    terminal.type("y")
    terminal.until("Done.")
    assert "be brief" in str(conversation(marvin_model_server))


# --- pastes, completion, settings ----------------------------------------------------------------------


def test_a_paste_that_is_not_said_to_be_one_is_not_sent(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    lines = [f"line {number} of a long text" for number in range(500)]
    for begin in range(0, 500, 50):
        terminal.process.send("".join(f"{line}\r" for line in lines[begin : begin + 50]))
    terminal.until("[pasted")
    time.sleep(0.3)
    assert posts(marvin_model_server) == 0
    terminal.say("", "Fine.")
    assert [line for line in prompts(marvin_model_server)[0].split("\n") if line] == lines


def test_files_and_commands_are_completed_while_somebody_types(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    (marvin.project / "src").mkdir()
    (marvin.project / "src" / "application.py").write_text("print('attached')\n")
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    terminal.type("look at @appl")
    terminal.until("@src/application.py")
    terminal.type(TAB)
    terminal.until("@src/application.py ")
    terminal.say("please", "Fine.")
    assert "print('attached')" in prompts(marvin_model_server)[0]
    terminal.type("/permi")
    terminal.until("which calls need approval before they run")
    terminal.type("ssions rea")
    terminal.until("readonly")
    terminal.type("\x15")


def test_vi_keys(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin.config("ui: {keys: vi, completion: tab}\n")
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    terminal.type("hello wrld")
    terminal.until("hello wrld")
    terminal.type(ESC)
    time.sleep(0.4)
    terminal.type("bao")
    terminal.until("orld")
    terminal.say("", "Fine.")
    assert prompts(marvin_model_server) == ["hello world"]


def test_the_status_row_and_curses(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin.config("ui: {status: [mode, folder, messages]}\n")
    marvin_model_server.script(text("Fine."))
    terminal = chat("--curses")
    assert "--curses opens the ordinary chat" in bare(terminal.output)
    assert "ask · project · 0 messages" in bare(terminal.output)
    terminal.say("hi", "Fine.")
    terminal.until("ask · project · 2 messages")


def test_cd_and_programs_that_need_the_terminal_are_explained(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    terminal = chat()
    terminal.say("!cd src", "cd affects only its own command: each command starts in")
    terminal.say("!vim x", "vim needs the whole terminal. Press Ctrl+Z to suspend Marvin, and type fg to\nreturn.")
    terminal.say("!echo hi", "(The model does not see this output. Write @! in a message to attach it.)")
