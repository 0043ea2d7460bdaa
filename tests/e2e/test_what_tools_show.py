"""What a tool shows and how far it is, in everything that draws it: the same table, picture and links."""

from __future__ import annotations

import shutil

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin
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
