"""Session files are read from their end to the newest compaction, and what stands above stays where it is."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Message, Text, ToolCall, ToolOutput
from marvin_core.api.errors import SessionError
from marvin_core.api.messages import tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.pairing import heal
from marvin_core.sessions.reader import BackwardReader, load, load_full
from marvin_core.sessions.records import Header
from marvin_core.sessions.search import branches, search, survey
from marvin_core.sessions.store import read_header
from marvin_core.sessions.transcript import Transcript
from marvin_core.util.json_lines import lines_backwards, lines_forwards

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.002)
HEADER = Header(id="s1", title="A chat", time=1.5, provider="p", model="m", working_dir="/w")


def begin(path: Path, *texts: str) -> Transcript:
    transcript = Transcript(path, HEADER, TIMEOUTS)
    for text in texts:
        transcript.append(user(text))
    return transcript


def go_on(path: Path) -> Transcript:
    return Transcript.resumed(path, load(path), TIMEOUTS)


def texts(path: Path, leaf: str = "") -> list[str]:
    return [message.text for message in load(path, leaf).messages]


def said(path: Path) -> list[str]:
    return [message.text for message in load_full(path).messages]


def users(*given: str) -> list[Message]:
    return [user(text) for text in given]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s1.jsonl"


# --- lines from the end --------------------------------------------------------------------------------------------


@given(st.binary(max_size=60) | st.text("a\n", max_size=40).map(str.encode), st.integers(1, 9), st.integers(0, 60))
def test_lines_from_the_end_are_the_lines(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int, end: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(data)
    end = min(end, len(data))
    with path.open("rb") as stream:
        found = list(lines_backwards(stream.fileno(), end, block))
    assert [line for _, line, _ in found] == (data[:end].split(b"\n")[::-1] if end else [b""])
    assert all(data[offset : offset + len(line)] == line and whole for offset, line, whole in found)


@given(st.text("a\n", max_size=60).map(str.encode), st.integers(1, 9), st.integers(1, 9))
def test_a_line_that_is_too_long_is_passed_over_from_either_end(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int, largest: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(data)
    lines = data.split(b"\n")
    with path.open("rb") as stream:
        backwards = list(lines_backwards(stream.fileno(), len(data), block, largest))[::-1]
        forwards = list(lines_forwards(stream.fileno(), 0, len(data), largest, block))
    assert [whole for _, _, whole in backwards] == [len(line) <= largest for line in lines]
    assert [line if whole else b"" for _, line, whole in backwards] == [
        line if len(line) <= largest else b"" for line in lines
    ]
    ended = lines if lines[-1] else lines[:-1]  # what stands behind the last newline is a line only if it is something
    assert [(line if whole else None) for line, whole in forwards] == [
        line if len(line) <= largest else None for line in ended
    ]


# --- compaction ----------------------------------------------------------------------------------------------------


def test_a_compaction_stands_for_what_was_said_before_which_stays_in_the_file(file: Path) -> None:
    transcript = begin(file, "one", "two", "three")
    transcript.append_state({"pack": {"n": 1}})
    transcript.append_compaction(users("one", "a summary"), {"pack": {"n": 1}})
    transcript.append(user("four"))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["one", "a summary", "four"]
    assert (loaded.state, loaded.header, loaded.problems) == ({"pack": {"n": 1}}, HEADER, ())
    whole = load_full(file)
    assert [m.text for m in whole.messages] == ["one", "two", "three", "four"]
    assert [(c.before, [m.text for m in c.messages]) for c in whole.compactions] == [(3, ["one", "a summary"])]
    assert next(search(file.parent, "three")).messages == 1


def test_only_the_newest_compaction_of_the_branch_counts(file: Path) -> None:
    transcript = begin(file, "one")
    transcript.append_compaction(users("first summary"))
    transcript.append(user("two"))
    transcript.append_compaction(users("second summary"))
    assert texts(file) == ["second summary"]
    go_on(file).append(user("three"))
    assert texts(file) == ["second summary", "three"]


def test_a_compaction_on_another_branch_is_none_of_this_one(file: Path) -> None:
    begin(file, "one", "two").close()
    left, right = go_on(file), go_on(file)
    left.append(user("left"))
    left.append_compaction(users("summary"))
    right.append(user("right"))
    assert texts(file) == ["one", "two", "right"]
    assert texts(file, left.leaf) == ["summary"]
    left.append(user("more"))
    assert texts(file) == ["summary", "more"]
    listed = branches(file, left.leaf)
    assert [(b.messages, b.prompt, b.shared, b.current) for b in listed] == [
        (3, "right", 2, False),
        (4, "more", 4, True),
    ]


def test_a_step_back_after_a_compaction_goes_on_from_the_rest_of_what_it_kept(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.append_compaction(users("summary", "two"))
    before = transcript.leaf
    for writer in (transcript, go_on(file)):
        writer.step_back()
        writer.append(user("two again"))
        assert texts(file) == ["summary", "two again"]
        assert said(file) == ["one", "two again"]
        assert texts(file, before) == ["summary", "two"]
        writer.step_back()
        writer.append_compaction(users("summary", "two"))
    assert [b.prompt for b in branches(file, "")][:2] == ["two", "two again"]


def test_a_compaction_that_cannot_be_read_costs_nothing_that_was_said(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.append_compaction(users("summary"))
    transcript.append(user("three"))
    file.write_bytes(file.read_bytes().replace(b'"text":"summary"', b'"text":5        '))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["one", "two", "three"]
    assert "not text" in loaded.problems[0]


def test_calls_before_a_compaction_are_answered_in_an_export_and_not_in_the_live_context(file: Path) -> None:
    """I15: a call that was interrupted before a compaction, and one after it."""
    transcript = begin(file, "one")
    asked = [Message(role="assistant", content=(ToolCall(id=i, name="look", arguments="{}"),)) for i in ("a", "b")]
    transcript.append(asked[0])
    transcript.append_compaction(users("summary"))
    transcript.append(asked[1], tool([ToolOutput(call_id="b", name="look", content=(Text(text="seen"),))]))
    assert heal(load(file).messages)[1] == 0
    healed, count = heal(load_full(file).messages)
    assert ([m.role for m in healed], count) == (["user", "assistant", "tool", "assistant", "tool"], 1)


def test_the_lines_above_the_newest_compaction_are_not_looked_at(file: Path) -> None:
    """What makes a long session open as fast as a short one: damage up there is not even noticed."""
    transcript = begin(file, *[f"{n} {'x' * 1_000}" for n in range(400)])
    transcript.append_compaction(users("summary"))
    transcript.append(user("next"))
    data = file.read_bytes()
    above = data.index(b'{"type":"compaction"')
    first = data.index(b"\n") + 1
    file.write_bytes(data[:first] + b"\0" * (above - 1 - first) + data[above - 1 :])
    loaded = load(file)
    assert ([m.text for m in loaded.messages], loaded.problems) == (["summary", "next"], ())
    entry = survey(file)
    assert entry is not None
    assert (entry.messages, entry.title) == (401, "A chat")
    assert read_header(file) == HEADER


@pytest.mark.slow
def test_a_file_torn_at_any_byte_is_what_its_whole_lines_say(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.append_compaction(users("summary"))
    transcript.append(user("three"))
    transcript.close()
    expected = [[], ["one"], ["one", "two"], ["summary"], ["summary"], ["summary", "three"]]
    whole = file.read_bytes()
    ends = [n for n, byte in enumerate(whole) if byte == 0x0A]
    for size in range(ends[0], len(whole) + 1):
        file.write_bytes(whole[:size])
        complete = sum(size >= end for end in ends)
        assert texts(file) == expected[complete - 1], size
        assert load(file).header == HEADER
        transcript = go_on(file)
        transcript.append(user("next"))
        transcript.close()
        assert texts(file) == [*expected[complete - 1], "next"], size


OPERATIONS = st.lists(
    st.sampled_from(["say", "say", "say", "compact", "back", "reopen", "state", "rename", "tear"]), max_size=25
)


@given(OPERATIONS)
def test_whatever_is_done_the_file_gives_back_the_live_context(
    tmp_path_factory: pytest.TempPathFactory, operations: list[str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "s1.jsonl"
    writer = begin(path, "begin")
    live, on_disk, may_go_back, title = ["begin"], ["begin"], True, "A chat"
    for number, operation in enumerate(operations):
        if operation == "say":
            live = [*live, str(number)]
            writer.append(user(str(number)))
            may_go_back = True
        elif operation == "compact" and live:
            live = [f"summary {number}", *live[-2:]]
            writer.append_compaction(users(*live))
            may_go_back = True
        elif operation == "back" and may_go_back:
            live, may_go_back = live[:-1], False
            writer.step_back()
            continue  # which writes nothing
        elif operation == "state":
            writer.append_state({"pack": {"n": number}})
        elif operation == "rename":
            title = f"title {number}"
            writer.change_header(title=title)
            continue
        elif operation == "tear":
            with path.open("ab") as stream:
                stream.write(b'{"type":"message","id":"torn')
            continue
        else:
            writer.close()
            writer = go_on(path)
            live, may_go_back = on_disk, live == on_disk and may_go_back
            may_go_back = bool(live) and may_go_back
            continue
        on_disk = live
        assert texts(path) == live
    loaded = load(path)
    assert [m.text for m in loaded.messages] == on_disk
    assert loaded.header.title == title
    assert loaded.count == sum(b'{"type":"message"' in line for line in path.read_bytes().split(b"\n"))
    entry = survey(path)
    assert entry is not None
    assert (entry.title, entry.messages) == (title, loaded.count)


# --- the header ----------------------------------------------------------------------------------------------------


def test_what_others_changed_in_the_header_is_kept(file: Path) -> None:
    transcript = begin(file, "one")
    other = go_on(file)
    other.change_header(title="Other")
    other.append(user("by the other"))
    transcript.change_header(model="n", thinking="high")
    assert load(file).header == HEADER.replace(title="Other", model="n", thinking="high")
    other.change_header(title="Third")
    transcript.append_compaction(users("summary"))
    transcript.append(*users(*("x" * 1_000 for _ in range(500))))
    loaded = load(file)
    assert loaded.header == HEADER.replace(title="Third", model="n", thinking="high")
    assert loaded.count == 502


def test_a_header_is_changed_before_there_is_a_file_and_only_where_it_differs(file: Path) -> None:
    transcript = Transcript(file, HEADER, TIMEOUTS)
    transcript.change_header(model="n")
    assert not file.exists()
    transcript.append(user("one"))
    transcript.change_header(model="n")
    assert len(file.read_bytes().splitlines()) == 2
    assert load(file).header.model == "n"


def test_a_torn_header_leaves_the_one_before(file: Path) -> None:
    transcript = begin(file, "one")
    transcript.change_header(title="Second")
    transcript.change_header(title="Third")
    file.write_bytes(file.read_bytes()[:-30])
    assert load(file).header.title == "Second"
    entry = survey(file)
    assert entry is not None
    assert entry.title == "Second"


def test_a_later_header_serves_where_the_first_one_is_damaged(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.change_header(title="Renamed")
    transcript.close()
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([b"\0\0", *lines[1:]]))
    header = read_header(file)
    assert header is not None
    assert header.title == "Renamed"
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["one", "two"]
    assert len(loaded.problems) == 1
    assert "line 1 of s1.jsonl was skipped" in loaded.problems[0]


def test_a_file_that_was_removed_or_replaced_is_begun_again(file: Path) -> None:
    transcript = begin(file, "one")
    file.unlink()
    transcript.append(user("two"))
    assert texts(file) == ["two"]
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.rename(file)
    transcript.append(user("three"))
    assert texts(file) == ["two", "three"]


def test_bad_lines_are_named_by_their_number_wherever_they_stand(file: Path) -> None:
    transcript = begin(file)
    transcript.append(*users(*(f"{n} {'x' * 400}" for n in range(1_000))))
    lines = file.read_bytes().split(b"\n")
    for number in (2, 500, 1_001):
        lines[number - 1] = b"{" * 300
    file.write_bytes(b"\n".join(lines))
    told = [problem for problem in load(file).problems if "was skipped" in problem]
    assert [problem.split()[1] for problem in told] == ["2", "500", "1001"]


def test_a_reader_leaves_no_descriptor_open(file: Path) -> None:
    begin(file, "one").close()
    before = len(os.listdir("/dev/fd"))
    with BackwardReader(file) as reader:
        reader.read_all()
    with pytest.raises(SessionError, match="No such file"):
        BackwardReader(file.with_name("gone"))
    assert len(os.listdir("/dev/fd")) == before


def test_each_record_of_a_compaction_is_one_line_with_the_header_after_it(file: Path) -> None:
    transcript = begin(file, "one")
    transcript.append_compaction(users("summary"))
    record, header = [json.loads(line) for line in file.read_bytes().splitlines()[2:]]
    assert (record["type"], [m["role"] for m in record["messages"]]) == ("compaction", ["user"])
    assert header == {"type": "session", "version": 1, **HEADER.as_dict(), "messages": 1}


def test_the_records_of_the_reference_page_are_a_session(file: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "session-file.md"
    file.parent.mkdir()
    file.write_text("".join(re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL)), "utf-8")
    loaded = load(file)
    assert loaded.problems == ()
    assert loaded.header.title == "Fix it"
    assert [m.text for m in loaded.messages] == ["Fix it.", "So far: a.py was read."]
    whole = load_full(file)
    assert [m.role for m in whole.messages] == ["user", "assistant", "tool"]
    assert heal(whole.messages)[1] == 0
