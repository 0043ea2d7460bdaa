"""The bytes that a chat sends to a terminal: nothing but what it has a use for, whatever others say."""

from __future__ import annotations

import re
import threading
import time

import pytest

from marvin_core.testing import ModelServer, calls, error, hang_after, pause, text
from tests.e2e.support_e2e import Marvin
from tests.e2e.support_terminal import CTRL_C, ENTER, SHIFT_TAB, TAB, UP, Open, Terminal, bare
from tests.support.terminal_bytes import ATTACK, strange

pytestmark = pytest.mark.slow

CTRL_L, CTRL_O, CTRL_R, ESC = "\x0c", "\x0f", "\x12", "\x1b"
QUIET = "ui: {attention: [], thinking: on}\n"
HOME = "\x1b[0;0H"
"""Where Ctrl+L puts the line."""


def paged(terminal: Terminal) -> None:
    """Look at everything in the pager."""
    terminal.type(CTRL_O)
    terminal.until("q returns")
    terminal.type("g")
    time.sleep(0.2)
    terminal.type("q")
    terminal.until("\x1b[?1049l", raw=True)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_all_that_a_chat_draws(marvin: Marvin, marvin_model_server: ModelServer, chat: Open, columns: int) -> None:
    """No other screen outside of the pager, nothing that clears the window or what has left it, no mice, no regions."""
    marvin.config("ui: {attention: [bell, notify, title], thinking: on}\ntimeouts: {attention: 0.3}\n")
    gate = threading.Event()
    answer = "# T\n\nSome **bold** `code`\n\n```py\ndef f(): 'x'\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n\nEnd."
    half = text("Half of it,", chunks=1)
    marvin_model_server.script(
        pause(gate, text(answer, thinking="Well.", chunks=20)),
        calls(("write_file", {"path": "a.txt", "content": "one\n"})),
        text("Written."),
        hang_after(half.body.index(b'finish_reason": "stop'), half),
    )
    terminal = chat(columns=columns)
    terminal.say("go", "waiting")
    terminal.type("queued words")
    terminal.until("queued words")
    terminal.type(ENTER)
    terminal.until("(queued)")
    terminal.process.setwinsize(24, columns + 7)
    terminal.process.setwinsize(24, columns)
    gate.set()
    terminal.until("End.")
    terminal.asked()
    terminal.type("y")
    terminal.until("Written.")
    terminal.say("/jobs", "There are no background jobs.")  # the answer is over a moment after its last word
    terminal.type("/the")
    terminal.until("theme")
    terminal.type(f"{TAB}{CTRL_C}{SHIFT_TAB}{CTRL_L}{CTRL_R}go")
    terminal.until("go")
    terminal.type(CTRL_C)
    terminal.say("/copy", "Copied")
    paged(terminal)
    terminal.say("more", "Half of it,")
    terminal.type(ESC)
    terminal.until("[Cancelled]")
    terminal.type(UP)
    terminal.until("more")
    terminal.type(f"{CTRL_C}\x1b[200~{'pasted line' * 20}\r{'x' * 3000}\x1b[201~{CTRL_C}")
    assert terminal.leave() == 0
    sent = terminal.output
    titles = re.findall(
        r"\x1b\]2;marvin[a-z: ]*\x07|\x1b\[2[23];2t|\x1b\]9;Marvin has [a-z .]*\x07|\x1b\]52;c;[\w+/=]*\x07", sent
    )
    assert strange(sent, "\x07", HOME, *titles) == []
    assert sent.count("\x1b[?1049h") == sent.count("\x1b[?1049l") == 1, "the pager's own"
    assert sent.rindex("\x1b[?2004l") > sent.rindex("\x1b[?2004h"), "pastes are no longer marked for the shell"


# --- what others say ---------------------------------------------------------------------------------------


TOOL = f'''
from marvin_core import Link, Picture, Table, ToolContext, ToolError, ToolResult, tool

A = {ATTACK!r}


@tool(access=["read"])
async def demo(context: ToolContext, what: str) -> ToolResult:
    """Show everything."""
    context.progress(A, 1, 3)
    print(A)
    if what == "fail":
        raise ToolError(A)
    return ToolResult(
        content=A,
        show=[Table(columns=(A, "b"), rows=[(A, A)], title=A), Picture(path=A, alt=A), Link(url=A, text=A)],
        details={{"diff": f"--- a/{{A}}\\n+++ b/{{A}}\\n@@ -1 +1 @@ {{A}}\\n-old {{A}}\\n+new {{A}}\\n"}},
    )
'''


