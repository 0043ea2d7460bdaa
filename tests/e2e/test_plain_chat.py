"""The plain chat, on a real pseudo-terminal and in a pipe."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pexpect
import pytest

from marvin_core.testing import ModelServer, calls, error, hang, hang_after, text
from tests.e2e.support_e2e import (
    LIMIT,
    PROGRAM,
    Marvin,
    assert_loadable,
    block_texts,
    conversation,
    end_of,
    posts,
    put_away,
    told,
    wait_until,
)

pytestmark = pytest.mark.slow

PROMPT = "\r\n> "
CTRL_C, CTRL_D = "\x03", "\x04"
ASKED = "/view] "
"""The end of what stands before the answer to a question about a call."""

Open = Callable[..., "Chat"]


class Chat:
    """A chat on a terminal of its own."""

    def __init__(self, marvin: Marvin, *args: str) -> None:
        self.process: Any = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *args],
            cwd=str(marvin.project),
            env={**marvin.env, "TERM": "dumb"},
            encoding="utf-8",
            timeout=LIMIT,
            dimensions=(40, 200),
        )
        self.process.delaybeforesend = None

    def until(self, expected: str) -> str:
        """Wait for a text; returns what came before it."""
        self.process.expect_exact(expected)
        return str(self.process.before)

    def say(self, line: str) -> str:
        """Type a line and wait for the next prompt; returns what was shown in between."""
        self.process.sendline(line)
        self.until(line)
        return self.until(PROMPT)

    def leave(self) -> int:
        """Ctrl+D at the prompt; returns the exit code."""
        self.process.send(CTRL_D)
        self.process.expect(pexpect.EOF)
        return end_of(self.process)


@pytest.fixture
def chat(marvin: Marvin) -> Iterator[Open]:
    """Opens chats, and closes them after the test."""
    opened: list[Chat] = []

    def open_chat(*args: str, program: Marvin = marvin) -> Chat:
        opened.append(Chat(program, *args))
        return opened[-1]

    yield open_chat
    for one in opened:
        put_away(one.process)


def test_two_prompts_share_their_context(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("Hello Ada."), text("Your name is Ada.\n"))
    terminal = chat("--model", "big")
    greeting = terminal.until(PROMPT)
    assert "big of openai-compat" in greeting
    assert terminal.say("I am Ada").strip() == "Hello Ada."
    assert terminal.say("Who am I? Grüße").strip() == "Your name is Ada."
    assert terminal.leave() == 0
    assert [message["content"] for message in conversation(marvin_model_server)] == [
        "I am Ada",
        "Hello Ada.",
        "Who am I? Grüße",
    ]
    assert len(marvin.session_files()) == 1
    assert_loadable(marvin.messages())


def test_a_prompt_on_the_command_line_is_the_first_line(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """With a terminal the chat stays open after it."""
    marvin_model_server.script(text("First."), text("Second."))
    terminal = chat("Say", "first")
    assert "> Say first" in terminal.until("First.")
    terminal.until(PROMPT)
    assert "Second." in terminal.say("go on")
    assert terminal.leave() == 0


def test_tool_calls_are_shown_with_their_outcome(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(
        calls(("get_working_dir", {}), ("read_file", {"path": "missing.txt"}), text="I look:"), text("Done.")
    )
    terminal = chat()
    terminal.until(PROMPT)
    lines = [line.strip() for line in terminal.say("look").splitlines() if line.strip()]
    assert lines[0] == "I look:"
    assert "🔧 get_working_dir()" in lines
    assert "🔧 read_file(path='missing.txt')" in lines
    assert any(line.startswith("done in") and str(marvin.project.resolve()) in line for line in lines)
    assert any(line.startswith("failed in") and "missing.txt" in line for line in lines)
    assert lines[-1] == "Done."


def test_ctrl_c_ends_the_answer_and_keeps_the_chat(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """What came stays in the conversation."""
    answer = text("Half of it,", chunks=1)
    marvin_model_server.script(hang_after(answer.body.index(b'finish_reason": "stop'), answer), text("Still here."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("tell me")
    terminal.until("Half of it,")
    terminal.process.send(CTRL_C)
    terminal.until("[Cancelled]")
    terminal.until(PROMPT)
    assert "Still here." in terminal.say("are you there?")
    assert "Half of it," in conversation(marvin_model_server)[1]["content"]
    assert terminal.leave() == 0


def test_ctrl_c_ends_a_running_command(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """I15, I25: its processes are gone, and the conversation is one that a service accepts."""
    marvin.config("permissions: {allow: [run_command]}\n")
    command = "echo $$ >> pids; setsid sleep 60 & echo $! >> pids; wait; sleep 60"
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Still here."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("run it")
    wait_until(lambda: len(marvin.pids()) == 2, "the command to start")
    terminal.process.send(CTRL_C)
    terminal.until("[Cancelled]")
    terminal.until(PROMPT)
    marvin.assert_nothing_left()
    assert "Still here." in terminal.say("go on")
    sent = conversation(marvin_model_server)
    assert [message["role"] for message in sent][:3] == ["user", "assistant", "tool"]
    assert "interrupted" in sent[2]["content"]
    assert_loadable(marvin.messages())
    assert terminal.leave() == 0


ENDING = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["sigterm", "hang-up"])
BACKGROUND = "setsid sleep 60 & echo $! >> pids"


def end(terminal: Chat, number: signal.Signals) -> int:
    """Send the signal and wait for the end; returns the exit code."""
    terminal.process.kill(number)
    terminal.process.expect(pexpect.EOF)
    return end_of(terminal.process)


@ENDING
def test_the_end_of_the_terminal_ends_a_running_command(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, number: signal.Signals
) -> None:
    """I15, I25: nothing goes on behind a window that was closed, and the conversation is kept."""
    marvin.config("permissions: {allow: [run_command]}\n")
    command = f"{BACKGROUND}; wait; sleep 60"
    marvin_model_server.script(calls(("run_command", {"command": command})))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("run it")
    wait_until(lambda: len(marvin.pids()) == 1, "the command to start")
    assert end(terminal, number) == 130
    marvin.assert_nothing_left()
    assert_loadable(marvin.messages())


@ENDING
def test_the_end_of_the_terminal_at_the_prompt_ends_the_jobs(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, number: signal.Signals
) -> None:
    """I25."""
    marvin.config("permissions: {allow: [run_command]}\n")
    marvin_model_server.script(calls(("run_command", {"command": BACKGROUND})), text("It runs."))
    terminal = chat()
    terminal.until(PROMPT)
    assert "It runs." in terminal.say("start it")
    assert end(terminal, number) == 130
    marvin.assert_nothing_left()


@ENDING
def test_the_end_of_the_terminal_answers_no(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, number: signal.Signals
) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch ran"})))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("run it")
    terminal.until(ASKED)
    assert end(terminal, number) == 130
    assert list(marvin.project.iterdir()) == []
    assert_loadable(marvin.messages())


def test_the_prompt_may_come_from_a_file(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """It is submitted, and the chat stays open."""
    (marvin.project / "prompt.txt").write_text("what the file says")
    marvin_model_server.script(text("Read."))
    terminal = chat("--prompt-file", "prompt.txt")
    assert "Read." in terminal.until("\n> ") + terminal.until(PROMPT)
    assert conversation(marvin_model_server)[0]["content"] == "what the file says"
    assert terminal.leave() == 0


def test_ctrl_c_at_the_prompt_empties_the_line(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("Only this."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.send("never sent")
    terminal.until("never sent")
    terminal.process.send(CTRL_C)
    assert "Ctrl+D" in terminal.until(PROMPT)
    assert "Only this." in terminal.say("this")
    assert [message["content"] for message in conversation(marvin_model_server)] == ["this"]
    assert terminal.leave() == 0


@pytest.mark.parametrize("word", ["exit", "quit", "/exit"])
def test_words_that_leave(marvin: Marvin, marvin_model_server: ModelServer, chat: Open, word: str) -> None:
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline(word)
    terminal.process.expect(pexpect.EOF)
    assert end_of(terminal.process) == 0
    assert posts(marvin_model_server) == 0


def test_an_error_of_the_service_keeps_the_chat(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(error(401, "wrong key"), text("Better now."))
    terminal = chat()
    terminal.until(PROMPT)
    assert "Error: " in terminal.say("hello")
    assert "Better now." in terminal.say("again")
    assert terminal.leave() == 0


# --- confirmation --------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "runs"), [("yes", True), ("y", True), ("no", False), ("n not now", False)])
def test_a_command_is_run_after_a_yes_only(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, answer: str, runs: bool
) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Done."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("make it")
    assert "touch made" in terminal.until(ASKED)
    for line in ("", "what?", "yes please", "/steer be brief"):
        terminal.process.sendline(line)
        assert "That is not an answer; nothing was run." in terminal.until(ASKED)
    assert not (marvin.project / "made").exists()
    terminal.process.sendline(answer)
    terminal.until("Done.")
    assert (marvin.project / "made").exists() is runs
    output = told(marvin_model_server)[0]
    assert ("exit code 0" in output) is runs
    assert ("was not run" in output) is not runs
    assert ("The user says: not now" in output) is (answer == "n not now")
    terminal.until(PROMPT)
    assert terminal.leave() == 0


def test_ctrl_c_at_a_question_is_no_yes(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """I15: the answer ends, the command has not run, the chat goes on."""
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Still here."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("make it")
    terminal.until(ASKED)
    terminal.process.send(CTRL_C)
    terminal.until("[Cancelled]")
    terminal.until(PROMPT)
    assert not (marvin.project / "made").exists()
    assert "Still here." in terminal.say("go on")
    assert_loadable(marvin.messages())
    assert terminal.leave() == 0


def test_ctrl_d_at_a_question_is_no_yes(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Done."))
    terminal = chat()
    terminal.until(PROMPT)
    terminal.process.sendline("make it")
    terminal.until(ASKED)
    terminal.process.send(CTRL_D)
    terminal.until("Done.")
    assert not (marvin.project / "made").exists()


# --- calling tools by hand -----------------------------------------------------------------------


def test_tools_by_hand_with_a_model(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Types come from the schema; the model is not asked."""
    (marvin.project / "a.txt").write_text("one\ntwo\nthree\n")
    terminal = chat()
    terminal.until(PROMPT)
    assert "Created b.txt" in terminal.say("/create_file path=b.txt content='two words'")
    assert (marvin.project / "b.txt").read_text() == "two words"
    shown = terminal.say("/read_file path=a.txt start_line=2 end_line=2")
    assert "two" in shown
    assert "three" not in shown
    assert posts(marvin_model_server) == 0
    assert terminal.leave() == 0


