"""What a tool shows and how far it is, in everything that draws it: the same table, picture and links."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from typing import Any

import pexpect
import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, put_away
from tests.e2e.support_screen import Screen

pytestmark = pytest.mark.slow

TOOL = '''
from marvin_core import Call, Image, Link, Picture, Table, Text, ToolContext, ToolResult, tool


@tool(access=["read"])
async def demo(context: ToolContext) -> ToolResult:
    """Show everything."""
    context.progress("counting", 1, 3)
    return ToolResult(
        content=(Text(text="Two files."), Image(media_type="image/png", data="AAAA" * 300)),
        show=[
            Table(columns=("name", "bytes"), rows=[("日本 | <b>.txt", 12), ("b\\x1b[31m.py", 3)], title="Files"),
            Picture(path="plot.png", alt="A plot"),
            Link(url="https://example.com/a?b=<c>", text="More"),
            Link(url="javascript:alert(1)", text="evil"),
        ],
        undo=Call(name="demo", arguments={}),
    )
'''
SHOWN = """\
Files
name            bytes
--------------  -----
日本 | <b>.txt     12
b.py                3
[picture: A plot, plot.png, 4 bytes]
More: https://example.com/a?b=<c>
evil: javascript:alert(1)
[picture: image/png, 900 bytes]
"""


def indented(spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in SHOWN.splitlines())


@pytest.fixture
def demo(marvin: Marvin, marvin_model_server: ModelServer) -> Marvin:
    """Marvin with the tool in its configuration folder."""
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "demo.py").write_text(TOOL)
    (marvin.project / "plot.png").write_bytes(b"plot")
    marvin_model_server.script(calls(("demo", {})), text("Done."))
    return marvin


def test_called_by_hand(demo: Marvin) -> None:
    result = demo.run("tools", "call", "demo")
    assert result.text == f"Two files.\n{SHOWN}"
    assert result.err.decode() == "marvin: demo: counting (33 %)\n"


def test_in_a_non_interactive_run_beside_the_answer(demo: Marvin) -> None:
    result = demo.ask("--tools", "demo")
    assert result.text == "  🔧 demo\nDone.\n"
    assert f"marvin: demo: counting (33 %)\nmarvin: demo shows:\n{indented(2)}MARVIN_COST" in result.err.decode()


def test_as_data(demo: Marvin) -> None:
    events = {event["type"]: event for event in demo.ask("--tools", "demo", "--output-format", "stream-json").events()}
    assert (events["tool_execution_update"]["done"], events["tool_execution_update"]["total"]) == (1.0, 3.0)
    kinds = [item["type"] for item in events["tool_execution_end"]["show"]]
    assert kinds == ["table", "picture", "link", "link", "picture"]


def test_in_a_chat_of_lines_and_afterwards_in_its_session(demo: Marvin) -> None:
    chat = demo.run("--plain", stdin=b"go\n").text
    assert "     demo: counting (33 %)\n" in chat
    assert indented(5) in chat
    (file,) = demo.session_files()
    (output,) = [block for message in demo.messages() for block in message["content"] if block["type"] == "tool_output"]
    assert output["undo"] == {"name": "demo", "arguments": {}}
    assert f"     Two files.\n{indented(5)}" in demo.run("sessions", "show", file.stem).text
    page = demo.run("sessions", "export", file.stem).text
    assert "| 日本 \\| \\<b\\>.txt | 12 |" in page
    assert "[More](<https://example.com/a?b=%3Cc%3E>)" in page
    assert "(javascript:" not in page
    web = demo.run("sessions", "export", file.stem, "--format", "html").text
    assert "<td>日本 | &lt;b&gt;.txt</td><td>12</td>" in web
    assert '<a href="https://example.com/a?b=&lt;c&gt;" rel="noreferrer">More</a>' in web
    assert 'href="javascript' not in web


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_in_a_chat_on_a_terminal(demo: Marvin) -> None:
    with Screen(demo, columns=60) as screen:
        screen.type("/demo")
        screen.press("Enter")
        screen.until("[picture: image/png, 900 bytes]")
        rows = "\n".join(row.rstrip() for row in screen.rows())
    assert indented(5) in rows


# --- pictures on terminals that draw them ----------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 64, 32) + bytes(40)
QUERY = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b]1337;ReportCellSize\x07\x1b[c"


@pytest.fixture
def terminal(demo: Marvin) -> Iterator[Any]:
    """A terminal whose answers are those of the test; the chat in it is ready."""
    (demo.project / "plot.png").write_bytes(PNG)
    process: Any = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:]],
        cwd=str(demo.project),
        env={**demo.env, "TERM": "xterm-kitty"},
        encoding="utf-8",
        timeout=LIMIT,
        dimensions=(24, 80),
    )
    process.delaybeforesend = None
    process.expect_exact("works.")
    yield process
    put_away(process)


def test_a_picture_is_drawn_where_the_terminal_says_that_it_can(terminal: Any) -> None:
    """It is asked once; what is typed while it answers is not lost."""
    for number in range(2):
        terminal.send("/demo")
        terminal.expect_exact("/demo")
        terminal.send("\r")
        terminal.expect_exact("[picture: A plot, plot.png, 64 bytes]")
        if not number:
            terminal.expect_exact(QUERY)
            terminal.send("typed\x1b_Gi=31;OK\x1b\\\x1b[?62;4c")
        terminal.expect_exact("\x1b_Ga=T,f=100,q=2,C=1,c=8,r=2,m=0;iVBOR")
        assert QUERY not in terminal.before
        if not number:
            terminal.expect("(?s)> .*typed")
            terminal.send("\x15")  # Ctrl+U


def test_a_terminal_that_draws_nothing_gets_the_path_alone(terminal: Any) -> None:
    terminal.send("/demo\r")
    terminal.expect_exact(QUERY)
    assert "[picture: A plot, plot.png, 64 bytes]" in terminal.before
    terminal.send("\x1b[?1;2c")
    terminal.send("still here")
    terminal.expect("(?s)> .*still here")
    assert re.search(r"\x1b_G|1337;File", terminal.before + terminal.after) is None


def test_no_terminal_is_asked_where_pictures_are_not_wanted_or_tmux_would_take_it_for_a_title(demo: Marvin) -> None:
    (demo.project / "plot.png").write_bytes(PNG)
    for setting, terminal in (("ui: {pictures: off}\n", "xterm-kitty"), ("", "tmux-256color"), ("", "screen")):
        demo.config(setting)
        process: Any = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:]],
            cwd=str(demo.project),
            env={**demo.env, "TERM": terminal},
            encoding="utf-8",
            timeout=LIMIT,
            dimensions=(24, 80),
        )
        try:
            process.expect_exact("works.")
            process.send("/demo\r")
            process.expect_exact("[picture: image/png, 900 bytes]")
            process.send("next")
            process.expect_exact("next")
            assert "\x1b_G" not in process.before
        finally:
            put_away(process)
