"""The chat as it is seen, in a terminal emulator: every key, every command, wide characters, windows that change."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from marvin_core.testing import ModelServer, calls, hang_after, paced, text
from marvin_core.ui.commands.core import core_commands
from tests.e2e.support_e2e import Marvin, conversation, wait_until
from tests.e2e.support_screen import Screen

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")]
BOTH_WIDTHS = pytest.mark.parametrize("columns", [40, 120])
FAMILY, ACCENTS, HEBREW, FLAG = "👨‍👩‍👧", "e\u0301a\u0308", "שלום עולם", "🇫🇷"


def said(server: ModelServer) -> list[str]:
    """What the user said, as the last request has it."""
    return [message["content"] for message in conversation(server) if message["role"] == "user"]


# --- keys ----------------------------------------------------------------------------------------------


def at_rest(screen: Screen) -> None:
    """Wait until nothing runs any more that Ctrl+C would end: an answer ends a moment after its last word."""
    said = "There are no background jobs."
    before = screen.everything().count(said)
    screen.type("/jobs")
    screen.press("Enter")
    wait_until(lambda: screen.everything().count(said) > before, said)
    screen.at_prompt("")


@BOTH_WIDTHS
def test_every_key(marvin: Marvin, marvin_model_server: ModelServer, columns: int) -> None:
    """One chat: the keys that edit, complete, find, send, interrupt, clear and leave."""
    (marvin.project / "notes.txt").write_text("inside\n")
    marvin_model_server.script(*(text(f"Answer {number}.") for number in range(1, 8)))
    with Screen(marvin, columns=columns) as screen:
        screen.type("world")
        screen.press("C-a")
        screen.type("hello ")
        screen.press("C-e")
        screen.type("!")
        screen.at_prompt("hello world!")
        screen.press("C-w", "Enter")
        screen.until("Answer 1.")

        screen.type("one two")
        screen.press("C-a", "C-f", "C-f", "C-f", "C-k")
        screen.at_prompt("one")
        screen.type(" gone")
        screen.press("C-u")
        screen.at_prompt("")
        screen.press("C-y")
        screen.at_prompt("one gone")
        screen.press("BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "M-Enter")
        screen.type("two\\")
        screen.press("Enter")
        screen.type("three")
        assert screen.until("three")[-3:] == ["> one", "  two", "  three"]
        screen.press("Enter")
        screen.until("Answer 2.")
        at_rest(screen)

        screen.press("Up", "Up")
        assert screen.until("> one\n  two\n  three")
        screen.press("Up", "Up", "Up")  # through its lines, and beyond
        screen.at_prompt("hello")
        screen.press("Down")
        screen.until("> one\n  two\n  three")
        screen.press("C-c")
        screen.at_prompt("")

        screen.press("C-r")
        screen.type("hel")
        screen.until("backward: hel")
        screen.press("Enter")
        screen.at_prompt("hello")
        screen.press("C-e")
        screen.type(" again")
        screen.press("Enter")
        screen.until("Answer 3.")
        at_rest(screen)
        screen.press("C-r")
        screen.type("tw")
        screen.until("backward: tw")
        screen.press("C-c")
        screen.at_prompt("")

        screen.type("/read_fi")
        screen.press("Tab")
        screen.at_prompt("/read_file")
        screen.type("pa")
        screen.press("Tab")
        screen.type("no")
        screen.press("Tab")
        screen.at_prompt("/read_file path=notes.txt")
        screen.press("Enter")
        screen.until("inside")

        screen.paste("a\nb")
        assert screen.until("  b")[-2:] == ["> a", "  b"]
        screen.press("Enter")
        screen.until("Answer 4.")

        at_rest(screen)
        screen.press("C-c")
        screen.until("(Ctrl+D leaves)")
        screen.type("ab")
        screen.press("C-a", "C-d")
        screen.at_prompt("b")
        screen.press("C-l")
        wait_until(
            lambda: len(screen.rows()) == 2 and screen.rows()[1] == "> b", "a screen with the line and its status"
        )
        screen.press("C-c", "C-d")
        assert screen.ended() == 0
    assert said(marvin_model_server) == ["hello", "one\ntwo\nthree", "hello again", "a\nb"]


def test_tab_right_behind_a_word_takes_what_its_menu_would_show_first(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """A fast hand, or a busy machine: the key comes before the menu of the last letter is there."""
    for name in ("walnut.md", "walnuts.txt"):
        (marvin.project / name).write_text("")
    with Screen(marvin) as screen:
        screen.type("see @waln\t")
        screen.at_prompt("see @walnut.md")
        screen.press("Tab")
        screen.at_prompt("see @walnuts.txt")


@BOTH_WIDTHS
def test_ctrl_c_and_ctrl_d_while_an_answer_comes_in(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    """Ctrl+C ends the answer and gives back what waited, folded as it was; Ctrl+D leaves, and both keep what came."""
    answer = text("Half of it,", chunks=1)
    cut = hang_after(answer.body.index(b'finish_reason": "stop'), answer)
    marvin_model_server.script(cut, cut)
    with Screen(marvin, columns=columns) as screen:
        screen.type("tell me")
        screen.press("Enter")
        screen.until("Half of it,")
        screen.paste("\n".join(f"line {number}" for number in range(30)))
        screen.press("Enter")
        screen.until("(queued) [pasted 30 lines]")
        screen.press("C-c")
        screen.at_prompt("[pasted 30 lines]")
        assert screen.rows()[-4:-2] == ["■ Half of it,", "[Cancelled]"]
        screen.press("C-c")
        screen.type("again")
        screen.press("Enter")
        screen.until("> again\n■ Half of it,")
        screen.press("C-d")
        assert screen.ended() == 0
    assert [block["text"] for message in marvin.messages() for block in message["content"]].count("Half of it,") == 2


def test_a_long_paste_is_seen_folded_and_found_again(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """It is one row on the screen, whole in the message, and behind Up in this chat and in the next."""
    pasted = "\n".join(f"line {number} 漢字" for number in range(10_000))
    marvin_model_server.script(text("Read."), text("Again."), text("Once more."))
    with Screen(marvin) as screen:
        screen.type("look: ")
        screen.paste(pasted)
        screen.at_prompt("look: [pasted 10,000 lines]")
        screen.press("Enter")
        screen.until("Read.")
        screen.press("Up")
        screen.at_prompt("look: [pasted 10,000 lines]")
        screen.press("Enter")
        screen.until("Again.")
        everything = screen.everything()
        assert [row for row in everything if "pasted" in row] == ["> look: [pasted 10,000 lines]"] * 2
        assert not any("line 5000" in row for row in everything)
    assert said(marvin_model_server) == [f"look: {pasted}"] * 2
    with Screen(marvin) as screen:
        screen.press("Up")
        screen.at_prompt("[look: line 0 漢字 line 1 漢字 line … 10,000 lines]")
        screen.press("Enter")
        screen.until("Once more.")
    assert said(marvin_model_server)[-1] == f"look: {pasted}"


# --- characters ----------------------------------------------------------------------------------------


@BOTH_WIDTHS
def test_characters_of_every_width_stay_in_their_place(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    """Typing, moving and erasing among them leaves the row as it should be; an answer shows them as they are."""
    mixed = f"漢字 {FAMILY} {ACCENTS} {HEBREW} {FLAG} 👍🏽 ❤️"
    answer = f"Seen: {mixed}\n" + "a" + "漢字" * columns + "\n" + f"{FAMILY} " * columns + "\nEnd."
    marvin_model_server.script(text(answer, chunks=len(answer) // 3))
    with Screen(marvin, columns=columns, rows=50) as screen:
        for typed, seen in (
            ("漢字b", "漢X字b"),
            (f"{FAMILY}b", "👨\u200c👩\u200cX👧b"),
            (f"{HEBREW}b", "שלום עולXםb"),
            (f"{FLAG}b", "ＦXＲb"),
            ("👍🏽b", "👍X\u3000b"),
        ):
            screen.type(typed)
            screen.press("Left", "Left")
            screen.type("X")
            screen.at_prompt(seen)
            screen.press("C-e", "C-u")
            screen.at_prompt("")
        screen.type("字" * columns)
        wait_until(lambda: "".join(screen.rows()).count("字") == columns, "the whole line, over several rows")
        screen.press("C-u")
        screen.at_prompt("")
        screen.type(mixed)
        screen.press("Enter")
        screen.until("End.")
        screen.at_prompt("")
        rows = screen.rows()
    assert said(marvin_model_server) == [mixed]
    shown = "".join(rows)
    assert shown.count("漢字") + shown.count("字漢") >= columns
    assert sum("Seen: 漢字" in row for row in rows) == 1
    assert shown.count("👧") == columns + 2, "no family is torn or drawn twice"
    assert not any(row.startswith(("\u200d", "👩", "👧")) for row in rows)


# --- windows that change -------------------------------------------------------------------------------


FULL = text("".join(f"full {number}\n" for number in range(40)))
"""Fills the window: where there is room below, tmux moves rows away that no program can reach any more."""


def fill(screen: Screen) -> None:
    """Have every row of the window in use."""
    screen.type("fill it")
    screen.press("Enter")
    screen.until("full 39\n")
    screen.at_prompt("")


def test_no_word_is_lost_or_doubled_when_the_window_changes(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Narrower and wider, again and again, in the middle of a row that comes word by word while a line is typed.

    The text waits while the window changes: the terminal itself takes one after the other in any order.
    """
    words = [[f"r{row}w{number}" for number in range(15)] for row in range(30)]
    pieces = [f"{word} " if number < 14 else f"{word}\n" for row in words for number, word in enumerate(row)]
    answer = paced(0.002, text("", chunks=[*pieces, "End."]))
    sizes, steps = (50, 120, 40, 90, 61, 100, 45), list(answer.steps)
    changed = [threading.Event() for _ in sizes]
    for number, event in reversed(list(enumerate(changed))):
        last = f"r{number * 4}w12".encode()
        place = next(at for at, step in enumerate(steps) if isinstance(step, bytes) and last in step)
        steps.insert(place + 1, event)
    marvin_model_server.script(FULL, answer.replace(steps=tuple(steps)))
    with Screen(marvin, columns=100) as screen:
        fill(screen)
        screen.type("go")
        screen.press("Enter")
        for number, columns in enumerate(sizes):
            screen.until_written(f"r{number * 4}w12")
            screen.resize(columns)
            screen.type(f"{number}")
            screen.at_prompt("0123456"[: number + 1])
            changed[number].set()
        screen.until("End.")
        screen.at_prompt("0123456")
        everything = " ".join(screen.everything())
    seen = re.findall(r"\br\d+w\d+\b", everything)
    sent = [word for row in words for word in row]
    assert seen == sent, (Counter(seen).most_common(3), Counter(sent) - Counter(seen), Counter(seen) - Counter(sent))