def test_mistakes_in_calls_by_hand(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    terminal = chat()
    terminal.until(PROMPT)
    assert "create_file" in terminal.say("/create_fil path=a")
    assert "content" in terminal.say("/create_file path=a.txt")
    assert "contents" in terminal.say("/create_file path=a.txt contents=x")
    assert "Quote" in terminal.say("/create_file path=a.txt content='open")
    assert list(marvin.project.iterdir()) == []
    assert posts(marvin_model_server) == 0
    assert terminal.leave() == 0


def test_help_shows_what_works(chat: Open) -> None:
    terminal = chat()
    terminal.until(PROMPT)
    shown = terminal.say("/help")
    for expected in ("/name key=value", "Ctrl+D", "Ctrl+C", "files 10", "tools list"):
        assert expected in shown
    assert terminal.leave() == 0


def test_without_a_provider(unconfigured: Marvin, chat: Open) -> None:
    """It says how to set one, calls tools, and a suggested line is sent by Enter alone."""
    terminal = chat(program=unconfigured)
    greeting = terminal.until(PROMPT)
    assert "/login NAME sets a key" in greeting
    assert "Created a.txt" in terminal.say("/create_file path=a.txt content=hello")
    assert (unconfigured.project / "a.txt").read_text() == "hello"
    shown = terminal.say("run `rm a.txt`")
    assert "Enter alone sends: /run_command command='rm a.txt'" in shown
    assert (unconfigured.project / "a.txt").exists()
    terminal.process.send(CTRL_C)
    terminal.until("(Ctrl+D leaves)")
    terminal.until(PROMPT)
    terminal.process.sendline("")
    terminal.until(PROMPT)
    assert "no background jobs" in terminal.say("/jobs"), "Ctrl+C drops what was suggested"
    terminal.say("run `rm a.txt`")
    terminal.process.sendline("")
    terminal.until(ASKED)
    terminal.say("yes")
    assert not (unconfigured.project / "a.txt").exists()
    assert terminal.leave() == 0


# --- without a terminal --------------------------------------------------------------------------


def test_lines_from_a_pipe(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """--plain works in a pipe and for a screen reader: no prompt signs, no escape codes, ends with the input."""
    marvin_model_server.script(text("Hello."), calls(("get_working_dir", {})), text("There. 漢字"))
    result = marvin.run("--plain", stdin="hi Grüße\n\n/create_file path=a.txt content=x\nwhere?\n".encode())
    assert result.code == 0
    lines = result.text.splitlines()
    assert "Hello." in lines
    assert lines[-1] == "There. 漢字" or lines[-2:] == ["There. 漢字", ""]
    assert not any(line.startswith(">") for line in lines)
    assert re.search(r"\x1b", result.text) is None
    assert (marvin.project / "a.txt").read_text() == "x"
    assert conversation(marvin_model_server)[0]["content"] == "hi Grüße"
    assert b"Traceback" not in result.err


def test_a_silent_model_is_waited_for_as_long_as_the_mode_says(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """I31: `!code` counts for the connection that the chat has already, and so does its end."""
    marvin.config("timeouts: {model_idle: 1.1, model_idle_coding: 1.2}\n")
    marvin_model_server.script(text("Hello."), hang(), hang(), hang())
    result = marvin.run("--plain", stdin=b"hi\none\n!code\ntwo\n!code\nthree\n")
    assert result.code == 0
    assert re.findall(r"sent nothing for (\S+) s", result.text) == ["1.1", "1.2", "1.1"]
    assert "Coding mode is on" in result.text


def test_nothing_that_is_shown_can_steer_the_terminal(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Neither a model, in one piece or in several, nor the output of a command or a file."""
    (marvin.project / "a.txt").write_text("x\x1b[2Jy\tz\n")
    marvin_model_server.script(text("a\x1b[2Jb\x1b]0;title\x07c", chunks=1), text("d\x1b[31me\u202ef", chunks=9))
    result = marvin.run("--plain", stdin=b"one\ntwo\n/read_file path=a.txt\n!printf '\\033[2Jshown'\n")
    assert result.code == 0
    assert "abc\n" in result.text
    assert "xy\tz" in result.text
    assert "shown" in result.text
    assert not set("\x1b\x07\u202e") & set(result.text)


def test_a_question_in_a_pipe_without_an_answer_is_a_no(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Done."))
    result = marvin.run("--plain", stdin=b"make it\n")
    assert result.code == 0
    assert "Done." in result.text
    assert not (marvin.project / "made").exists()


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}])
def test_a_locale_that_is_not_utf8(marvin: Marvin, marvin_model_server: ModelServer, locale: dict[str, str]) -> None:
    marvin_model_server.script(calls(("get_working_dir", {})), text("漢字 🐎"))
    result = marvin.run("--plain", stdin="Grüße\n".encode(), env=locale)
    assert (result.code, b"Traceback" in result.err) == (0, False)
    assert "漢字 🐎" in result.text
    assert conversation(marvin_model_server)[0]["content"] == "Grüße"


def test_a_line_that_is_not_text_is_not_sent(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Fine."))
    result = marvin.run("--plain", stdin=b"gr\xfc\xdfe\nhello\n")
    assert result.code == 0
    assert "not UTF-8" in result.text
    assert "Fine." in result.text
    assert [message["content"] for message in conversation(marvin_model_server)] == ["hello"]
    assert block_texts(marvin.messages()[-1]) == "Fine."
