"""What a demanding user once saw go wrong in the chat, one function for a few of it, in whatever window."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from marvin_core.testing import Answer, ModelServer, calls, hang_after, pause, text
from tests.e2e.support_e2e import Marvin, conversation, posts, wait_until
from tests.e2e.support_screen import Window
from tests.support.listing_servers import StrictServer
from tests.support.strict_services import StrictServer as Refusing
from tests.support.strict_services import wants_one_answer_at_the_end, wants_turns

ALLOWED = "permissions: {allow: [run_command]}\nsandbox: off\n"


class Place(NamedTuple):
    """A program, its model, and how a window with a chat is opened."""

    marvin: Marvin
    server: ModelServer
    open: Callable[..., Window]


Scenario = Callable[[Place], None]


def run_command(command: str) -> Answer:
    return calls(("run_command", {"command": command}))


def begun(words: str) -> Answer:
    """An answer that does not go on after these words."""
    answer = text(words, chunks=1)
    return hang_after(answer.body.index(b'finish_reason": "stop'), answer)


def told(window: Window) -> str:
    """All that is seen, without the places where rows end."""
    return "".join("".join(window.rows()).split())


def until(window: Window, words: str) -> None:
    """Wait until words are seen, wherever rows end."""
    wanted = "".join(words.split())
    try:
        wait_until(lambda: wanted in told(window), words)
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(window.rows())) from None


def send(window: Window, line: str) -> None:
    """Send a line; what was seen before is scrolled away."""
    window.press("C-l")
    wait_until(lambda: len(window.rows()) <= 3, "an empty window but for the line and its status")
    window.type(line)
    window.press("Enter")


def go(window: Window, line: str, words: str) -> None:
    """Send a line, wait for words and for the prompt."""
    send(window, line)
    until(window, words)
    window.at_prompt("")


# --- severe ------------------------------------------------------------------------------------------------


def the_first_minute(place: Place) -> None:
    """S1: where nobody named a model, one that the server has answers, and all texts name that one. S5, S7."""
    marvin = place.marvin
    with StrictServer(models=["fake-1", "fake-2"]) as server:
        marvin.env["OPENAI_COMPAT_URL"] = server.url
        marvin.env.pop("OPENAI_COMPAT_MODEL", None)
        with place.open() as window:
            until(window, "Marvin, with fake-1 of openai-compat")
            go(window, "hi", "■ Here.")
            go(window, "/model", "* openai-compat/fake-1")
            until(window, "openai-compat/fake-2")
            window.type("/model fake")
            until(window, "of the service in use")
            window.press("C-u")
            go(window, "/model fake-2", "Now using openai-compat/fake-2; the conversation is kept.")
            go(window, "again", "■ Here.")
            window.press("C-d")
            assert window.ended() == 0
        assert server.asked_for() == ["fake-1", "fake-2"]
        assert "fake-1" in marvin.run("doctor").text
        with place.open() as window:  # S5: what goes along is said
            until(window, "4 messages of earlier chats in this folder will be sent with the first request")
            window.press("C-d")
            assert window.ended() == 0
        with place.open("--continue") as window:  # S7: going on shows the end of what was said
            until(window, "> again")
            rows = [row.rstrip() for row in window.rows()]
            assert rows.count("> hi") == rows.count("> again") == 1
            assert rows.count("■ Here.") == 2


def a_typo_is_no_prompt(place: Place) -> None:
    """S6, and the flags."""
    for word, meant in {"hlep": "help", "docter": "doctor", "provider": "providers", "--modle": "--model"}.items():
        result = place.marvin.run(word)
        assert (result.code, meant in result.said) == (2, True), result.said
    assert posts(place.server) == 0


def questions(place: Place) -> None:
    """S2: a question touches no draft, takes nothing for a no, and can be answered for the session. M8."""
    gate = threading.Event()
    place.server.script(
        pause(gate, run_command("touch made")), text("One."), run_command("touch made"), text("Two."), begun("Well,")
    )
    with place.open() as window:
        send(window, "begin")
        until(window, "waiting for an answer")
        window.type("please use npm")
        window.at_prompt("please use npm")
        gate.set()
        until(window, "There is an open question above")
        window.type(" instead of yarn")
        window.at_prompt("please use npm instead of yarn")
        assert not (place.marvin.project / "made").exists()
        window.press("C-g")
        until(window, "[yes/session/always/edit/no/view]")
        for line, shown in (
            ("perhaps", "That is not an answer; nothing was run."),
            ("/steer be brief", "next request) be brief"),
        ):
            window.type(line)
            window.press("Enter")
            until(window, shown)
        assert not (place.marvin.project / "made").exists()
        window.type("session")
        window.press("Enter")
        until(window, "■ One.")
        window.at_prompt("please use npm instead of yarn")
        assert (place.marvin.project / "made").exists()
        window.press("C-u")
        window.at_prompt("")
        go(window, "once more", "■ Two.")
        go(window, "/permissions", "Allowed in this session:")
        send(window, "tell")
        until(window, "■ Well,")
        window.press("Escape")
        until(window, "[Cancelled]")
        window.at_prompt("")
        go(window, "/steer x", "No answer is running.")
    assert "be brief" in str(conversation(place.server, 1))


def writes(place: Place) -> None:
    """S4: a file is written after a question with the difference, and the write is undone."""
    place.server.script(calls(("write_file", {"path": "a.txt", "content": "one\ntwo\n"})), text("Written."))
    file = place.marvin.project / "a.txt"
    with place.open() as window:
        send(window, "write")
        until(window, "It would change a.txt:")
        until(window, "/view]")
        assert not file.exists()
        window.press("y")
        until(window, "■ Written.")
        window.at_prompt("")
        until(window, "content='one'… (2 lines)")  # and not the same text twice, once as Python writes it
        assert file.read_text() == "one\ntwo\n"
        go(window, "/diff", "+two")
        go(window, "/undo", "Undone:")
        assert not file.exists()


def outputs(place: Place) -> None:
    """S3: what a tool did is seen, while it runs and afterwards, and all of it behind a key. M1, M2."""
    place.marvin.config(ALLOWED)
    table = "| Name | Size |\n|---|--:|\n| **a** | 1 |\n| `b` | 1,000 |"
    place.server.script(
        run_command("seq -f 'row %g' 30; while [ ! -e go ]; do sleep 0.05; done"),
        text(f"# Done\n\nSee [it](https://a.example).\n\n{table}\n\nEnd."),
    )
    with place.open() as window:
        send(window, "work")
        until(window, "… 25 lines …")
        (place.marvin.project / "go").touch()
        until(window, "End.")
        window.at_prompt("")
        until(window, "… 25 more lines. Ctrl+O shows all.")
        rows = [row.rstrip() for row in window.rows()]
        for row in (
            "■ Done",
            "See it (https://a.example).",
            "Name   Size",
            "────  ─────",
            "a         1",
            "b     1,000",
        ):
            assert row in rows, "\n".join(rows)
        assert "context " in rows[-2], "the status row"
        before = rows
        window.press("C-o")
        until(window, "q returns")
        window.type("/row 17")
        window.press("Enter")
        wait_until(lambda: "row 17" in [row.strip() for row in window.rows()], "row 17")
        window.press("Escape")
        window.at_prompt("")
        rows = [row.rstrip() for row in window.rows()]
        assert rows == before if window.restores else rows[-2:] == before[-2:]


def play(place: Place) -> None:
    """S8: play mode with a server whose template wants turns; as many requests as were said."""
    script = [text(f"Explored {number}.") for number in range(4)]
    with Refusing(*script, rules=(wants_one_answer_at_the_end, wants_turns)) as server:
        place.marvin.env["OPENAI_COMPAT_URL"] = server.url
        with place.open() as window:
            go(window, "/play --turns 3", "Play mode has ended.")
            assert "Error" not in told(window)
        assert server.refused == []
        assert len(server.taken) == 3


# --- medium and small ----------------------------------------------------------------------------------------


def commands(place: Place) -> None:
    """M3, M4, M7, M9, M10, M12, M14, and small ones."""
    place.server.script(text("First."), text("Attached."), text("Shown."))
    (place.marvin.project / "notes.txt").write_text("the code word is heron\n")
    (place.marvin.config_folder / "profiles" / "work").mkdir(parents=True)
    with place.open() as window:
        go(window, "first", "■ First.")
        go(window, "/tree max_depth=1", "notes.txt")
        send(window, "/them")
        until(window, "Did you mean 'theme'")
        assert "'theme' or 'theme'" not in " ".join(window.rows())
        go(window, "/exprot", "Did you mean 'export'")
        for line, shown in (
            ("/copy", "Copied 6 characters"),
            ("/undo", "There is nothing to undo"),
            ("/diff", "The tools of this session have changed no file"),
            ("/login", "sets the key of a service"),
            ("/rename my title", "now called: my title"),
            ("/context", "tokens of "),
            ("/export talk.md", "Wrote "),
            ("/profiles wrok", "There is no profile 'wrok'. Did you mean 'work'?"),
            ("marvin providers", "That is a shell command"),
            ("!cd src", "cd affects only its own command"),
            ("!vim x", "vim needs the whole terminal"),
            ("!echo t$((1+1))", "@! in a message to attach it"),
            (":hlep", "Did you mean 'help'"),
            ("/sessions", "my title (2 messages)"),
        ):
            go(window, line, shown)
        window.type("see @note")
        until(window, "@notes.txt")
        window.press("Tab")
        window.at_prompt("see @notes.txt")
        window.press("Enter", "Enter")  # where several things were listed, the first one takes what was chosen
        until(window, "■ Attached.")
        window.at_prompt("")
        go(window, "what is @! then", "■ Shown.")
        go(window, "/help mode", "Choose the tools")
        send(window, "!mode")
        until(window, "as in ")
        window.at_prompt("")
        example = re.search(r"asin(all,-\w+?)\.", told(window))
        assert example is not None
        go(window, f"!mode {example[1]}", f"Tools: {example[1]}")
    prompts = [message["content"] for message in conversation(place.server) if message["role"] == "user"]
    assert "the code word is heron" in prompts[-2]
    assert "t2" in prompts[-1]


def completions(place: Place) -> None:
    """M7: a menu while somebody types, for commands, what they take, places and tools."""
    (place.marvin.home / "elsewhere.txt").write_text("x\n")
    (place.marvin.project / "src").mkdir()
    (place.marvin.project / "src" / "application.py").write_text("x\n")
    with place.open() as window:
        for typed, shown in (
            ("/permi", "which calls need app"),
            ("/permissions rea", "readonly"),
            ("/thinking h", "high"),
            ("/theme con", "contrast"),
            ("/mode surf", "a set"),
            ("look at @appl", "@src/application.py"),
            ("look at @~/else", "outside"),
            ("look at @read_fi", "tool: "),
        ):
            window.press("C-l")
            window.type(typed)
            until(window, shown)
            window.press("C-u")
            window.at_prompt("")
        window.type("look in ./sr")
        window.press("Tab")
        window.at_prompt("look in ./src/")


def pastes(place: Place) -> None:
    """M13: of a paste that the terminal does not mark nothing is sent by itself."""
    place.server.script(text("Read."))
    lines = [f"line {number} of a long text" for number in range(120)]
    with place.open() as window:
        window.type("".join(f"{line}\r" for line in lines))
        until(window, "[pasted")
        window.press("Enter")
        until(window, "■ Read.")
    (message,) = conversation(place.server)
    assert [line for line in message["content"].split("\n") if line] == lines
    assert posts(place.server) == 1


def a_long_talk(place: Place) -> None:
    """M6: it depends on the window, and not on the number of messages, when older ones become a summary."""
    place.server.script(*(text(f"Answer {number}.") for number in range(25)))
    with place.open() as window:
        for number in range(25):
            go(window, f"question {number}", f"Answer {number}.")
            assert "replaced by a summary" not in told(window)
            assert "compacted" not in told(window)
    assert len(conversation(place.server)) == 49


def without_a_model(place: Place) -> None:
    """M10: what is said there can be done there."""
    for name in ("OPENAI_COMPAT_URL", "OPENAI_COMPAT_MODEL"):
        place.marvin.env.pop(name, None)
    with place.open() as window:
        until(window, "No model is set up yet, so only tools work.")
        go(window, "hello", "Without one only requests that clearly name one tool are run.")
        send(window, "how do I set an API key?")
        until(window, "/model (Enter sends this")
        for wrong in ("timer_start", "set_working_dir"):
            assert wrong not in told(window)
        window.press("C-c")
        window.at_prompt("")
        (place.marvin.project / "notes.txt").write_text("x\n")
        send(window, "what did I change?")
        until(window, "git_diff")
        assert "git_commit" not in told(window)


EVERYWHERE: dict[str, Scenario] = {
    one.__name__: one
    for one in (
        the_first_minute,
        questions,
        writes,
        outputs,
        play,
        commands,
        completions,
        pastes,
        without_a_model,
    )
}
"""What is looked at in every window, at every width."""


def opened(window: Callable[..., Any], marvin: Marvin, columns: int, **options: Any) -> Callable[..., Window]:
    """Opens windows of one kind and width."""
    return lambda *args: window(marvin, *args, columns=columns, rows=50, **options)
