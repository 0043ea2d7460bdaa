"""Questions about calls in both chats, each on a real pseudo-terminal: what is seen, what runs, what is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, pause, text
from tests.e2e.support_e2e import Marvin, posts, put_away, told
from tests.e2e.support_terminal import CTRL_D, CTRL_G, ENTER, SHIFT_TAB, Terminal, bare

pytestmark = pytest.mark.slow

ASKED = "/view]"
Start = Callable[..., Terminal]


@pytest.fixture(params=["xterm-256color", "dumb"])
def start(request: pytest.FixtureRequest, marvin: Marvin) -> Iterator[Start]:
    """Starts a chat with its first prompt, on a terminal with a line editor and on one without."""
    opened: list[Terminal] = []

    def begin(*args: str, columns: int = 100) -> Terminal:
        opened.append(Terminal(marvin, *args, columns=columns, TERM=request.param))
        opened[-1].ready()
        return opened[-1]

    yield begin
    for one in opened:
        put_away(one.process)


def run_command(command: str) -> Any:
    return calls(("run_command", {"command": command}))


def asked(terminal: Terminal, line: str = "do it") -> str:
    """Send a prompt, and return what is shown up to the question."""
    shown = terminal.say(line, ASKED)
    terminal.asked()
    return shown


def test_a_command_with_terminal_sequences_is_seen_as_it_runs(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    """What a terminal would hide is seen, and a no keeps it from running."""
    (marvin.project / "important").mkdir()
    hidden = "echo hello \x1b]; rm -rf important \x07# done \u202eenod"
    marvin_model_server.script(run_command(hidden), text("Done."))
    terminal = start()
    shown = asked(terminal)
    assert "echo hello \\x1b]; rm -rf important \\x07# done \\u202eenod" in shown
    assert "shown as escapes" in shown
    assert "\u202e" not in terminal.output
    terminal.say("no", "Done.")
    assert (marvin.project / "important").is_dir()


def test_what_is_cut_is_marked_and_can_be_opened(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    lines = [f"echo line{n}" for n in range(60)]
    lines[30] = "rm -rf important"
    marvin_model_server.script(run_command("\n".join(lines)), text("Done."))
    terminal = start()
    _, _, shown = asked(terminal).partition("Run run_command?")  # what stands above it is the header of the call
    assert "| rm -rf important" not in shown
    assert "echo line59" in shown
    assert "left out here; view shows them" in shown
    terminal.say("v", "| rm -rf important")  # the question before is drawn once more, with the key that was typed
    terminal.asked()
    terminal.say("n", "Done.")


def test_the_path_and_the_difference_of_a_write_are_shown(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    (marvin.project / "a.txt").write_text("one\n")
    long = "two\n" + "filler\n" * 2_000
    marvin_model_server.script(
        calls(("read_file", {"path": "a.txt"})),
        calls(("write_file", {"content": long, "path": "a.txt"})),
        calls(("create_file", {"content": "new\n", "path": "sub/b.txt"})),
        calls(("append_file", {"content": "end\n", "path": "a.txt"})),
        calls(("apply_patch", {"path": "a.txt", "old_str": "one", "new_str": "2"})),
        text("Done."),
    )
    terminal = start()
    shown = asked(terminal)
    assert "path: a.txt" in shown
    assert "| -one" in shown
    assert "| +two" in shown
    assert "rows left out here" in shown
    terminal.say("n", "+new")
    terminal.asked()
    assert "path: sub/b.txt" in bare(terminal.output)
    assert "+end" in terminal.say("y", "+end")
    terminal.asked()
    assert "+2" in terminal.say("n", "+2")
    terminal.asked()
    terminal.say("y", "Done.")
    assert (marvin.project / "a.txt").read_text() == "2\n"
    assert (marvin.project / "sub" / "b.txt").read_text() == "new\n"


def test_a_no_with_a_text_reaches_the_model(marvin: Marvin, marvin_model_server: ModelServer, start: Start) -> None:
    marvin_model_server.script(run_command("yarn add x"), text("Done."))
    terminal = start()
    asked(terminal)
    terminal.say("n please use npm instead of yarn", "Done.")
    assert "The user says: please use npm instead of yarn" in told(marvin_model_server)[0]


def test_an_edited_command_runs_and_the_model_hears_of_it(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin_model_server.script(run_command("touch first"), text("Done."))
    terminal = start()
    asked(terminal)
    terminal.say("edit touch second", "Done.")
    assert (marvin.project / "second").exists()
    assert not (marvin.project / "first").exists()
    assert "This ran: touch second" in told(marvin_model_server)[0]


def test_always_stores_the_rule_that_was_shown_and_changed(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin.config("# mine\n")
    marvin_model_server.script(run_command("touch first"), run_command("touch second"), text("Done."))
    terminal = start()
    assert "always stores the rule: run_command(" in asked(terminal)
    terminal.say("a run_command(touch *)", "Done.")
    assert (marvin.project / "second").exists(), "the second one was not asked about"
    assert (marvin.config_folder / "config.yaml").read_text().startswith("# mine\n")
    assert "run_command(touch *)" in (marvin.config_folder / "config.yaml").read_text()
    assert "Allowed in this session:" in terminal.say("/permissions", "/permissions MODE")


def test_several_calls_are_one_list(marvin: Marvin, marvin_model_server: ModelServer, start: Start) -> None:
    three = [("run_command", {"command": f"touch made{n}"}) for n in (1, 2, 3)]
    marvin_model_server.script(calls(*three), text("Done."))
    terminal = start()
    shown = asked(terminal)
    assert "Run these 3 calls?" in shown
    assert [f"{n}. run_command" in shown for n in (1, 2, 3)] == [True, True, True]
    terminal.say("1,3", "Done.")
    assert sorted(path.name for path in marvin.project.iterdir()) == ["made1", "made3"]


def test_a_dangerous_command_looks_different(marvin: Marvin, marvin_model_server: ModelServer, start: Start) -> None:
    marvin_model_server.script(run_command("rm -rf .."), run_command("ls"), text("Done."))
    terminal = start()
    assert "DANGER: this " in asked(terminal)
    assert "type yes in full" in terminal.say("y", "type yes in full")
    terminal.asked()
    assert "DANGER" not in terminal.say("n", "| ls")
    terminal.asked()
    terminal.say("y", "Done.")
    assert marvin.project.exists()


def test_what_was_typed_before_the_question_is_no_answer(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    """A line that was sent before waits its turn, and one that was only begun does not begin the answer."""
    typed = threading.Event()
    marvin_model_server.script(pause(typed, run_command("touch made")), text("Done."), text("Later."))
    terminal = start()
    terminal.say("do it", "do it")
    terminal.process.send(f"yes{ENTER}y")
    terminal.until("yes")
    typed.set()
    terminal.until("run_command?")
    if terminal.process.env["TERM"] != "dumb":
        terminal.until("(There is an open question above. Press Ctrl+G to answer; this line is kept.)")
        terminal.type(CTRL_G)
    terminal.asked()
    assert not (marvin.project / "made").exists()
    terminal.type(f"no{ENTER}")
    terminal.until("Later.")
    assert not (marvin.project / "made").exists()
    assert posts(marvin_model_server) == 3


def test_ctrl_d_refuses_the_rest_of_a_list(marvin: Marvin, marvin_model_server: ModelServer, start: Start) -> None:
    three = [("run_command", {"command": f"touch made{n}"}) for n in (1, 2, 3)]
    marvin_model_server.script(calls(*three), text("Done."))
    terminal = start()
    asked(terminal)
    terminal.say("each", "1 of 3")
    terminal.asked()
    terminal.say("y", "2 of 3")
    terminal.asked()
    terminal.type(CTRL_D)
    terminal.until("Done.")
    assert [path.name for path in marvin.project.iterdir()] == ["made1"]


def test_the_mode_is_shown_at_the_prompt_and_changed_by_a_command(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin_model_server.script(
        calls(("write_file", {"path": "a", "content": "x"})),
        text("Written."),
        calls(("write_file", {"path": "b", "content": "x"})),
        text("Refused."),
    )
    terminal = start()
    terminal.say("/permissions edit", "\nedit >")
    terminal.say("write", "Written.")
    terminal.say("/permissions readonly", "\nreadonly >")
    terminal.say("write", "Refused.")
    assert [path.name for path in marvin.project.iterdir()] == ["a"]
    terminal.say("/permissions ask", "\n>")


def test_the_mode_that_is_told_is_the_one_that_counts_before_any_call_too(marvin: Marvin, start: Start) -> None:
    """A chat is in `auto` where the sandbox holds, which nobody may have looked at yet."""
    del marvin.env["MARVIN_PERMISSION_MODE"]
    assert "* auto " in start("--sandbox", "auto").say("/permissions", "/permissions MODE")
    assert "* ask " in start("--sandbox", "off").say("/permissions", "/permissions MODE")


def test_shift_tab_goes_through_the_modes(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    terminal = Terminal(marvin, columns=120)
    try:
        terminal.ready()
        for mode in ("edit", "auto", "readonly"):
            terminal.type(SHIFT_TAB)
            terminal.until(f"Permission mode {mode}: ")
            terminal.until(f"\n{mode} >")
        terminal.type(SHIFT_TAB)
        terminal.until("Permission mode ask: ")
    finally:
        put_away(terminal.process)


def test_trust_is_asked_for_once_for_this_content(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    terminal = start()  # what is there at the start is asked about before
    (marvin.project / ".mcp.json").write_text("{}")
    assert "is not trusted, and not loaded: you were not asked yet" in terminal.say("/permissions", "/permissions MODE")
    assert "| .mcp.json" in terminal.say("/permissions trust", "[yes/no]")
    terminal.say("yes", "is trusted: you trusted it")
    (marvin.project / ".mcp.json").write_text('{"other": 1}')
    assert "its content has changed" in terminal.say("/permissions", "/permissions MODE")


def test_a_slip_at_always_runs_and_stores_nothing(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin_model_server.script(run_command("touch made"), text("Done."))
    terminal = start()
    asked(terminal)
    terminal.say("a bit later", "is not a rule for run_command")
    terminal.asked()
    terminal.say("no", "Done.")
    assert not (marvin.project / "made").exists()
    assert not (marvin.config_folder / "config.yaml").exists()
