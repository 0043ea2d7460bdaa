"""The chat with its line editor, on a real pseudo-terminal: every key, at 40 and 120 columns."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, pause, text
from tests.e2e.support_e2e import (
    LIMIT,
    PROGRAM,
    Marvin,
    assert_gone,
    assert_loadable,
    conversation,
    posts,
    told,
    wait_until,
)
from tests.e2e.support_terminal import (
    ALT_ENTER,
    ASKED,
    CTRL_C,
    CTRL_D,
    CTRL_G,
    ENTER,
    TAB,
    UP,
    Open,
    bare,
    hanging,
    prompts,
)

pytestmark = pytest.mark.slow

_COLOUR = re.compile(r"\x1b\[[0-9;]*[34][0-7](;[0-9]+)*m|\x1b\[[0-9;]*9[0-7]m|\x1b\[[0-9;]*1m")


def test_it_says_which_model_answers_and_why(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("Hello **Ada**."), text("Second."))
    terminal = chat("--model", "big")
    assert "big of openai-compat (OPENAI_COMPAT_URL is set)" in bare(terminal.output)
    assert "> hi\n" in terminal.say("hi", "Hello Ada.\n")
    terminal.say("again", "Second.\n")
    assert terminal.leave() == 0
    assert prompts(marvin_model_server) == ["hi", "again"]


@pytest.mark.parametrize("columns", [40, 120])
def test_wide_characters_and_long_lines_are_laid_out(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    """No character is torn, no row is wider than the window, nothing is left over of the line that was typed.

    A paragraph is one row, which the terminal folds: whoever copies it has no line ends in it.
    """
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    words = [f"word{number}" for number in range(40)]
    answer = " ".join(words) + "\n\n- " + "漢字" * 40 + "\n\n🐎🐎 done.\n\n```\n" + "x" * 150 + "\n```\nEnd."
    marvin_model_server.script(text(answer))
    environment = {**marvin.env, "LC_ALL": "C.UTF-8"}
    socket = str(marvin.home.parent / "tmux")

    def tmux(*args: str) -> str:
        command = ["tmux", "-u", "-f", os.devnull, "-S", socket, *args]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=True)
        return done.stdout

    tmux("new-session", "-d", "-x", str(columns), "-y", "50", "-c", str(marvin.project), shlex.join(PROGRAM))
    try:
        wait_until(lambda: "\n>" in tmux("capture-pane", "-p"), "the prompt")
        tmux("send-keys", "-l", "Grüße 漢字 🐎")
        wait_until(lambda: "> Grüße 漢字 🐎" in tmux("capture-pane", "-p"), "what was typed")
        tmux("send-keys", "Enter")
        wait_until(lambda: "End.\nqwen" in tmux("capture-pane", "-p"), "the answer")
        screen = tmux("capture-pane", "-p").splitlines()
        joined = tmux("capture-pane", "-p", "-J").splitlines()
    finally:
        tmux("kill-server")
    assert prompts(marvin_model_server) == ["Grüße 漢字 🐎"]
    shown = "\n".join(screen)
    assert f"■ {' '.join(words)}" in map(str.rstrip, joined)
    assert sum(row.count("漢字") + row.count("字漢") for row in screen) >= 40
    assert "".join(shown.split()).count("漢字") == 41
    assert sum(row.startswith("> Grüße 漢字 🐎") for row in screen) == 1
    assert "🐎🐎 done." in screen
    assert max(len(row) + len(re.findall(r"[漢字🐎]", row)) for row in screen) <= columns
    assert "waiting" not in shown


def test_a_paste_of_ten_thousand_lines_is_one_message(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin_model_server.script(text("Read all of it."))
    terminal = chat()
    pasted = "\r".join(f"line {number} 漢字" for number in range(10_000))
    terminal.type(f"look: \x1b[200~{pasted}\x1b[201~")
    terminal.until("[pasted 10,000 lines]")
    terminal.type(ENTER)
    shown = terminal.until("Read all of it.")
    assert "> look: [pasted 10,000 lines]" in shown
    assert "line 5000" not in bare(terminal.output)
    assert prompts(marvin_model_server) == ["look: " + pasted.replace("\r", "\n")]
    assert terminal.leave() == 0


@pytest.mark.parametrize(
    "report", ["\x1b[31m", "\x1b[0;1;31m", "\x1b[<1;2m", "\x1b[Mabc", "\x1b[<0;99999;1M", "\x1b[7;7R"]
)
def test_colours_in_what_is_typed_do_not_end_the_chat(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, report: str
) -> None:
    """As a terminal sends them that does not mark what is pasted; the line editor takes them for reports of a mouse."""
    marvin_model_server.script(text("Read."))
    terminal = chat()
    terminal.say(f"look {report}here", "Read.")
    assert terminal.leave() == 0


def test_a_short_paste_is_shown_and_sent_as_one_message(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    terminal.type("\x1b[200~one\rtwo\x1b[201~")
    terminal.until("two")
    assert posts(marvin_model_server) == 0
    terminal.type(ENTER)
    terminal.until("Fine.")
    assert prompts(marvin_model_server) == ["one\ntwo"]


def test_lines_of_one_message(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Alt+Enter, and a backslash at the end, begin a new line."""
    marvin_model_server.script(text("Fine."))
    terminal = chat()
    for keys in (f"one{ALT_ENTER}", f"two\\{ENTER}"):  # in one piece they would be a paste
        terminal.type(keys)
        terminal.until(keys[:3])
        time.sleep(0.3)
    terminal.type(f"three{ENTER}")
    terminal.until("Fine.")
    assert prompts(marvin_model_server) == ["one\ntwo\nthree"]