def test_a_long_line_that_is_typed_survives_a_narrower_window(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    line = " ".join(f"word{number}" for number in range(14))
    marvin_model_server.script(FULL)
    with Screen(marvin, columns=120) as screen:
        fill(screen)
        screen.type(line)
        screen.at_prompt(line)
        screen.resize(40)
        screen.until("\n> word0 word1 word2 word3 word4 word5 wo\n")
        screen.resize(120)
        wait_until(lambda: [row for row in screen.everything() if "> word" in row] == [f"> {line}"], "the line, once")


def test_nothing_is_left_of_rows_that_once_were_wider(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """In tmux the empty rest of such a row is folded, too."""
    marvin_model_server.script(FULL)
    with Screen(marvin, columns=80) as screen:
        fill(screen)
        screen.type("x" * 70)
        screen.at_prompt("x" * 70)
        screen.press("M-Enter")
        screen.type("below")
        screen.press("Up", "End", "C-u", "Down")
        screen.until("\n>\n  below")
        screen.resize(42)

        def is_drawn() -> bool:  # between two drawings there may be one status row as well, and no line
            rows = [row.rstrip() for row in screen.everything()]
            return sum("context" in row for row in rows) == 1 and [
                row for row in rows[-3:] if "context" not in row
            ] == [">", "  below"]

        wait_until(is_drawn, "one status row, and the line", 20)


def test_nothing_that_was_drawn_over_is_kept_at_the_top_of_the_window(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """Ctrl+L leaves the line in the first row. What is erased from there on goes into the history of tmux."""
    marvin_model_server.script(text("One.\n\nTwo.\n\nThree."))
    with Screen(marvin, columns=80) as screen:
        screen.press("C-l")
        wait_until(lambda: screen.rows()[0].startswith("qwen"), "the line at the top")
        screen.type("go")
        screen.press("Enter")
        screen.until("Three.")
        screen.at_prompt("")

        def is_drawn() -> bool:
            rows = [row.rstrip() for row in screen.everything()]
            return sum("context" in row for row in rows) == 1 and rows.count("> go") == 1

        wait_until(is_drawn, "one status row, and the line once", 20)


# --- profiles ------------------------------------------------------------------------------------------


def test_the_history_follows_the_profile(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Lines that are typed after a switch belong to the new profile, whose lines are then behind Up."""
    work = marvin.config_folder / "profiles" / "work"
    work.mkdir(parents=True)
    (work / "history").write_text("\n# 2026-01-01 10:00:00\n+said at work\n")
    marvin_model_server.script(calls(("switch_profile", {"profile_name": "work"})), text("Switched."), text("Fine."))
    marvin.config("permissions: {allow: [switch_profile]}\n")
    with Screen(marvin) as screen:
        screen.type("use my work profile")
        screen.press("Enter")
        screen.until("Switched.")

        def behind_up() -> bool:
            """The lines change with the end of the answer, a moment after its last word; there is none before this."""
            screen.press("Up")
            return screen.rows()[-1].rstrip() == "> said at work"

        wait_until(behind_up, "the line of the new profile")
        screen.type("!")
        screen.press("Enter")
        screen.until("Fine.")
    assert "+use my work profile" in (marvin.config_folder / "profiles" / "main" / "history").read_text()
    kept = (work / "history").read_text()
    assert "+said at work!" in kept
    assert "+use my work profile" not in kept


# --- commands ------------------------------------------------------------------------------------------


class Typed(NamedTuple):
    """A line, and what must then be seen; `{…}` are not filled in, all of it is literal."""

    line: str
    shown: str


COMMANDS: dict[str, Sequence[Typed]] = {
    "model": [Typed("/model", "* openai-compat/"), Typed("!model nothing/x", "Error: ")],
    "thinking": [Typed("/thinking high", "Thinking: high"), Typed("/thinking", "Thinking: high")],
    "pro": [Typed("!pro", "Write the prompt after it"), Typed("!pro the hard one", "Answer of the model.")],
    "code": [Typed("!code", "Coding mode is on"), Typed("!code", "Coding mode is off.")],
    "mode": [Typed("!mode readonly", "Tools: readonly"), Typed("/mode all", "Tools: all")],
    "mcp": [Typed("/mcp", "There are no servers.")],
    "permissions": [Typed("/permissions", "* ask"), Typed("/permissions nothing", "Error: ")],
    "login": [Typed("/login", "sets the key of a service"), Typed("/login nobody", "Error: ")],
    "logout": [Typed("/logout nobody", "Error: ")],
    "undo": [Typed("/undo list", "There is nothing to undo in this folder"), Typed("/undo x", "Error: ")],
    "rewind": [Typed("/rewind", "/rewind NUMBER"), Typed("/rewind x", "Error: ")],
    "sessions": [Typed("/sessions", "first question (")],
    "resume": [Typed("/resume 1999", "Error: ")],
    "rename": [Typed("/rename", "Error: "), Typed("/rename another name", "now called: another name")],
    "export": [Typed("/export talk.html", "talk.html"), Typed("/export talk.html", "exists.")],
    "copy": [Typed("/copy", "Copied 2"), Typed("/copy x", "Error: ")],
    "diff": [Typed("/diff", "The tools of this session have changed no file, or their changes were undone")],
    "theme": [Typed("/theme contrast", "The theme is now contrast"), Typed("/theme", "* contrast")],
    "clear": [Typed("/clear", "The conversation is empty.")],
    "compact": [Typed("/compact", "There is nothing to compact yet"), Typed("/compact x", "Error: ")],
    "summarize": [Typed(":summarize", "There is nothing to compact yet")],
    "fork": [Typed("/fork", "Continuing in the copy")],
    "tree": [Typed("/tree", "* 1  ")],
    "retry": [Typed("/retry", "Answer of the model.")],
    "jobs": [Typed("/jobs", "There are no background jobs."), Typed("/jobs stop", "Error: ")],
    "steer": [
        Typed(
            "/steer",
            "Write the text after the command: the model reads the text",
        ),
        Typed("/steer left", "No answer is running"),
    ],
    "auto": [Typed("/auto on", "Auto-continue is on"), Typed("/auto", "Auto-continue is off.")],
    "play": [Typed("/play", "Give a budget. Use"), Typed("/play x", "That is not a number.")],
    "preferences": [Typed("preferences", "No preferences are set."), Typed("/preferences x", "Error: ")],
    "profiles": [Typed("profiles", "* main"), Typed("/profiles guest", "Created the profile guest")],
    "saved": [Typed("saved", "This profile has no saved places.")],
    "context": [Typed("/context", "tokens of ")],
    "raw": [Typed("/raw", "Answer of the model."), Typed("/raw on", "as Markdown source"), Typed("/raw x", "Error: ")],
    "usage": [Typed("usage", "Tool calls: "), Typed("/usage", "All sessions: ")],
}
WORDS: dict[str, Sequence[Typed]] = {
    "help": [Typed("/help", "Keys: Enter sends"), Typed("help", "Keys: Enter sends")],
    "COMMAND": [Typed("!echo one$((1+1))", "one2")],
    "shell": [Typed("!shell", "Shell mode is on"), Typed("echo t$((1+1))", "t2"), Typed("exit", "Shell mode is off")],
    "sh": [Typed("!sh", "Shell mode is on"), Typed("!sh", "Shell mode is off")],
    "name": [Typed("/convert_units", "Error: "), Typed("/no_such_tool", "no_such_tool")],
}
ROWS = [*COMMANDS.items(), *WORDS.items()]


def test_every_command_has_a_row_here_and_in_the_how_to() -> None:
    names = {command.name for command in core_commands()}
    assert set(COMMANDS) == names
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "chat.md").read_text()
    assert [name for name in sorted(names) if not re.search(rf"`[/!:]?{name}\b", page)] == []
    cells = [
        row.split("|")[1] for row in page.partition("## Words\n")[2].partition("\n## ")[0].splitlines() if "|" in row
    ]
    documented = {name for cell in cells for name in re.findall(r"`[/!:](\w+)", cell)}
    leaving = {"exit", "quit", "tool"}  # below, and in test_typed_lines
    assert documented <= names | {*WORDS} | leaving


@BOTH_WIDTHS
def test_every_command(marvin: Marvin, marvin_model_server: ModelServer, columns: int) -> None:
    """One chat with each of them: it shows what it should, and the chat goes on."""
    marvin_model_server.script(*[text("Answer of the model.")] * 5)
    with Screen(marvin, columns=columns, rows=60) as screen:
        screen.type("first question")
        screen.press("Enter")
        screen.until("Answer of the model.")
        for _, typed in sorted(ROWS, key=lambda row: row[0] in ("clear", "profiles")):  # these two take things away
            for line, shown in typed:
                screen.press("C-l")
                wait_until(lambda: len(screen.rows()) == 2, "an empty screen but for the status row")
                screen.type(line)
                screen.press("Enter")
                screen.until_seen(shown)
        screen.type("quit")
        screen.press("Enter")
        assert screen.ended() == 0


@BOTH_WIDTHS
def test_what_marvin_says_is_broken_between_words(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    with Screen(marvin, columns=columns, rows=400) as screen:
        screen.type("/help")
        screen.press("Enter")
        screen.until("lists them.")
        rows = screen.at_prompt("")
    words = " ".join(rows).split()
    for word in ("approval", "messages", "conversation", "works.", "parameters,"):
        assert word in words
    assert max(map(len, rows)) < columns


def test_without_a_model_a_suggestion_waits_and_goes_when_something_else_is_typed(unconfigured: Marvin) -> None:
    with Screen(unconfigured) as screen:
        screen.type("run `touch made`")
        screen.press("Enter")
        screen.until("/run_command command='touch made'  (Enter sends this, Tab changes it)")
        screen.type("which folder are we in")
        assert screen.at_prompt("which folder are we in")
        screen.press("Enter")
        screen.until("get_working_dir()")
        screen.at_prompt("")
        screen.type("run `touch made`")
        screen.press("Enter")
        screen.until("(Enter sends this")
        screen.press("Tab")
        screen.at_prompt("/run_command command='touch made'")
        screen.press("C-c")
        screen.at_prompt("/run_command command='touch made'  (Enter sends this, Tab changes it)")
        assert not (unconfigured.project / "made").exists()
        screen.press("Enter")
        screen.until("/view]")
        screen.type("yes")
        screen.press("Enter")
        wait_until((unconfigured.project / "made").exists, "the command")
        screen.at_prompt("")


# --- the end of the terminal ---------------------------------------------------------------------------


def test_nothing_is_lost_when_the_terminal_is_closed_in_the_middle_of_an_answer(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """I15: the session goes on with what came, and the chat log has the question and what came of the answer."""
    answer = text("Half of it,", chunks=1)
    marvin_model_server.script(hang_after(answer.body.index(b'finish_reason": "stop'), answer), text("Welcome back."))
    with Screen(marvin) as screen:
        screen.type("tell me 漢字")
        screen.press("Enter")
        screen.until("Half of it,")
        screen.type("half a li")
        screen.close()
        assert screen.ended() in (0, 130), "told by the end of its input, or by the signal"
    log = json.loads((marvin.config_folder / "profiles" / "main" / "chat_log.json").read_text())
    assert [entry["role"] for entry in log] == ["you", "assistant", "system"]
    assert log[0]["text"] == "tell me 漢字"
    assert log[1]["text"].startswith("Half of it,")
    assert log[2]["text"] == "[Cancelled]"
    with Screen(marvin, "--continue") as screen:
        screen.until(f"Continuing the session {marvin.session_files()[-1].stem}.")
        screen.type("go on")
        screen.press("Enter")
        screen.until("Welcome back.")
    question, answered, following = (message["content"] for message in conversation(marvin_model_server))
    assert (question, following) == ("tell me 漢字", "go on")
    assert answered.startswith("Half of it,")
