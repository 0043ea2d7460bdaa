"""Sessions as a person meets them in the chat: going on, picking, leaving; clipboard, editor, screen reader."""

from __future__ import annotations

import re
import shutil
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pexpect
import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, conversation, end_of, put_away, wait_until
from tests.e2e.support_screen import Screen

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


class Raw:
    """A chat whose terminal's bytes are looked at."""

    def __init__(self, marvin: Marvin, *args: str, **env: str) -> None:
        self.process: Any = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *args],
            cwd=str(marvin.project),
            env={**marvin.env, "TERM": "xterm-256color", **env},
            encoding="utf-8",
            timeout=LIMIT,
            dimensions=(40, 100),
        )
        self.process.delaybeforesend = None

    def until(self, expected: str) -> str:
        """Wait for a text; returns what came before it."""
        self.process.expect_exact(expected)
        return str(self.process.before)


@pytest.fixture
def raw(marvin: Marvin) -> Iterator[Any]:
    opened: list[Raw] = []

    def begin(*args: str, **env: str) -> Raw:
        opened.append(Raw(marvin, *args, **env))
        return opened[-1]

    yield begin
    for one in opened:
        put_away(one.process)


# --- going on ------------------------------------------------------------------------------------------------------


@needs_tmux
@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_what_was_said_is_shown_again_and_the_id_on_leaving(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    marvin_model_server.script(text("The first answer is `code`."), text("The second."), text("The third."))
    with Screen(marvin, columns=columns) as screen:
        for line, answer in (("ask one", "The first answer"), ("ask two", "The second.")):
            screen.type(line)
            screen.press("Enter")
            screen.until(answer)
            screen.at_prompt("")
        screen.press("C-d")
        assert screen.ended() == 0
        identity = marvin.session_files()[-1].stem
        assert f"--resume {identity}" in "".join(screen.everything())
    with Screen(marvin, "--resume", identity, columns=columns) as screen:
        rows = "\n".join(screen.everything())
        order = ["> ask one", "The first answer is", "> ask two", "The second.", "Continuing the session"]
        places = [rows.index(expected) for expected in order]
        assert places == sorted(places)
        assert [rows.count(expected) for expected in order[:4]] == [1, 1, 1, 1], (
            "nothing occurs twice with different values"
        )
        screen.type("ask three")
        screen.press("Enter")
        screen.until("The third.")
    said = [message["content"] for message in conversation(marvin_model_server)]
    assert said == ["ask one", "The first answer is `code`.", "ask two", "The second.", "ask three"]


FRUIT = (("about fruit", "Apples are red."), ("about trees", "Pears are green."), ("about roots", "Carrots."))


def told_of_fruit(screen: Screen) -> None:
    """Three sessions, and the list to pick one."""
    for count, (line, answer) in enumerate(FRUIT, 1):
        screen.type(line)
        screen.press("Enter")
        screen.until(answer)
        screen.at_prompt("")
        screen.type("/clear")
        screen.press("Enter")
        emptied(screen, count)
        screen.at_prompt("")
    screen.type("/resume")
    screen.press("Enter")
    chosen(screen, "about roots")


def emptied(screen: Screen, times: int) -> None:
    """Wait until the chat has said so often that its conversation is empty."""
    said = "The conversation is empty."
    wait_until(lambda: "\n".join(screen.everything()).count(said) == times, f"{times} times empty")


def chosen(screen: Screen, title: str) -> None:
    """Wait until this one of the list is the one that Enter takes."""
    wait_until(lambda: any(row.startswith(f"> {title}  2") for row in screen.rows()), f"{title} in the list")


@needs_tmux
@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_session_is_picked_with_arrow_keys_and_shown_again(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    marvin_model_server.script(*(text(answer) for _, answer in FRUIT))
    with Screen(marvin, columns=columns) as screen:
        told_of_fruit(screen)
        shown = screen.until("Which session?")
        assert [bool(re.search(r"about \w+ +\d{4}-\d\d-\d\d", row)) for row in shown].count(True) == 3, "with times"
        screen.press("Down")
        chosen(screen, "about trees")
        screen.resize(columns - 10)
        chosen(screen, "about trees")
        screen.press("Down", "Down", "Down", "Up", "Up")
        chosen(screen, "about roots")
        screen.press("End")
        chosen(screen, "about fruit")
        screen.press("Enter")
        screen.until("> about fruit\n■ Apples are red.\nContinuing")
        screen.at_prompt("")
        assert "Which session?" not in "\n".join(screen.everything()), "nothing of the list is left"


@needs_tmux
@pytest.mark.slow
def test_the_list_of_sessions_looks_for_words_and_renames(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(*(text(answer) for _, answer in FRUIT))
    with Screen(marvin) as screen:
        told_of_fruit(screen)
        screen.type("nowhere")
        screen.until("Nothing holds 'nowhere'.")
        screen.press("Enter")  # there is nothing to take
        screen.press("Escape")
        chosen(screen, "about roots")
        screen.type("green")
        chosen(screen, "about trees")
        wait_until(lambda: "  about roots  2" not in "\n".join(screen.rows()), "the others to go")
        screen.press("C-r")
        screen.until("New title: about trees_")
        screen.press("C-u")
        screen.type("All of pears")
        screen.press("Enter")
        screen.until("Now called: All of pears")
        chosen(screen, "All of pears")
        screen.press("Enter")
        screen.until("■ Pears are green.\nContinuing")
        screen.at_prompt("")
        screen.type("/resume")
        screen.press("Enter")
        screen.until("  All of pears")
        screen.press("Escape")
        screen.until("No session was chosen.")
        screen.press("C-d")
        assert screen.ended() == 0


@pytest.mark.slow
def test_sequences_in_a_stored_session_do_not_reach_the_terminal(
    marvin: Marvin, marvin_model_server: ModelServer, raw: Any
) -> None:
    evil = "A\x1b]0;PWNED\x07B\x1b[2JC\x9b31mD\x1b]52;c;UFdORUQ=\x07E"
    marvin_model_server.script(calls(("get_working_dir", {}), text=evil), text(evil))
    marvin.run("--non-interactive", "--prompt", f"ask {evil}")
    terminal = raw("--continue")
    shown = terminal.until("works.")
    for sequence in ("\x1b]0;", "\x1b[2J", "\x9b", "\x1b]52;"):
        assert sequence not in shown
    assert "ABCDE" in shown


# --- clipboard, editor, theme --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copy_puts_the_source_of_an_answer_on_the_clipboard(
    marvin: Marvin, marvin_model_server: ModelServer, raw: Any
) -> None:
    answers = ["# Title\n\n**bold** 漢字 `code`", "Second."]
    marvin_model_server.script(*map(text, answers))
    terminal = raw()
    terminal.until("works.")
    for line, answer in (("one", "Title"), ("two", "Second.")):
        terminal.process.send(f"{line}\r")
        terminal.until(answer)
    for line, expected in (("/copy", answers[1]), ("/copy 2", answers[0])):
        terminal.process.send(f"{line}\r")
        shown = terminal.until("Copied")
        (data,) = re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", shown)
        assert b64decode(data).decode() == expected
    terminal.process.sendeof()
    end_of(terminal.process)


@pytest.mark.slow
def test_preferences_are_edited_checked_and_used(marvin: Marvin, marvin_model_server: ModelServer, raw: Any) -> None:
    marvin_model_server.script(text("Noted."))
    editor = marvin.project / "editor.sh"
    editor.write_text('#!/bin/sh\ntest -t 0 && echo "$1" >opened\ncp "$PWD/wanted" "$1"\n')
    editor.chmod(0o700)
    wanted = marvin.project / "wanted"
    file = marvin.config_folder / "profiles" / "main" / "preferences.yaml"
    terminal = raw(EDITOR=str(editor))
    terminal.until("works.")
    wanted.write_text("budget: [moderate\n")
    terminal.process.send("/preferences edit\r")
    terminal.until("your version is in")
    assert (marvin.project / "opened").exists(), "the editor has the terminal"
    assert "moderate" not in file.read_text().replace("# budget: moderate", "")
    wanted.write_text("dietary: [vegan]\n")
    terminal.process.send("/preferences edit\r")
    terminal.until("Saved.")
    assert file.read_text() == "dietary: [vegan]\n"
    assert [path.name for path in file.parent.glob("*draft*")] == []
    terminal.process.send("what do I eat?\r")
    terminal.until("Noted.")
    assert "vegan" in str(marvin_model_server.requests[-1].body)
    terminal.process.send("/preferences edit\r")
    terminal.until("Nothing was changed.")


@pytest.mark.slow
def test_an_editor_that_is_not_there_is_named(marvin: Marvin, raw: Any) -> None:
    terminal = raw(EDITOR="/no/such/editor")
    terminal.until("works.")
    terminal.process.send("/preferences edit\r")
    terminal.until("Set EDITOR")


@pytest.mark.slow
def test_a_theme_is_drawn_with_at_once_and_in_the_next_chat(
    marvin: Marvin, marvin_model_server: ModelServer, raw: Any
) -> None:
    marvin_model_server.script(text("One."), text("Two."))
    (marvin.config_folder / "themes").mkdir()
    (marvin.config_folder / "themes" / "mine.yaml").write_text("user: underline bright-red\n")
    terminal = raw()
    terminal.until("works.")
    terminal.process.send("/theme mine\r")
    terminal.until("The theme is now mine")
    terminal.process.send("hello\r")
    assert "\x1b[4;91m> hello" in terminal.until("One.")
    again = raw()
    again.until("works.")
    again.process.send("hello\r")
    assert "\x1b[4;91m> hello" in again.until("Two.")


# --- a screen reader -----------------------------------------------------------------------------------------------

TABLE = "| name | size |\n|---|---|\n| a.py | 10 |\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["flag", "variable", "setting"])
def test_a_screen_reader_hears_words_alone(
    marvin: Marvin, marvin_model_server: ModelServer, raw: Any, how: str
) -> None:
    marvin_model_server.script(calls(("write_file", {"path": "a.txt", "content": "x\n"}), text="I write."), text(TABLE))
    if how == "setting":
        with (marvin.config_folder / "config.yaml").open("a") as stream:
            stream.write("screen_reader: on\n")
    terminal = raw(
        *(["--screen-reader"] if how == "flag" else []), **({"MARVIN_SCREEN_READER": "1"} if how == "variable" else {})
    )
    terminal.until("You: ")
    terminal.process.send("write it\r")
    heard = terminal.until("1 yes, ")
    terminal.until(": ")
    terminal.process.send("1\r")
    heard += terminal.until("You: ")
    for expected in (
        "Marvin: I write.",
        "Tool write_file. path: a.txt",
        "Tool done in",
        "Row 1. name: a.py; size: 10.",
    ):
        assert expected in heard, expected
    for unwanted in ("\x1b[", "🔧", "|---", "…"):
        assert unwanted not in heard, unwanted
    assert (marvin.project / "a.txt").read_text() == "x\n"
