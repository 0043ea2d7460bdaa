"""`marvin sessions`: finding, reading, exporting and naming what was talked about."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import subprocess
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from marvin_core import Image, Message, Text, Thinking, ToolCall, ToolOutput
from marvin_core.api.messages import tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.export_html import as_html
from marvin_core.sessions.reader import FullTranscript, load
from marvin_core.sessions.records import Header
from marvin_core.sessions.transcript import Transcript, new_session_id
from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import PROGRAM, Marvin

pytestmark = pytest.mark.slow


def folder_of(marvin: Marvin) -> Path:
    return marvin.home / ".local" / "share" / "marvin" / "sessions"


def store(marvin: Marvin, title: str, messages: Sequence[Message], number: int = 0, where: str = "/w") -> str:
    """Write a session as a chat would; returns its id."""
    moment = 1_700_000_000.0 + number
    identity = new_session_id(moment, title)
    header = Header(id=identity, title=title, time=moment, provider="p", model="m", working_dir=where)
    path = folder_of(marvin) / f"{identity}.jsonl"
    transcript = Transcript(path, header, Timeouts())
    transcript.append(*messages)
    transcript.close()
    os.utime(path, (moment, moment))
    return identity


def answer(*blocks: Text | Thinking | ToolCall) -> Message:
    return Message(role="assistant", content=blocks)


def outputs(call_id: str, *content: Text | Image, is_error: bool = False) -> Message:
    return tool([ToolOutput(call_id=call_id, name="read_file", content=content, is_error=is_error)])


KINDS = ("md", "html", "json")
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
    # What it has the processor do, compared with a sub-command that reads none of them, since machines differ.
    begun = computed()
    result = unconfigured.run("sessions", "list")
    assert len(result.text.splitlines()) == 2_000
    empty = computed()
    unconfigured.run("tools", "list")
    assert empty - begun < 5 * (computed() - empty)


def computed() -> float:
    """The seconds of processor time that child processes have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    for given, expected in (("nope", "There is no session 'nope'"), ("2023", "matches 2 sessions")):
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
    title, *speakers = headings
    assert title == "a chat"
    assert [one.partition(", ")[0] for one in speakers] == ["You", "Marvin", "Marvin", "You"], "each with its time"
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


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.mark.parametrize(
    "snare",
    [
        *SNARES,
        "</p></section><script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "&lt;b&gt; &amp;",
        "<!--",
        "]]>",
    ],
)
def test_no_text_becomes_markup_in_the_html(snare: str) -> None:
    talk = [
        user(f"a {snare}"),
        answer(Text(text=f"b {snare}"), ToolCall(id="c", name=f"t{snare}", arguments=json.dumps({"path": snare}))),
        outputs("c", Text(text=snare), Image(media_type=f"image/ {snare}", data=snare), is_error=True),
    ]
    header = Header(id="s", title=f"title {snare}", time=0.0, provider=snare, model="m", working_dir=snare)
    page = Page(as_html(FullTranscript(header=header, messages=tuple(talk), compactions=(), problems=())))
    assert page.open == []
    tags = Counter(tag for tag, _ in page.tags)
    assert tags.keys() <= {*"html head meta title style body h1 h2 ul li section p details summary pre".split()}
    assert (tags["section"], tags["details"], tags["pre"]) == (2, 1, 2)
    assert all(
        name in ("lang", "charset", "name", "content", "http-equiv", "class") for _, a in page.tags for name in a
    )
    assert f"a {snare}".strip() in page.said
    assert "(failed)" in page.said


def test_html_shows_images_and_needs_nothing_else(unconfigured: Marvin) -> None:
    picture = Image(media_type="image/png", data="aGk=")
    odd = "family: \N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}, bell: \x07, nothing: \x00"
    identity = store(unconfigured, "a chat", [user(odd, picture), *TALK[1:2], outputs("c", picture), *TALK[3:]])
    text = unconfigured.run("sessions", "export", identity, "--format", "html").text
    page = Page(text)
    sources = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert sources == ["data:image/png;base64,aGk="] * 2
    assert not re.search(r"https?://|<script|<link|javascript:|[\x00-\x08\x0b-\x1f]", text)
    assert "default-src 'none'" in text
    assert "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}" in page.said
    assert "SECRET THOUGHT" not in page.said


