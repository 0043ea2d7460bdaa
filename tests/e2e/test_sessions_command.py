"""`marvin sessions`: finding, reading, exporting and naming what was talked about."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from marvin_core import Image, Message, Text, Thinking, ToolCall, ToolOutput
from marvin_core.messages import tool, user
from marvin_core.session_records import Header
from marvin_core.testing import ModelServer, calls, text
from marvin_core.transcript import Transcript, new_session_id
from marvin_core.waits import Waits
from tests.e2e.support_e2e import Marvin


def folder_of(marvin: Marvin) -> Path:
    return marvin.home / ".local" / "share" / "marvin" / "sessions"


def store(marvin: Marvin, title: str, messages: Sequence[Message], number: int = 0, where: str = "/w") -> str:
    """Write a session as a chat would; returns its id."""
    moment = 1_700_000_000.0 + number
    identity = new_session_id(moment, title)
    header = Header(id=identity, title=title, time=moment, provider="p", model="m", working_dir=where)
    path = folder_of(marvin) / f"{identity}.jsonl"
    transcript = Transcript(path, header, Waits())
    transcript.append(*messages)
    transcript.close()
    os.utime(path, (moment, moment))
    return identity


def answer(*blocks: Text | Thinking | ToolCall) -> Message:
    return Message(role="assistant", content=blocks)


def outputs(call_id: str, *content: Text | Image, is_error: bool = False) -> Message:
    return tool([ToolOutput(call_id=call_id, name="read_file", content=content, is_error=is_error)])


TALK = [
    user("What is in a.txt?"),
    answer(
        Thinking(text="SECRET THOUGHT"),
        Text(text="I look."),
        ToolCall(id="c", name="read_file", arguments='{"path":"a.txt"}'),
    ),
    outputs("c", Text(text="Grüße aus Übersee, 漢字")),
    answer(Text(text="A greeting.")),
]


# --- list ----------------------------------------------------------------------------------------------------------


def test_the_list_has_the_newest_first_with_all_that_tells_them_apart(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(text("One."), calls(("get_working_dir", {})), text("Two."))
    for prompt in ("first request", "second\nrequest"):
        assert marvin.ask(prompt=prompt).code == 0
    first, second = (path.stem for path in marvin.session_files())
    result = marvin.run("sessions", "list")
    assert (result.code, result.err) == (0, b"")
    lines = result.text.splitlines()
    assert [lines[0], lines[2]] == [f"{second}  second request", f"{first}  first request"]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d, openai-compat/.*, 4 messages, ", lines[1])
    assert lines[1].endswith(str(marvin.project.resolve()))
    assert "2 messages" in lines[3]
    assert marvin.run("sessions").out == result.out


def test_times_are_local(unconfigured: Marvin) -> None:
    store(unconfigured, "a chat", TALK)
    assert "2023-11-15 07:13" in unconfigured.run("sessions", "list", env={"TZ": "JST-9"}).text
    assert "2023-11-14 22:13" in unconfigured.run("sessions", "list", env={"TZ": "UTC"}).text


def test_here_lists_only_this_folder(unconfigured: Marvin) -> None:
    here = store(unconfigured, "here", TALK, where=str(unconfigured.project.resolve()))
    store(unconfigured, "there", TALK, 1)
    result = unconfigured.run("sessions", "list", "--here")
    assert [line.split()[0] for line in result.text.splitlines()[::2]] == [here]


def test_damaged_files_are_named_and_the_others_listed(unconfigured: Marvin) -> None:
    good = store(unconfigured, "fine", TALK)
    contents = [b"", b"\x00\xff", b"[1]\n", b'{"type":"session","id":"x","title":5}\n', b'{"type":"message"}\n']
    for number, content in enumerate(contents):
        (folder_of(unconfigured) / f"bad{number}.jsonl").write_bytes(content)
    result = unconfigured.run("sessions", "list")
    assert result.code == 0
    assert good in result.text
    assert result.said.count("is damaged:") == len(contents)
    assert "bad0.jsonl" in result.said
    assert "Traceback" not in result.said


def test_without_sessions_it_says_so(unconfigured: Marvin) -> None:
    result = unconfigured.run("sessions", "list")
    assert (result.code, "no sessions" in result.text) == (0, True)


def test_a_title_cannot_command_the_terminal(unconfigured: Marvin) -> None:
    store(unconfigured, "red \x1b[31m\rand\x07", [user("\x1b]0;x\x07 hi")])
    for words in (["list"], ["show", "2023"], ["search", "hi"]):
        result = unconfigured.run("sessions", *words)
        assert result.code == 0
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", result.text)


def test_a_thousand_sessions_list_at_once(unconfigured: Marvin) -> None:
    talk = [message for _ in range(20) for message in TALK]
    for number in range(1_000):
        store(unconfigured, f"chat {number}", talk, number)
    begun = time.monotonic()
    result = unconfigured.run("sessions", "list")
    assert len(result.text.splitlines()) == 2_000
    empty = time.monotonic()
    unconfigured.run("tools", "list")
    # Compared with a sub-command that reads none of them, since machines differ.
    assert empty - begun < 1.0 + 2 * (time.monotonic() - empty)


# --- show, search, rename ------------------------------------------------------------------------------------------


def test_show_has_what_was_said_and_a_line_for_each_call(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    shown = unconfigured.run("sessions", "show", identity[:12]).text
    for expected in (identity, "p/m", "You: What is in a.txt?", "Marvin: I look.", "read_file", "漢字", "A greeting."):
        assert expected in shown
    assert "SECRET THOUGHT" not in shown


@pytest.mark.parametrize("command", [["show"], ["export"], ["rename"]])
def test_an_unknown_or_ambiguous_id_is_an_error(unconfigured: Marvin, command: list[str]) -> None:
    for number in range(2):
        store(unconfigured, "a chat", TALK, number)
    words = ["new title"] if command == ["rename"] else []
    for given, expected in (("nope", "There is no session 'nope'"), ("2023", "fits 2 sessions")):
        result = unconfigured.run("sessions", *command, given, *words)
        assert (result.code, result.out) == (1, b"")
        assert expected in result.said


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["grüsse"], False),
        (["GRÜßE", "aus"], True),
        (["übersee,"], True),
        (["a\\.txt"], False),
        (["a.txt"], True),
        (["secret"], False),
        (["what is", "in a"], True),
    ],
)
def test_search_looks_through_what_was_said_and_done(unconfigured: Marvin, wanted: list[str], found: bool) -> None:
    identity = store(unconfigured, "a chat", TALK)
    store(unconfigured, "another", [user("unrelated")], 1)
    result = unconfigured.run("sessions", "search", *wanted)
    assert result.code == (0 if found else 1)
    assert [line.split()[0] for line in result.text.splitlines() if line[:1] != " "] == ([identity] if found else [])
    if not found:
        assert "no session holds" in result.said


def test_search_shows_where_and_not_everything(unconfigured: Marvin) -> None:
    store(unconfigured, "a chat", [user(f"{'x ' * 500}the needle {number}\n{'y ' * 500}") for number in range(9)])
    lines = unconfigured.run("sessions", "search", "NEEDLE").text.splitlines()
    assert len(lines) == 5
    assert all("the needle" in line and len(line) < 200 for line in lines[1:4])
    assert "6 messages more" in lines[4]


def test_search_goes_on_past_damaged_files(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    (folder_of(unconfigured) / "bad.jsonl").write_bytes(b"\xff")
    with (folder_of(unconfigured) / f"{identity}.jsonl").open("ab") as stream:
        stream.write(b'{"type":"message","id":"z","parent":"y","message":{"role":5}}\n{half')
    assert identity in unconfigured.run("sessions", "search", "greeting").text


def test_rename_adds_a_title_that_every_reader_takes(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    path = folder_of(unconfigured) / f"{identity}.jsonl"
    before = path.read_bytes()
    assert unconfigured.run("sessions", "rename", identity, "Greetings", "from  overseas").code == 0
    assert path.read_bytes().startswith(before)
    assert f"{identity}  Greetings from overseas\n" in unconfigured.run("sessions", "list").text
    assert "# Greetings from overseas" in unconfigured.run("sessions", "export", identity).text
    assert unconfigured.run("sessions", "search", "from overseas").code == 0
    assert "4 messages" in unconfigured.run("sessions", "list").text
    assert unconfigured.run("sessions", "rename", identity, " ").code == 2


# --- export --------------------------------------------------------------------------------------------------------

SNARES = [
    "plain",
    "```py\nprint(1)\n```",
    "open ```` four\n````md\n```\nnot closed",
    "~~~\nopen tilde",
    "</details><h1>x</h1>",
    "`" * 9,
    "    ```\n    indented",
    "",
]


@pytest.mark.parametrize("snare", SNARES)
def test_no_text_breaks_out_of_its_place_in_the_page(unconfigured: Marvin, snare: str) -> None:
    """A Markdown reader finds the same headings and folded calls whatever was said in between."""
    talk = [
        user(f"a {snare}"),
        answer(Text(text=snare), ToolCall(id="c", name="read_file", arguments=json.dumps({"path": snare}))),
        outputs("c", Text(text=snare)),
        answer(Text(text=f"b\n{snare}")),
        user("the end"),
    ]
    identity = store(unconfigured, "a chat", talk)
    page = unconfigured.run("sessions", "export", identity).text
    tokens = MarkdownIt().parse(page)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert headings == ["a chat", "You", "Marvin", "Marvin", "You"]
    output = next(token.content for token in tokens if token.type == "fence" and token.info == "text")
    assert output.strip("\n") == snare.strip("\n")
    folds = [token for token in tokens if token.type == "html_block" and token.content.startswith("<details>")]
    assert len(folds) == 1


def test_markdown_has_the_talk_and_leaves_the_thinking_out(unconfigured: Marvin) -> None:
    failed = ToolCall(id="d", name="read_file", arguments="{broken")
    picture = Image(media_type="image/png", data="aGk=" * 1000)
    talk = [*TALK, answer(failed), outputs("d", Text(text="no"), picture, is_error=True), answer(Text(text="Sorry."))]
    identity = store(unconfigured, "a *chat*", talk)
    page = unconfigured.run("sessions", "export", identity).text
    assert page.startswith("# a \\*chat\\*\n")
    for expected in (identity, "p/m", "What is in a.txt?", '"path": "a.txt"', "漢字", "{broken", "(failed)", "Sorry."):
        assert expected in page
    assert "image/png" in page
    assert "aGk=" not in page
    assert "SECRET THOUGHT" not in page


def test_json_has_everything(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    data = json.loads(unconfigured.run("sessions", "export", identity, "--format", "json").out)
    assert (data["id"], data["title"], data["parent"]) == (identity, "a chat", "")
    assert [message["role"] for message in data["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert data["messages"][1]["content"][0]["text"] == "SECRET THOUGHT"
    assert unconfigured.run("sessions", "export", identity, "--format", "pdf").code == 2


def test_a_file_is_never_overwritten_unasked(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    target = unconfigured.project / "talk.md"
    assert unconfigured.run("sessions", "export", identity, "--output", "talk.md").out == b""
    first = target.read_text("utf-8")
    assert first == unconfigured.run("sessions", "export", identity).text
    target.write_text("mine")
    again = unconfigured.run("sessions", "export", identity, "--output", "talk.md")
    assert (again.code, target.read_text()) == (2, "mine")
    assert "--force" in again.said
    assert unconfigured.run("sessions", "export", identity, "--output", "talk.md", "--force").code == 0
    assert target.read_text("utf-8") == first
    nowhere = unconfigured.run("sessions", "export", identity, "--output", "none/talk.md")
    assert (nowhere.code, "cannot be written" in nowhere.said) == (1, True)


def test_a_session_with_damaged_lines_is_exported_with_a_warning(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    with (folder_of(unconfigured) / f"{identity}.jsonl").open("ab") as stream:
        stream.write(b"{half")
    result = unconfigured.run("sessions", "export", identity)
    assert result.code == 0
    assert "A greeting." in result.text
    assert "line 6" in result.said


# --- in a chat -----------------------------------------------------------------------------------------------------


def test_the_commands_and_tools_of_sessions_in_a_chat(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("One."), text("Two."), text("Three."), text("Four."))
    lines = ["first", "/retry", "/tree", "/fork", "second", "/sessions", "/clear", "third", "/usage"]
    result = marvin.run("--plain", stdin="\n".join([*lines, ""]).encode())
    assert (result.code, result.said) == (0, "")
    for expected in (
        "One.",
        "Two.",
        "* 2  first → Two.",
        "Going on in the copy",
        "Three.",
        "Four.",
        "4 model requests",
    ):
        assert expected in result.text
    assert len(marvin.session_files()) == 3
    sent = [[m["content"] for m in r.body["messages"] if m["role"] == "user"] for r in marvin_model_server.requests]
    assert sent == [["first"], ["first"], ["first", "second"], ["third"]]
    resumed = marvin.run("--plain", "--continue", stdin=b"/sessions\n")
    assert f"* {marvin.session_files()[-1].stem}" in resumed.text


def test_exit_app_ends_the_chat_with_its_farewell(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(("exit_app", {"message": "See you!"})), text("Fine."), text("never"))
    result = marvin.run("--plain", stdin=b"bye\nmore\n")
    assert result.code == 0
    assert result.text.rstrip().endswith("See you!")
    assert "never" not in result.text
