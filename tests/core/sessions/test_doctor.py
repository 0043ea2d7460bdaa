"""`session_doctor`: whatever is wrong with a session file is found and mended, and nothing that was said is lost."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import MarvinError, Message, Text, ToolCall, ToolOutput
from marvin_core.api.errors import SessionError
from marvin_core.api.messages import tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.pairing import INTERRUPTED, heal
from marvin_core.sessions.doctor import diagnose, repair
from marvin_core.sessions.reader import load, load_full
from marvin_core.sessions.records import Header
from marvin_core.sessions.transcript import Transcript
from tests.support.examples import examples

TIMEOUTS = Timeouts(lock=0.05, lock_poll=0.005)
HEADER = Header(id="s1", title="A chat", time=1.5, provider="p", model="m", working_dir="/w")


def ask(*ids: str) -> Message:
    return Message(role="assistant", content=tuple(ToolCall(id=i, name="look", arguments="{}") for i in ids), model="m")


def out(*ids: str) -> Message:
    return tool([ToolOutput(call_id=i, name="look", content=(Text(text=f"seen {i}"),)) for i in ids])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s1.jsonl"
    transcript = Transcript(path, HEADER, TIMEOUTS)
    for message in (user("one"), ask("a", "b"), out("a", "b"), user("two")):
        transcript.append(message)
    transcript.close()
    return path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write(path: Path, lines: list[Any]) -> None:
    texts = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"\n".join(texts) + b"\n")
    path.chmod(0o600)


def shown(path: Path) -> list[str]:
    return [message.text or "".join(o.text for o in message.outputs) for message in load(path).messages]


def test_a_sound_file_has_no_problems_and_is_left_as_it_is(file: Path) -> None:
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
    assert diagnose(file, TIMEOUTS).problems == ()
    assert repair(file, TIMEOUTS)[1] is None
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino) == before
    assert os.listdir(file.parent) == [file.name]


def change(index: int, **fields: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda lines: [*lines[:index], {**lines[index], **fields}, *lines[index + 1 :]]


FAULTS: dict[str, tuple[Callable[[list[Any]], list[Any]], str, list[str]]] = {
    "torn line": (lambda ls: [*ls[:2], b'{"type":"mess', *ls[2:]], "Line 3 is incomplete or damaged.", []),
    "torn end": (lambda ls: [*ls, b'{"type":"message","id'], "Line 6 is incomplete or damaged.", []),
    "record without an id": (lambda ls: [*ls, {"type": "message"}], "Line 6 is incomplete or damaged.", []),
    "no message": (change(4, message={"role": "nobody", "content": []}), "Line 5 is incomplete or damaged.", ["two"]),
    "no header": (lambda ls: ls[1:], "It has no header.", []),
    "header further down": (lambda ls: [*ls[1:], ls[0]], "It does not begin with its header.", []),
    "parent lost": (change(2, parent="gone"), "Line 3 refers to a parent that was lost.", []),
    "parent no text": (change(2, parent=5), "Line 3 refers to a parent that was lost.", []),
    "own parent": (
        lambda ls: change(2, parent=ls[2]["id"])(ls),
        "Line 3 refers to a later record, or to itself, as its parent",
        [],
    ),
    "cycle": (
        lambda ls: change(1, parent=ls[3]["id"])(ls),
        "Line 2 refers to a later record, or to itself, as its parent.",
        [],
    ),
    "two with one id": (lambda ls: change(4, id=ls[1]["id"])(ls), "Line 5 has the same id as another record.", []),
    "no output": (lambda ls: [*ls[:3], change(4, parent=ls[2]["id"])(ls)[4]], "Line 3 calls look", ["seen aseen b"]),
    "interrupted": (lambda ls: ls[:3], "Line 3 calls look, which has no output", ["seen aseen b", "two"]),
    "output lost": (
        lambda ls: change(3, message={"role": "tool", "content": ls[3]["message"]["content"][:1]})(ls),
        "Line 3 calls look, which has no output",
        ["seen aseen b"],
    ),
    "output without call": (
        change(2, message={"role": "assistant", "content": [{"type": "text", "text": "hm"}]}),
        "Line 4 has an output without a call.",
        ["", "seen aseen b"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_mended_in_a_copy(file: Path, fault: str) -> None:
    damage, told, lost = FAULTS[fault]
    before = shown(file)
    write(file, damage(records(file)))
    damaged = file.read_bytes()
    os.utime(file, (7, 7))
    problems = diagnose(file, TIMEOUTS).problems
    assert problems[0].startswith(told)
    assert "A repair " in problems[0]
    assert file.read_bytes() == damaged
    found, kept = repair(file, TIMEOUTS)
    assert found.problems == problems
    assert kept == file.with_name("s1.jsonl.damaged-1")
    assert kept.read_bytes() == damaged
    assert diagnose(file, TIMEOUTS).problems == ()
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_mtime) == (0o600, 7)
    mended = load(file)
    assert mended.problems == ()
    assert heal(mended.messages)[1] == 0
    assert [text for text in before if text not in shown(file)] == lost
    assert mended.header.id == "s1"


def test_a_header_is_made_from_what_was_said(file: Path) -> None:
    write(file, records(file)[1:])
    os.utime(file, (7, 7))
    repair(file, TIMEOUTS)
    assert load(file).header == HEADER.replace(title="one", time=7.0, provider="", working_dir="")


@pytest.mark.parametrize(("content", "told"), [(b"", "It is empty."), (b"\n \n", "It is empty."), (b"\0{", "Nothing")])
def test_a_file_with_nothing_in_it_is_moved_aside(file: Path, content: bytes, told: str) -> None:
    file.write_bytes(content)
    assert diagnose(file, TIMEOUTS).problems[-1].startswith(told)
    _, kept = repair(file, TIMEOUTS)
    assert not file.exists()
    assert kept is not None
    assert kept.read_bytes() == content


def test_a_mode_that_lets_others_read_is_mended_in_place(file: Path) -> None:
    file.chmod(0o644)
    inode = file.stat().st_ino
    assert diagnose(file, TIMEOUTS).problems == (
        "Its mode is 0644, so other users may read it. A repair sets it to 0600.",
    )
    assert repair(file, TIMEOUTS)[1] is None
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_ino) == (0o600, inode)


def test_what_cannot_be_used_in_a_compaction_is_mended(file: Path) -> None:
    transcript = Transcript.resumed(file, load(file), TIMEOUTS)
    transcript.append_compaction([user("summary"), ask("c"), user("hm"), out("d")])
    transcript.append_compaction([user("summary"), ask("e")])
    transcript.append(out("e"))
    transcript.close()
    (problem,) = diagnose(file, TIMEOUTS).problems
    assert problem.startswith("Line 6 has calls without outputs, or outputs without calls.")
    repair(file, TIMEOUTS)
    assert diagnose(file, TIMEOUTS).problems == ()
    assert shown(file) == ["summary", "", "seen e"]
    assert load(file).count == 5
    assert len(load_full(file).compactions) == 2


def test_the_newest_title_and_other_branches_stay(file: Path) -> None:
    transcript = Transcript.resumed(file, load(file), TIMEOUTS)
    left = transcript.leaf
    transcript.change_header(title="Renamed")
    transcript.step_back()
    transcript.append(user("three"))
    transcript.close()
    with file.open("ab") as stream:
        stream.write(b"{half")
    repair(file, TIMEOUTS)
    assert load(file).header.title == "Renamed"
    assert shown(file)[-1] == "three"
    assert load(file, left).messages[-1].text == "two"


def test_each_repair_keeps_the_original_under_a_name_of_its_own(file: Path) -> None:
    for number in (1, 2):
        with file.open("ab") as stream:
            stream.write(b"{half")
        assert repair(file, TIMEOUTS)[1] == file.with_name(f"s1.jsonl.damaged-{number}")


def test_a_session_that_is_running_goes_on_in_the_repaired_file(file: Path) -> None:
    transcript = Transcript.resumed(file, load(file), TIMEOUTS)
    transcript.append(user("three"))
    with file.open("ab") as stream:
        stream.write(b"{half")
    repair(file, TIMEOUTS)
    transcript.append(user("four"))
    transcript.change_header(title="Renamed")
    assert (load(file).header.title, load(file).count) == ("Renamed", 6)
    assert shown(file)[-2:] == ["three", "four"]
    assert diagnose(file, TIMEOUTS).problems == ()


def test_a_file_that_is_being_written_is_refused(file: Path) -> None:
    with file.open("ab") as holder:
        holder.write(b"{half")
        holder.flush()
        fcntl.flock(holder, fcntl.LOCK_EX)
        before = file.read_bytes()
        for look in (diagnose, repair):
            with pytest.raises(MarvinError, match="is locked by another process"):
                look(file, TIMEOUTS)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(SessionError, match="No such file"):
        diagnose(file.with_name("gone"), TIMEOUTS)


DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.integers(0, 30), st.integers(0, 0)),
        st.tuples(st.just("tear"), st.integers(0, 30), st.integers(1, 60)),
        st.tuples(st.just("twice"), st.integers(0, 30), st.integers(0, 30)),
        st.tuples(st.just("swap"), st.integers(0, 30), st.integers(0, 30)),
        st.tuples(st.just("relink"), st.integers(0, 30), st.integers(0, 30)),
    ),
    max_size=5,
)
TALK = st.lists(
    st.sampled_from(["user", "ask", "out", "extra", "compact", "back", "state", "rename"]), min_size=1, max_size=12
)


def damaged(lines: list[bytes], damage: list[tuple[str, int, int]]) -> list[bytes]:
    for kind, first, second in damage:
        if not lines:
            break
        at, other = first % len(lines), second % len(lines)
        if kind == "drop":
            del lines[at]
        elif kind == "tear":
            lines[at] = lines[at][:second]
        elif kind == "twice":
            lines.insert(other, lines[at])
        elif kind == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif b'"parent"' in lines[at] and b'"id"' in lines[other]:
            try:
                record, target = json.loads(lines[at]), json.loads(lines[other])
            except ValueError:
                continue
            lines[at] = json.dumps({**record, "parent": target["id"]}).encode()
    return lines


def talk(path: Path, operations: list[str]) -> None:
    transcript = Transcript(path, HEADER, TIMEOUTS)
    transcript.append(user("begin"))
    for number, operation in enumerate(operations):
        if operation == "user":
            transcript.append(user(f"said {number}"))
        elif operation == "ask":
            transcript.append(ask("a", "b"))
        elif operation == "out":
            transcript.append(out("a", "b"))
        elif operation == "extra":
            transcript.append(out("z"))
        elif operation == "compact":
            transcript.append_compaction([user(f"summary {number}"), ask("c")])
        elif operation == "back":
            transcript.step_back()
        elif operation == "state":
            transcript.append_state({"pack": {"n": number}})
        else:
            transcript.change_header(title=f"title {number}")
    transcript.close()


@examples(150)
@given(TALK, DAMAGE)
def test_whatever_the_damage_a_mended_file_is_sound_and_keeps_what_was_said(
    tmp_path_factory: pytest.TempPathFactory, operations: list[str], damage: list[tuple[str, int, int]]
) -> None:
    """I15: after a repair every call has exactly one output, and no request that could be read is missing."""
    path = tmp_path_factory.mktemp("any") / "s1.jsonl"
    talk(path, operations)
    lines = damaged(path.read_bytes().splitlines(), damage)
    path.write_bytes(b"\n".join(lines))
    readable = set()
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["type"] == "message" and record["message"]["role"] != "tool":
            readable.add(json.dumps(record["message"]))
    repair(path, TIMEOUTS)
    if not path.exists():
        assert readable == set()
        return
    assert diagnose(path, TIMEOUTS).problems == ()
    kept = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert readable <= {json.dumps(record["message"]) for record in kept if record["type"] == "message"}
    loaded = load(path)
    assert (loaded.problems, heal(loaded.messages)[1]) == ((), 0)


def test_the_output_that_a_repair_adds_says_that_the_call_was_interrupted(file: Path) -> None:
    """I15: beside the output that came."""
    write(file, [*records(file)[:3], {**records(file)[3], "message": {"role": "tool", "content": []}}])
    repair(file, TIMEOUTS)
    assert [output.text for output in load(file).messages[-1].outputs] == [INTERRUPTED, INTERRUPTED]
