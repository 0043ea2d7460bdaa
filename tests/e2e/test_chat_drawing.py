"""What the chat draws, in a terminal emulator: answers, calls, thinking, and the pager with all of it."""

from __future__ import annotations

import re
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, paced, text
from tests.e2e.support_e2e import Marvin, wait_until
from tests.e2e.support_screen import Screen

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
WIDTHS = pytest.mark.parametrize("columns", [40, 80, 120])
ALL_WIDTHS = pytest.mark.parametrize("columns", [40, 80, 120, 200])
ALLOWED = "permissions: {allow: [run_command]}\nsandbox: off\n"

ANSWER = """\
# A title

Some **bold** words and `code` in a paragraph that is longer than a row of forty columns, so that it is folded \
by the terminal itself, twice at least in a narrow one, and stays one row for whoever copies it.

- one item
- another **item**
  with a second line

```python
def f(x):
    \"\"\"What
    it does.\"\"\"
    return x + 1


for number in range(10):
    print(f(number))
```

| Name | Count |
|---|--:|
| 漢字 | 1,000 |
| b | 2 |

> said by [somebody](https://a.example)

End."""


def go(screen: Screen, line: str, expected: str) -> None:
    """Send a line, and wait until its answer is there and the prompt is empty again."""
    screen.type(line)
    screen.press("Enter")
    screen.until(expected)
    screen.at_prompt("")


def until_near_the_end(screen: Screen, word: str) -> None:
    """Wait until a word is seen close to the prompt, where an answer comes in, and all that is drawn with it."""
    wait_until(lambda: word in "".join(screen.rows()[-9:]), word)
    seen: list[list[str]] = [[]] * 4

    def at_rest() -> bool:
        time.sleep(0.05)
        seen.append(screen.rows())
        return all(rows == seen[-1] for rows in seen[-4:])

    wait_until(at_rest, "a window that is at rest")


def below(screen: Screen, line: str) -> list[str]:
    """The rows below the line that was sent last, without notices, the status row and the prompt.

    On a busy machine other parts of the program may have something to tell, in brackets, at any time.
    """
    rows = [row.rstrip() for row in screen.everything()]
    start = max(place for place, row in enumerate(rows) if row == f"> {line}")
    found: list[str] = []
    notice = False
    for row in rows[start + 1 : -2]:
        if not notice and not row.startswith("("):
            found.append(row)
        else:
            notice = not row.endswith(")")
    return found


def answer_to(line: str, shown: str) -> str:
    """Of what is shown in colours, what follows this line: from the mark to the word that the answer ends with."""
    _, _, rest = shown.rpartition(f"> {line}")
    return re.split(r"\bEnd\.", rest[rest.index("■") :])[0]