def test_a_line_typed_during_an_answer_follows_it(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """I17: it is said to be queued, and sent when the answer is complete, which it does not break up."""
    queued = threading.Event()
    marvin_model_server.script(pause(queued, text("First answer.")), text("Second answer."))
    terminal = chat()
    terminal.type(f"one{ENTER}")
    terminal.until("waiting for an answer")
    terminal.type(f"two{ENTER}")
    terminal.until("(queued) two")
    assert posts(marvin_model_server) <= 1
    queued.set()
    shown = terminal.until("Second answer.")
    assert shown.index("First answer.\n") < shown.index("> two\n") < shown.index("Second answer.")
    assert prompts(marvin_model_server) == ["one", "two"]
    assert terminal.leave() == 0


def test_steering_is_read_in_the_middle_of_an_answer(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """It goes along with the outputs of the tools, and is no prompt of its own."""
    steered = threading.Event()
    marvin_model_server.script(pause(steered, calls(("get_usage", {}), text="Working.")), text("Metric, then."))
    terminal = chat()
    terminal.type(f"one{ENTER}")
    terminal.until("waiting for an answer")
    # That is shown before the request is made, which steering up to then would still be part of.
    wait_until(lambda: posts(marvin_model_server), "the request")
    terminal.type(f"/steer use metric{ENTER}")
    terminal.until("(the model reads this with its next request) use metric")
    assert posts(marvin_model_server) == 1
    steered.set()
    terminal.until("Metric, then.")
    assert [message["role"] for message in conversation(marvin_model_server)] == ["user", "assistant", "tool", "user"]
    assert prompts(marvin_model_server) == ["one", "use metric"]
    assert terminal.leave() == 0


def test_ctrl_c_ends_an_answer_and_gives_back_what_waited(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """I17: what came stays; a queued line is not sent behind the user's back, and not lost."""
    marvin_model_server.script(hanging("Half of it,"), text("Still here."))
    terminal = chat()
    terminal.type(f"tell me{ENTER}")
    terminal.until("Half of it,")
    terminal.type(f"follow up{ENTER}")
    terminal.until("(queued) follow up")
    terminal.type(CTRL_C)
    terminal.until("> follow up")
    # What is below may have been drawn once more in between; test_chat_screen looks at what is seen then.
    drawn = r"Half of it,\n(\(queued\) follow up\nqwen.*\n> ?)*\[Cancelled\]"
    assert re.search(drawn, terminal.until("[Cancelled]"))
    assert posts(marvin_model_server) == 1
    terminal.type(ENTER)
    terminal.until("Still here.")
    assert prompts(marvin_model_server) == ["tell me", "follow up"]
    assert "Half of it," in conversation(marvin_model_server)[1]["content"]
    assert terminal.leave() == 0


def test_ctrl_c_at_the_prompt(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """It empties a line with text; on an empty one it says how to leave. An interrupt by signal does the same."""
    marvin_model_server.script(text("Only this."))
    terminal = chat()
    terminal.type("never sent")
    terminal.until("sent")
    terminal.type(f"{CTRL_C}this{ENTER}")
    terminal.until("Only this.")
    assert prompts(marvin_model_server) == ["this"]
    terminal.press_until(CTRL_C, "Ctrl+D leaves")  # the answer is shown before it is over, and then ended by this
    terminal.type("")
    terminal.process.kill(signal.SIGINT)
    terminal.until("Ctrl+D leaves")
    assert terminal.leave() == 0


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("yes", True), ("n", False), ("no, use npm", False)])
def test_a_question_is_answered_below_it(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open, answer: str, runs: bool
) -> None:
    """What was being typed when it came is no answer, and is there again afterwards."""
    drafted = threading.Event()
    marvin_model_server.script(pause(drafted, calls(("run_command", {"command": "touch made"}))), text("Done."))
    terminal = chat()
    terminal.type(f"make it{ENTER}")
    terminal.until("waiting")
    terminal.process.send("my dra")
    terminal.until("my dra")
    drafted.set()
    terminal.until("(There is an open question above. Press Ctrl+G to answer; this line is kept.)")
    terminal.type("ft")
    terminal.until("ft")
    terminal.type(CTRL_G)
    terminal.until(ASKED)
    terminal.say("what?", "That is not an answer; nothing was run.")
    assert not (marvin.project / "made").exists()
    terminal.say(answer, "Done.")
    terminal.until("> my draft")
    assert (marvin.project / "made").exists() is runs
    assert ("The user says: use npm" in told(marvin_model_server)[0]) is ("npm" in answer)


def test_a_line_that_is_older_than_the_question_goes_its_own_way(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """`y` and Enter, pressed for something else, run nothing."""
    typed = threading.Event()
    marvin_model_server.script(
        pause(typed, calls(("run_command", {"command": "touch made"}))), text("Done."), text("Later.")
    )
    terminal = chat()
    terminal.type(f"make it{ENTER}")
    terminal.until("waiting")
    terminal.process.send("y")
    terminal.until("y")
    typed.set()
    terminal.until("(There is an open question above. Press Ctrl+G to answer; this line is kept.)")
    terminal.type(ENTER)
    terminal.until("(queued) y")
    assert not (marvin.project / "made").exists()
    terminal.until(ASKED)
    terminal.say("no", "Later.")
    assert not (marvin.project / "made").exists()
    assert prompts(marvin_model_server) == ["make it", "y"]


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_keys_at_a_question_are_no_yes(marvin: Marvin, marvin_model_server: ModelServer, chat: Open, key: str) -> None:
    """I15: Ctrl+C ends the answer, Ctrl+D only says no; the chat goes on."""
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Still here."))
    terminal = chat()
    terminal.say("make it", ASKED)
    terminal.type(key)
    if key == CTRL_C:
        terminal.until("[Cancelled]")
        terminal.say("go on", "Still here.")
    else:
        terminal.until("Still here.")
    assert not (marvin.project / "made").exists()
    assert_loadable(marvin.messages())
    assert terminal.leave() == 0


def test_tools_edits_and_errors_are_shown(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    (marvin.project / "a.txt").write_text("one\n")
    edit = {"path": "a.txt", "old_str": "one", "new_str": "two"}
    marvin_model_server.script(calls(("apply_patch", edit), ("read_file", {"path": "missing"})), text("Done."))
    marvin.config("permissions: {allow: [apply_patch]}\n")
    terminal = chat()
    terminal.say("go", "Done.\n")
    raw = terminal.output
    lines = [line.strip() for line in bare(raw).splitlines()]
    assert {"-one", "+two"} <= set(lines)
    assert "\x1b[31m-one" in raw
    assert "\x1b[32m+two" in raw
    assert any("🔧 apply_patch(path='a.txt'" in line for line in lines)
    assert any(re.search(r"failed in \d+\.\d s: .*missing", line) for line in lines)


def test_the_terminal_closed_in_the_middle_of_an_answer(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    """I15, I25: the session is kept, and no process is left."""
    marvin.config("permissions: {allow: [run_command]}\n")
    command = "setsid sleep 60 & echo $! >> pids; wait; sleep 60"
    marvin_model_server.script(calls(("run_command", {"command": command})))
    terminal = chat()
    terminal.type(f"run it{ENTER}")
    wait_until(lambda: len(marvin.pids()) == 1, "the command to start")
    own = terminal.process.pid
    terminal.process.ptyproc.fileobj.close()  # what a window does that is closed: the kernel sends SIGHUP
    code = os.waitstatus_to_exitcode(os.waitpid(own, 0)[1])
    terminal.process.closed = terminal.process.ptyproc.closed = terminal.process.ptyproc.terminated = True
    assert code == 130
    assert_gone([own])
    marvin.assert_nothing_left()
    assert_loadable(marvin.messages())


def test_a_window_that_changes_its_size(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """SIGWINCH: what Marvin says next is as wide as the window is then."""
    marvin_model_server.script(text("word"))
    terminal = chat(columns=120)
    terminal.say("/help", "lists them.")
    assert max(map(len, bare(terminal.output).splitlines())) > 80
    terminal.process.setwinsize(24, 40)
    terminal.type("/help")
    terminal.until("/help")
    terminal.type(ENTER)
    _, sent, shown = terminal.until("lists them.").partition("> /help\n")  # before it a menu is drawn, and erased
    assert sent
    assert max(map(len, shown.splitlines())) <= 40
    assert terminal.leave() == 0


def test_no_color(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("# Title\n**bold** and `code`"))
    terminal = chat(NO_COLOR="1")
    terminal.say("hi", "# Title\n**bold** and `code`\n")
    assert terminal.leave() == 0
    assert _COLOUR.search(terminal.output) is None


def test_headings_and_code_have_colours(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("# Title\n**bold** and `code`"))
    terminal = chat()
    terminal.say("hi", "Title\nbold and code\n")
    assert "\x1b[1;4mTitle\x1b[0m" in terminal.output
    assert "\x1b[1mbold\x1b[0m and \x1b[36mcode\x1b[0m" in terminal.output


def test_a_model_cannot_steer_the_terminal(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("a\x1b[2Jb\x1b]0;title\x07c\rd\u202ee"))
    terminal = chat()
    terminal.say("hi", "abcde")
    for code in ("\x1b[2J", "\x1b]0;", "\u202e"):
        assert code not in terminal.output


def test_in_script(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Input that comes from a pipe through a terminal, as recorders and expect-like programs have it."""
    if not shutil.which("script"):
        pytest.skip("script is not installed")
    marvin_model_server.script(text("Hello."))
    done = subprocess.Popen(
        ["script", "-qc", shlex.join(PROGRAM), os.devnull],
        cwd=marvin.project,
        env={**marvin.env, "TERM": "xterm", "SHELL": "/bin/sh"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert done.stdin is not None
    assert done.stdout is not None
    done.stdin.write(b"hi\n")
    done.stdin.flush()
    shown = b""
    while b"Hello." not in shown and (more := os.read(done.stdout.fileno(), 65_536)):
        shown += more
    assert "Hello." in bare(shown.decode())
    done.communicate(b"exit\n", timeout=LIMIT)
    assert done.returncode == 0


def test_a_dumb_terminal_gets_plain_lines(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("# Hello."))
    terminal = chat(TERM="dumb")
    terminal.say("hi", "# Hello.")
    assert terminal.leave() == 0
    assert "\x1b" not in terminal.output.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")  # readline's own


def test_history_is_kept_between_runs(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("First."), text("Again."))
    terminal = chat()
    terminal.say("Grüße 漢字", "First.")
    assert terminal.leave() == 0
    kept = marvin.config_folder / "profiles" / "main" / "history"
    assert kept.stat().st_mode & 0o777 == 0o600
    terminal = chat()
    terminal.type(UP)
    terminal.until("Grüße 漢字")
    terminal.say("!", "Again.")
    assert prompts(marvin_model_server)[-1] == "Grüße 漢字!"


def test_eight_chats_share_one_history(tmp_path: Path) -> None:
    """No line is lost, however many write."""
    code = (
        "import sys; from pathlib import Path; from marvin_core.ui.plain.line_history import LineHistory\n"
        "history = LineHistory(lambda: Path(sys.argv[1]))\n"
        "for number in range(50): history.store_string(f'{sys.argv[2]}-{number}\\nsecond')\n"
    )
    path = tmp_path / "new" / "history"
    command = [PROGRAM[0], "-c", code, str(path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(8)]
    assert [writer.wait(50) for writer in writers] == [0] * 8
    from marvin_core.ui.plain.line_history import LineHistory

    found = list(LineHistory(lambda: path).load_history_strings())
    assert sorted(found) == sorted(f"{writer}-{number}\nsecond" for writer in range(8) for number in range(50))


def test_eight_chats_lose_nothing_of_one_profile(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Entries of the chat log, preferences and history lines of eight programs that run at once are all there."""
    marvin.config("permissions: {allow: [update_preferences]}\n")
    chats, turns = 8, 3
    values = [f"food{number}" for number in range(chats * turns)]
    for value in values:  # whoever asks next gets the next answer; each prompt ends with one text
        call = ("update_preferences", {"key": "dietary", "action": "add", "value": value})
        marvin_model_server.script(calls(call), text(f"Noted {value}."))
    terminals = [chat(wait=False) for _ in range(chats)]
    for terminal in terminals:
        terminal.ready()
    lines = [[f"chat {number} line {turn}" for turn in range(turns)] for number in range(chats)]
    for turn in range(turns):  # the second and third wait in the queue
        for terminal, mine in zip(terminals, lines, strict=True):
            terminal.enter(mine[turn])
    for terminal in terminals:
        terminal.until_count("Noted ", turns)
    assert [terminal.leave() for terminal in terminals] == [0] * chats

    profile = marvin.config_folder / "profiles" / "main"
    log = json.loads((profile / "chat_log.json").read_text())
    spoken = [entry["text"] for entry in log if entry["role"] == "you"]
    assert sorted(spoken) == sorted(line for mine in lines for line in mine)
    assert [[line for line in spoken if line in mine] for mine in lines] == lines, "each chat's own are in their order"
    answers = [entry["text"] for entry in log if entry["role"] == "assistant"]
    assert sorted(answers) == sorted(f"Noted {value}." for value in values)
    preferences = (profile / "preferences.yaml").read_text()
    assert sorted(re.findall(r"food\d+", preferences)) == sorted(values)
    history = re.findall(r"^\+(.*)$", (profile / "history").read_text(), re.MULTILINE)
    assert sorted(history) == sorted(spoken)
    assert [path.name for path in profile.iterdir() if "damaged" in path.name] == []


def test_completion(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Commands and tools, parameters, files in parameters and behind @."""
    marvin_model_server.script(text("Seen."))
    (marvin.project / "notes 漢.txt").write_text("inside\n")
    (marvin.project / "readme.md").write_text("x\n")
    terminal = chat()
    terminal.type(f"/read_fi{TAB}")
    terminal.until("/read_file")
    terminal.type(f"pa{TAB}")
    terminal.until("path=")
    terminal.type(f"no{TAB}")
    terminal.until("tes 漢.txt'")
    terminal.say("", "inside")
    terminal.type(f"see @readm{TAB}")
    terminal.until("me.md")
    terminal.type(f"now{ENTER}")
    terminal.until("Seen.")
    (prompt,) = prompts(marvin_model_server)
    assert prompt.startswith("see @readme.md now\n\n[Attached: readme.md, 1 line]\nx\n")


def test_shell_lines(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """A command that the user typed is run without a question, and no model sees it; deny rules hold."""
    marvin.config("permissions: {deny: ['run_command(touch never*)']}\n")
    terminal = chat()
    shown = terminal.say("!echo $((6*7)) > made; cat made", "42\n")
    assert "[exit code" not in shown, "nothing failed"
    assert "yes/no" not in shown
    terminal.say("!touch never", "forbids it")
    terminal.say("!sh", "Shell mode is on")
    terminal.say("echo again", "again\n")
    terminal.say("exit", "Shell mode is off")
    assert posts(marvin_model_server) == 0
    assert not (marvin.project / "never").exists()
    terminal.type(f"exit{ENTER}")
    assert terminal.ended() == 0


def test_a_command_of_a_user_is_dispatched(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    marvin_model_server.script(text("Reviewed."))
    folder = marvin.config_folder / "commands"
    folder.mkdir()
    (folder / "check.md").write_text("Check $ARGUMENTS well.\n")
    terminal = chat()
    assert "/check" in terminal.say("/help", "Tools: ")
    terminal.type(f"/che{TAB}")
    terminal.until("/check")
    terminal.type(f"a.py{ENTER}")
    terminal.until("Reviewed.")
    assert "a.py" in prompts(marvin_model_server)[0]
