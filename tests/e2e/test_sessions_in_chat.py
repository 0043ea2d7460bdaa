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
        order = ["> ask one", "The first answer is", "> ask two", "The second.", "Going on with"]
        places = [rows.index(expected) for expected in order]
        assert places == sorted(places)
        assert [rows.count(expected) for expected in order[:4]] == [1, 1, 1, 1], "nothing is there twice"
        screen.type("ask three")
        screen.press("Enter")
        screen.until("The third.")
    said = [message["content"] for message in conversation(marvin_model_server)]
    assert said == ["ask one", "The first answer is `code`.", "ask two", "The second.", "ask three"]


@needs_tmux
@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 120])
def test_a_session_is_picked_after_a_search_and_shown_again(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    marvin_model_server.script(text("Apples are red."), text("Pears are green."))
    with Screen(marvin, columns=columns, rows=60) as screen:
        for line, answer in (("about fruit", "Apples are red."), ("about trees", "Pears are green.")):
            screen.type(line)
            screen.press("Enter")
            screen.until(answer)
            screen.at_prompt("")
            screen.type("/clear")
            screen.press("Enter")
            screen.until("The conversation is empty.")
        screen.press("C-l")
        screen.type("/resume")
        screen.press("Enter")
        wait_until(lambda: "[1-2, or your own words]" in "".join(screen.rows()[-2:]), "the picker")
        screen.type("apples")
        screen.press("Enter")
        wait_until(lambda: "[1, or your own words]" in "".join(screen.rows()[-2:]), "what was found")
        screen.type("1")
        screen.press("Enter")
        screen.until("> about fruit\n■ Apples are red.")
        screen.until("Going on with")


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
    terminal.until("Nothing has changed.")


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
    terminal.until("The theme is mine")
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