@pytest.mark.slow
@ALL_WIDTHS
def test_streamed_it_looks_as_if_it_had_been_printed_at_once(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    """The colours, too; the window changes in the middle, again and again, and has its first width in the end.

    The text waits while the window changes: the terminal itself takes one after the other in any order.
    """
    changes = {"forty": columns + 25, "second": 38, "range": 100, "1,000": columns}
    parts = re.split(f"({'|'.join(changes)})", ANSWER)
    pieces = [piece for part in parts for piece in ([part] if part in changes else re.findall(r"(?s).{1,3}", part))]
    slow = paced(0.001, text("", chunks=pieces))
    steps, changed = list(slow.steps), [threading.Event() for _ in changes]
    for word, event in zip(changes, changed, strict=True):
        place = next(at for at, step in enumerate(steps) if isinstance(step, bytes) and word.encode() in step)
        steps.insert(place + 1, event)
    marvin_model_server.script(text(ANSWER, chunks=1), slow.replace(steps=tuple(steps)))
    with Screen(marvin, columns=columns) as screen:
        go(screen, "at once", "End.")
        whole = below(screen, "at once")
        colored = answer_to("at once", screen.colored())
        screen.type("streamed")
        screen.press("Enter")
        for number, ((word, size), event) in enumerate(zip(changes.items(), changed, strict=True)):
            until_near_the_end(screen, word)
            screen.resize(size)
            screen.type(f"{number}")
            screen.at_prompt("0123"[: number + 1])
            event.set()
        until_near_the_end(screen, "End.")
        wait_until(lambda: len(marvin.messages()) == 4, "the whole answer")
        screen.at_prompt("0123")
        with suppress(AssertionError):
            wait_until(lambda: below(screen, "streamed") == whole, "the last rows to be drawn", 20)
        assert below(screen, "streamed") == whole, "\n".join(screen.everything()[-45:])
        assert answer_to("streamed", screen.colored()) == colored
    assert whole[0] == "■ A title"
    assert "漢字  1,000" in whole
    assert "\x1b[35mdef" in colored


@pytest.mark.slow
def test_an_answer_in_progress_is_seen_as_it_is_typed(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    gate = threading.Event()
    answer = paced(0.0, text("", chunks=["One **bo", "ld** line", " and more."]))
    steps = [*answer.steps]
    place = next(at for at, step in enumerate(steps) if isinstance(step, bytes) and b" and more" in step)
    marvin_model_server.script(answer.replace(steps=(*steps[:place], gate, *steps[place:])))
    with Screen(marvin) as screen:
        screen.type("go")
        screen.press("Enter")
        screen.until("■ One **bold** line\n")
        gate.set()
        screen.until("■ One bold line and more.\n")


@pytest.mark.slow
def test_turns_are_told_apart(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("First."), text("Second."))
    with Screen(marvin) as screen:
        go(screen, "one", "First.")
        go(screen, "two", "Second.")
        assert below(screen, "one") == ["■ First.", "─" * 20, "> two", "■ Second."]
        assert re.search("\x1b\\[1m\x1b\\[32m> one\n\x1b\\[36m■\x1b\\[0m\\S* First", screen.colored()), "both are bold"


@pytest.mark.slow
def test_text_as_it_was_typed(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """`/raw` shows the last answer once more; `/raw on` and the setting have all of them so."""
    marvin_model_server.script(*[text("**bold** and `code`")] * 4)
    with Screen(marvin) as screen:
        go(screen, "one", "bold and code")
        go(screen, "/raw", "**bold** and `code`")
        go(screen, "/raw on", "From now on, answers are shown as Markdown source. /raw off renders them again")
        go(screen, "two", "■ **bold** and `code`")
        go(screen, "/raw off", "From now on, answers are rendered")
        go(screen, "three", "> three\n■ bold and code")
    marvin.config("ui: {markdown: off}\n")
    with Screen(marvin) as screen:
        go(screen, "four", "■ **bold** and `code`")


@pytest.mark.slow
def test_thinking_is_seen_where_it_is_wished(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    thought = "\n".join(f"thought {number}" for number in range(9))
    marvin_model_server.script(text("Well.", thinking=thought), text("So.", thinking=thought))
    with Screen(marvin) as screen:
        go(screen, "one", "Well.")
        assert "thought" not in "\n".join(screen.everything())
    marvin.config("ui: {thinking: on}\n")
    with Screen(marvin) as screen:
        go(screen, "two", "So.")
        assert below(screen, "two") == [
            "Thinking: thought 0", "thought 1", "thought 2", "… 6 more lines. Ctrl+O shows all.", "■ So.",
        ]  # fmt: skip
        screen.press("C-o")
        screen.until("thought 8")


# --- calls ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@WIDTHS
def test_a_command_is_seen_whole_while_it_runs_and_afterwards(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    marvin.config(ALLOWED)
    command = "for n in $(seq 1 40); do echo line $n; done\nwhile [ ! -e go ]; do sleep 0.1; done\necho end of it"
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Done."))
    with Screen(marvin, columns=columns) as screen:
        screen.type("go")
        screen.press("Enter")
        rows = screen.until("     line 40")
        assert [row.strip() for row in rows if "     line" in row] == [
            "line 1",
            "line 2",
            "line 38",
            "line 39",
            "line 40",
        ]
        assert "     … 35 lines …" in rows
        (marvin.project / "go").touch()
        screen.until("Done.")
        shown = screen.at_prompt("")
    text_shown = "\n".join(row.rstrip() for row in shown)
    assert "     | for n in $(seq 1 40); do echo" in text_shown
    assert "     | while [ ! -e go ]; do sleep 0.1" in text_shown
    assert re.search(r"done in \d+\.\d s: line 1\n     line 2\n     … 36 more lines\. Ctrl\+O shows all\.", text_shown)
    assert "     end of it\n" in text_shown


@pytest.mark.slow
def test_attacks_through_calls_reach_neither_the_terminal_nor_its_title(
    marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path
) -> None:
    marvin.config(ALLOWED)
    attack = "\x1b]0;PWNED\x07\x1b[2J\x1b[?1049h\x1b]52;c;UFdORUQ=\x07\x9b3J"
    table = f"| {attack} | b |\n|---|---|\n| {attack} | x |"
    marvin_model_server.script(
        calls(("run_command", {"command": "printf '\\033]0;PWNED\\007%s\\033[2J\\2333J\\n' a b c d e f g"})),
        text(f"{table}\n\n```py\n{attack}\n```\n# {attack}\n&#27;[2J [a]({attack})\n\nEnd."),
    )
    recorded = tmp_path / "bytes"
    with Screen(marvin) as screen:
        screen.record(recorded)
        go(screen, "go", "End.")
        screen.press("C-o")
        screen.until("q returns")
        screen.press("q")
        screen.at_prompt("")
    sent = recorded.read_bytes()
    before, _, after = sent.partition(b"\x1b[?1049h")
    assert sent.count(b"\x1b[?1049h") == sent.count(b"\x1b[?1049l") == 1, "the pager's own, and no other"
    for code in (b"\x1b]0;", b"\x1b]52", b"\x1b[2J", b"\x1b[3J", b"\x9b", b"PWNED\x07", b"\x1b[?1000", b"\x1b[?1006h"):
        assert code not in before
        assert code not in after.replace(b"\xc2\x9b", b"")


# --- the pager -----------------------------------------------------------------------------------------


@pytest.mark.slow
@WIDTHS
def test_the_pager_has_everything_and_leaves_the_screen_as_it_was(
    marvin: Marvin, marvin_model_server: ModelServer, columns: int
) -> None:
    marvin.config(ALLOWED)
    marvin_model_server.script(calls(("run_command", {"command": "seq -f 'row %g' 1 300"})), text("Done."))
    with Screen(marvin, columns=columns) as screen:
        go(screen, "go", "Done.")
        screen.type("half a li")
        screen.at_prompt("half a li")
        before = screen.everything()
        screen.press("C-o")
        assert screen.until("q returns")[-2].rstrip() == "Done."
        screen.type("/row 150")
        screen.press("Enter")
        screen.until("row 150")
        screen.press("Home")
        screen.until("> go")
        screen.press("PageDown")
        screen.until("row 20")
        screen.resize(columns + 11)
        screen.until("row 20")
        screen.resize(columns)
        screen.type("/nowhere")
        screen.press("Enter")
        screen.until("row has 'nowhere'")
        screen.press("Escape")
        screen.at_prompt("half a li")
        wait_until(lambda: screen.everything() == before, "the chat as it was", 20)
        screen.press("C-c")
        screen.press("C-d")
        assert screen.ended() == 0


@pytest.mark.slow
def test_what_happens_while_the_pager_is_open_is_there_afterwards(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """A question closes it: nobody would see it there."""
    gates = [threading.Event(), threading.Event()]
    asks = calls(("run_command", {"command": "echo asked"}))
    first = paced(0.0, text("", chunks=["Begun.\n\n", "Gone on.\n\n"]))
    steps = list(first.steps)
    place = next(at for at, step in enumerate(steps) if isinstance(step, bytes) and b"Gone" in step)
    first = first.replace(steps=(*steps[:place], gates[0], *steps[place:]))
    marvin_model_server.script(first, asks.replace(steps=(gates[1], *asks.steps)), text("Fine."))
    with Screen(marvin) as screen:
        screen.type("one")
        screen.press("Enter")
        screen.until("Begun.")
        screen.press("C-o")
        screen.until("q returns")
        gates[0].set()
        screen.press("q")
        screen.until("Gone on.")
        screen.at_prompt("")
        assert [row for row in screen.everything() if "Begun." in row] == ["■ Begun."]
        screen.type("two")
        screen.press("Enter")
        screen.until("> two")
        screen.press("C-o")
        screen.until("q returns")
        gates[1].set()
        screen.until("[yes/")
        assert "q returns" not in "\n".join(screen.rows())
        screen.press("C-c")
        screen.until("[Cancelled]")
        screen.at_prompt("")


@pytest.mark.slow
def test_the_chat_ends_from_within_the_pager(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A window that is closed then ends it as any other."""
    marvin_model_server.script(text("Hello."))
    with Screen(marvin) as screen:
        go(screen, "hi", "Hello.")
        screen.press("C-o")
        screen.until("q returns")
        screen.close()
        assert screen.ended() in (0, 129, 130)
    wait_until(lambda: len(marvin.messages()) == 2, "both messages")
