"""Messages that name files, images, documents and tools: what goes to the model, and what the user is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pytest

from marvin_core import ToolResult, tool
from marvin_core.api.messages import Image
from marvin_core.tools.schema import describe
from marvin_core.ui.attach.attaching import MOST_CHARACTERS, Message, with_attached
from marvin_core.ui.attach.candidates import behind_at, by_place
from marvin_core.ui.attach.file_index import FileIndex
from marvin_core.ui.attach.sending import Sending
from marvin_core.ui.typed_lines import Display, LineInterpreter
from tests.support.engine import Made, make, run, says
from tests.support.images import png

PNG = png()


@tool(access=["read"], typed="@")
async def pages(path: Annotated[str, "A document"]) -> ToolResult:
    """Read a document."""
    return ToolResult(content=f"the pages of {path}")


def session_in(tmp_path: Path, **options: object) -> Made:
    made = make(tmp_path, argv=(), **options)  # type: ignore[arg-type]
    made.session.toolbox.add(describe(pages, source="tests"), pages)
    return made


def sent(made: Made, line: str) -> Message:
    async def go() -> Message:
        try:
            return await with_attached(line, made.session)
        finally:
            await made.session.close()

    return run(go())


def test_the_content_of_a_file_goes_along(tmp_path: Path) -> None:
    made = session_in(tmp_path)
    (made.config.working_dir / "app.py").write_text("one\ntwo")
    message = sent(made, "look at @app.py.")
    assert message.text == "look at @app.py.\n\n[Attached: app.py, 2 lines]\none\ntwo\n[End of app.py]"
    assert message.notes == ()


def test_images_documents_and_folders(tmp_path: Path) -> None:
    made = session_in(tmp_path)
    root = made.config.working_dir
    (root / "my pic.png").write_bytes(PNG)
    (root / "a.pdf").write_bytes(b"%PDF-1.4\n")
    (root / "sub" / "inner").mkdir(parents=True)
    (root / "sub" / "x.py").write_text("")
    message = sent(made, 'see @"my pic.png", @a.pdf and @sub')
    assert [image.media_type for image in message.attached.images] == ["image/png"]
    assert "the pages of a.pdf" in message.text
    assert "[Attached: the folder sub, 2 names]\ninner/\nx.py" in message.text


def test_a_file_outside_is_read_once_and_no_tool_reaches_it(tmp_path: Path) -> None:
    made = session_in(tmp_path)
    (tmp_path / "outside.txt").write_text("from outside\n")
    (tmp_path / "outside.pdf").write_bytes(b"%PDF-1.4\n")
    (tmp_path / "home" / "mine.txt").write_text("at home\n")
    message = sent(made, f"@../outside.txt @~/mine.txt @{tmp_path}/outside.pdf")
    assert "from outside" in message.text
    assert "at home" in message.text
    assert "Copy it there to attach it." in message.notes[0]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("@missing.py", "There is no file missing.py, so nothing was attached."),
        ("@a/b", "There is no file a/b"),
        ("ask @ada", ""),
        ("@pipe", "neither a file nor a folder"),
        ("@long.txt", f"its first {MOST_CHARACTERS:,} characters are attached"),
        ("@big.png", "services take"),
        ("@cut.png", "was not attached as an image: it is cut off"),
        ("@closed.txt", "cannot be read"),
    ],
)
def test_what_cannot_be_attached_is_told(tmp_path: Path, line: str, note: str) -> None:
    made = session_in(tmp_path)
    root = made.config.working_dir
    os.mkfifo(root / "pipe")
    (root / "long.txt").write_text("x" * (MOST_CHARACTERS + 1))
    (root / "big.png").write_bytes(PNG + b"\0" * 4_000_000)
    (root / "cut.png").write_bytes(PNG[:-4])
    (root / "closed.txt").symlink_to(root / "closed.txt")
    message = sent(made, line)
    if "closed" in line:
        note = "There is no file closed.txt"
    assert note in "\n".join(message.notes)
    assert bool(message.notes) is bool(note)
    assert message.text.startswith(line)


def test_a_file_comes_before_a_tool_of_its_name(tmp_path: Path) -> None:
    made = session_in(tmp_path)
    assert sent(made, "use @pages").attached.tools == ("pages",)
    made = session_in(tmp_path)
    (made.config.working_dir / "pages").write_text("a file\n")
    message = sent(made, "use @pages")
    assert message.attached.tools == ()
    assert "a file" in message.text


def said(made: Made, *lines: str, answer: str = "no") -> list[str]:
    """What a chat shows for lines; whoever is asked answers so."""
    seen: list[str] = []

    async def confirm(question: str, choices: Sequence[str]) -> str:
        seen.append(question)
        return answer

    async def go() -> None:
        display = Display(
            text=seen.append, output=seen.append, error=seen.append, suggestion=seen.append, confirm=confirm
        )
        interpreter = LineInterpreter(made.session, display)
        for line in lines:
            await interpreter.run(line)
        await made.session.close()

    run(go())
    return seen


def test_an_attached_image_reaches_the_model(tmp_path: Path) -> None:
    made = session_in(tmp_path, provider=None)
    made = make(tmp_path, says("I see."), argv=())
    (made.config.working_dir / "pic.png").write_bytes(PNG)
    assert said(made, "what is on @pic.png") == []
    assert any(isinstance(block, Image) for message in made.parts.conversation.messages for block in message.content)


def test_a_long_message_is_announced_and_one_above_the_window_is_asked_about(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."), says("Fine."), argv=())
    window = made.session.standing().window
    (shown,) = said(made, "x" * 10_001)
    assert shown.startswith("(This message has 10,001 characters, about 2,500 tokens: ")
    made = make(tmp_path, says("Fine."), argv=())
    asked, ended = said(made, "x " * (window * 2 + 10))
    assert "The model will probably refuse it or read only a part. Send it anyway?" in asked
    assert ended == "Nothing was sent. Press Up to get the message back."
    assert not made.parts.conversation.messages
    assert said(make(tmp_path, says("Fine."), argv=()), "x" * 10_000) == []


def test_words_with_a_colon_are_commands_or_slips(tmp_path: Path) -> None:
    made = make(tmp_path, argv=())
    assert "Type a request, or:" in said(made, ":help")[0]
    (slip,) = said(make(tmp_path, argv=()), ":hepl me")
    assert "hepl" in slip
    assert "Did you mean" in slip
    assert made.provider is not None
    assert LineInterpreter(made.session, Display(text=print, output=print, error=print, suggestion=print)).leaves(
        ":quit"
    )


def test_the_output_of_a_command_is_attached_where_the_user_says_so(tmp_path: Path) -> None:
    made = make(tmp_path, argv=())
    shown: list[str] = []

    async def go() -> str:
        sending = Sending(made.session, shown.append, None)
        first = await sending.message("why? @!")
        assert first is not None
        assert first.text == "why? @!"
        sending.ran("make test", "1 failed\n")
        sending.ran("make", "x" * 60_000 + "end")
        message = await sending.message("why does it fail? @!")
        await made.session.close()
        assert message is not None
        return message.text

    text = run(go())
    assert "[Output of the command `make`, which the user ran]" in text
    assert "[10,003 characters left out here]" in text
    assert text.endswith("end\n[End of the output]")
    assert "No !command has run yet" in shown[0]
    assert [line for line in shown if "The model does not see this" in line] == [
        "(The model does not see this output. Write @! in a message to attach it.)"
    ]


def test_what_follows_at(tmp_path: Path) -> None:
    made = session_in(tmp_path)
    root = made.config.working_dir
    (root / "pages.txt").write_text("")
    (root / "my file").write_text("")
    (tmp_path / "beside.txt").write_text("")
    (tmp_path / "home" / "notes.txt").write_text("")

    async def go(word: str) -> list[tuple[str, str]]:
        index = FileIndex(made.session, lambda: None)
        found = [(place.text, place.help.partition(":")[0]) for place in behind_at(word, made.session, index)]
        await index.close()
        return found

    assert asyncio.run(go("pag")) == [("@pages.txt ", ""), ("@pages ", "tool")]
    assert asyncio.run(go('"my')) == [('@"my file" ', "")]
    assert asyncio.run(go("../bes")) == [("@../beside.txt ", "outside")]
    assert asyncio.run(go("~/no")) == [("@~/notes.txt ", "outside")]
    assert asyncio.run(go(f"{tmp_path}/bes")) == [(f"@{tmp_path}/beside.txt ", "outside")]
    assert [place.text for place in by_place("./p", made.session)] == ["./pages.txt"]
    assert [place.text for place in by_place("..", made.session)] == ["../"]
    run(made.session.close())