def test_answers_calls_outputs_tables_differences_and_errors(
    marvin: Marvin, marvin_model_server: ModelServer, chat: Open
) -> None:
    marvin.config(QUIET)
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "demo.py").write_text(TOOL)
    blocks = (
        f"| {ATTACK} | b |\n|---|---|\n| {ATTACK} | x |\n\n```{ATTACK}\n{ATTACK}\n```\n# {ATTACK}\n\n- {ATTACK}\n"
        f"> {ATTACK}\n\n[a]({ATTACK}) ![b]({ATTACK}) &#27;[2J &#x9b;3J <http://x.y/{ATTACK}>\n\nEnd."
    )
    marvin_model_server.script(
        calls(("demo", {"what": ATTACK}), ("demo", {"what": "fail"}), (f"no{ATTACK}", {"x": ATTACK}), text=ATTACK),
        text(blocks, thinking=ATTACK, chunks=60),
        error(400, {"error": {"message": ATTACK}}),
    )
    terminal = chat()
    terminal.say("go", "End.")
    terminal.say("fail", "Error:")
    terminal.say("/demo what=x", "AB")
    paged(terminal)
    assert terminal.leave() == 0
    asked = ["\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", "\x1b]1337;ReportCellSize\x07", "\x1b[c"]  # for the picture
    assert strange(terminal.output, *asked) == []
    assert "PWNED" not in "".join(re.findall(r"\x1b\][^\x07]*\x07", terminal.output))


def test_questions(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """What is asked about is shown with escapes, and each of the words that answer is harmless."""
    marvin.config(QUIET)
    marvin_model_server.script(
        calls(("run_command", {"command": f"echo {ATTACK}", "description": ATTACK})),
        calls(("write_file", {"path": f"x{ATTACK}.txt", "content": f"{ATTACK}\n"})),
        calls(("run_command", {"command": f"echo {ATTACK}"}), ("write_file", {"path": "b.txt", "content": ATTACK})),
        calls(("ask_user", {"question": ATTACK, "choices": [ATTACK, "b"]})),
        text("Done."),
    )
    terminal = chat()
    terminal.say("go", "/view]")
    for key in ("v", "n", "n", "n"):
        terminal.asked()
        terminal.type(key)
        terminal.until(f"/view] {'view' if key == 'v' else 'no'}")
    terminal.until("or your own words]")
    terminal.say("1", "Done.")
    paged(terminal)
    assert terminal.leave() == 0
    assert strange(terminal.output) == []
    assert "\\x1b]0;PWNED" in bare(terminal.output), "a person sees what is hidden"


def test_titles_names_and_places(marvin: Marvin, marvin_model_server: ModelServer, chat: Open) -> None:
    """Sessions, the picker, what is typed and pasted, branches, folders, models, profiles, commands, files."""
    marvin.config(QUIET)
    folder = marvin.project / f"in{ATTACK.replace('/', '')}"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{ATTACK.replace(chr(10), '')}\n")
    (folder / f"file{ATTACK.replace('/', '')}.txt").write_text("x\n")
    (marvin.config_folder / "commands").mkdir()
    (marvin.config_folder / "commands" / "own.md").write_text(f"---\ndescription: 'Own {ATTACK[:1]}'\n---\n{ATTACK}\n")
    marvin.env["OPENAI_COMPAT_MODEL"] = f"model{ATTACK}"
    marvin_model_server.models[:] = [f"served{ATTACK}", "other"]
    marvin_model_server.script(*[text("Fine.")] * 4)
    marvin.run("--working-dir", str(folder), "--non-interactive", "--prompt", f"title {ATTACK}")
    terminal = chat("--working-dir", str(folder), wait=False)
    terminal.until("works.")
    terminal.until("> ")
    terminal.type(f"\x1b[200~pasted {ATTACK}\x1b[201~")
    terminal.until("pasted")
    terminal.say("", "Fine.")
    for line, shown in (
        ("/sessions", "/resume lets you choose one"),
        ("/model", "switches to another one"),
        ("/rename new title", "now called"),
        ("/rewind", "/rewind NUMBER"),
        ("/tree", "branch"),
        ("/context", "estimates"),
        ("/own", "Fine."),
        ("/export", "Wrote"),
        ("/profiles nobody-such", "Created the profile"),
    ):
        terminal.say(line, shown)
    terminal.type("/model ")
    terminal.until("high")
    terminal.type(f"{CTRL_C}see @fi")
    time.sleep(0.5)
    terminal.type(f"{TAB}{CTRL_C}")
    terminal.say("/resume", "Enter choose")
    terminal.press_until(ENTER, "Continuing")
    paged(terminal)
    assert terminal.leave() == 0
    assert strange(terminal.output) == []