def test_an_export_has_what_was_said_before_a_compaction(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    path = folder_of(unconfigured) / f"{identity}.jsonl"
    transcript = Transcript.resumed(path, load(path), Timeouts())
    transcript.append_compaction([TALK[0], user("SUMMARY of it")])
    transcript.append(user("And b.txt?"))
    transcript.close()
    exported = {kind: unconfigured.run("sessions", "export", identity, "--format", kind).text for kind in KINDS}
    order = ["What is in a.txt?", "A greeting.", "The conversation was compacted here", "SUMMARY of it", "And b.txt?"]
    for kind in ("md", "html"):
        found = [exported[kind].index(expected) for expected in order]
        assert found == sorted(found), kind
        assert exported[kind].count(order[0]) == 1
    data = json.loads(exported["json"])
    assert [message["role"] for message in data["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    (compaction,) = data["compactions"]
    assert (compaction["before"], len(compaction["messages"])) == (4, 2)
    assert "And b.txt?" in unconfigured.run("sessions", "show", identity).text
    assert unconfigured.run("sessions", "search", "greeting").code == 0


def test_json_has_everything(unconfigured: Marvin) -> None:
    identity = store(unconfigured, "a chat", TALK)
    data = json.loads(unconfigured.run("sessions", "export", identity, "--format", "json").out)
    assert (data["id"], data["title"], data["parent"], data["compactions"]) == (identity, "a chat", "", [])
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


# --- doctor --------------------------------------------------------------------------------------------------------


def test_doctor_tells_what_is_wrong_and_repair_mends_it(unconfigured: Marvin) -> None:
    sound, torn, interrupted = (store(unconfigured, title, TALK, n) for n, title in enumerate(("a", "b", "c")))
    folder = folder_of(unconfigured)
    result = unconfigured.run("sessions", "doctor")
    assert (result.code, result.text) == (0, "3 session files checked. No problems were found.\n")
    with (folder / f"{torn}.jsonl").open("ab") as stream:
        stream.write(b"{half")
    lines = (folder / f"{interrupted}.jsonl").read_bytes().splitlines(keepends=True)
    (folder / f"{interrupted}.jsonl").write_bytes(b"".join(lines[:3]))
    (folder / f"{interrupted}.jsonl").chmod(0o644)
    (folder / "empty.jsonl").touch(0o600)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = unconfigured.run("sessions", "doctor")
    assert result.code == 1
    for expected in (
        "Line 6 is incomplete or damaged",
        "Line 3 calls read_file, which has no output",
        "Its mode is 0644",
        "It is empty",
    ):
        assert result.text.count(expected) == 1
    assert sound not in result.text
    assert (
        "3 of 4 session files have problems. `marvin sessions doctor --repair` repairs them and keeps the originals"
        in result.said
    )
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert unconfigured.run("sessions", "doctor", sound).code == 0
    assert unconfigured.run("sessions", "doctor", torn[:15]).code == 1

    result = unconfigured.run("sessions", "doctor", "--repair")
    assert (result.code, result.said) == (0, "")
    assert f"{torn}.jsonl.damaged-1" in result.text
    assert before[folder / f"{torn}.jsonl"] == (folder / f"{torn}.jsonl.damaged-1").read_bytes()
    assert unconfigured.run("sessions", "doctor").code == 0
    assert unconfigured.run("sessions", "list").said == ""


def test_doctor_leaves_a_file_that_is_being_written(unconfigured: Marvin) -> None:
    unconfigured.config("timeouts: {lock: 0.05}\n")
    identity = store(unconfigured, "a chat", TALK)
    with (folder_of(unconfigured) / f"{identity}.jsonl").open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        result = unconfigured.run("sessions", "doctor", "--repair")
    assert (result.code, "is locked by another process. Try again when that process has finished" in result.text) == (
        1,
        True,
    )


# --- a place that takes nothing ------------------------------------------------------------------------------------

MOUNTED = """
set -e
mkdir -p "$SESSIONS"
mount -t tmpfs -o size=16k,mode=0700 tmpfs "$SESSIONS"
if [ "$KIND" = read-only ]; then mount -o remount,ro "$SESSIONS"; fi
"$@"
code=$?
if [ "$KIND" = full ]; then cp "$SESSIONS"/*.jsonl "$KEPT"; fi
exit $code
"""


@pytest.mark.parametrize("kind", ["read-only", "full", "file"])
def test_where_nothing_can_be_saved_the_conversation_goes_on_with_one_warning(
    marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path, kind: str
) -> None:
    """A small tmpfs that fills up, a read-only one, and a file where the folder should be."""
    marvin_model_server.script(text("Hello. "), text("word " * 8_000), text("Still here."))
    folder = folder_of(marvin)
    lines = b"first\nsecond\nthird\n"
    if kind == "file":
        folder.parent.mkdir(parents=True)
        folder.write_text("in the way")
        result = marvin.run("--plain", stdin=lines)
    else:
        namespace = ["unshare", "-rm", "sh", "-c", MOUNTED, "sh"]
        if subprocess.run([*namespace[:2], "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode:
            pytest.skip("unshare cannot mount here")
        env = {"SESSIONS": str(folder), "KIND": kind, "KEPT": str(tmp_path)}
        result = marvin.run("--plain", stdin=lines, program=[*namespace, *PROGRAM], env=env)
    assert result.code == 0
    assert "Still here." in result.text
    assert (result.text + result.said).count("cannot be saved") == 1
    assert (result.text + result.said).count(
        "Free space or make the folder writable. Until then, the conversation is not saved"
    ) == 1
    asked = [m["content"] for m in marvin_model_server.requests[-1].body["messages"] if m["role"] == "user"]
    assert asked == ["first", "second", "third"]
    if kind == "full":
        (kept,) = tmp_path.glob("*.jsonl")
        loaded = load(kept)
        assert ([m.text for m in loaded.messages], loaded.problems) == (["first", "Hello. ", "second"], ())


# --- in a chat -----------------------------------------------------------------------------------------------------


def test_the_commands_and_tools_of_sessions_in_a_chat(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("One."), text("Two."), text("Three."), text("Four."))
    lines = ["first", "/retry", "/tree", "/fork", "second", "/sessions", "/clear", "third", "/usage"]
    result = marvin.run("--plain", stdin="\n".join([*lines, ""]).encode())
    assert (result.code, result.said) == (0, "")
    for expected in (
        "One.",
        "Two.",
        "  first → Two. (2 messages)",
        "Continuing in the copy",
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


def test_what_a_session_had_and_has_no_longer_is_said_and_it_goes_on(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(calls(("get_working_dir", {})), text("One."), text("Two."), text("Three."))
    assert marvin.ask().code == 0
    again = marvin.ask("--continue", "--tools=-get_working_dir")
    assert (again.code, again.text) == (0, "Two.\n")
    assert again.said.count("This session used get_working_dir, which is not available here: not in the chosen") == 1
    marvin.config("permissions: {deny: [get_working_dir]}\n")
    (identity,) = (path.stem for path in marvin.session_files())
    elsewhere = marvin.home / "elsewhere"
    elsewhere.mkdir()
    denied = marvin.ask("--resume", identity, "--working-dir", str(elsewhere))
    assert denied.text == "Three.\n"
    assert "which is not available here: denied by config.yaml." in denied.said
    assert f"This session was in {marvin.project.resolve()}; it continues in {elsewhere.resolve()}." in denied.said


def test_a_session_that_was_gone_on_with_is_the_one_used_last(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(*(text(f"Answer {number}.") for number in range(4)))
    assert marvin.ask(prompt="older").code == 0
    assert marvin.ask(prompt="newer").code == 0
    older, newer = (path.stem for path in marvin.session_files())
    assert marvin.ask("--resume", older, prompt="go on").code == 0
    assert [line.split()[0] for line in marvin.run("sessions", "list").text.splitlines()[::2]] == [older, newer]
    assert marvin.run("sessions", "rename", newer, "Renamed").code == 0
    assert marvin.ask("--continue", prompt="last").code == 0
    asked = [m["content"] for m in marvin_model_server.requests[-1].body["messages"] if m["role"] == "user"]
    assert asked == ["older", "go on", "last"]
