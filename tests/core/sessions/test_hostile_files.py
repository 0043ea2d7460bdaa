"""Session files that somebody or something has damaged: whatever looks at them ends, whole and small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import MarvinError, Message, Text
from marvin_core.api.messages import to_dict, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.doctor import diagnose, repair
from marvin_core.sessions.export import as_json, as_markdown, as_text
from marvin_core.sessions.export_html import as_html
from marvin_core.sessions.reader import load, load_full
from marvin_core.sessions.records import Header, header_line
from marvin_core.sessions.search import branches, entries, search, survey
from marvin_core.sessions.store import newest_of, read_header, sessions
from marvin_core.sessions.transcript import Transcript
from tests.support.counting import times_called

TIMEOUTS = Timeouts()
HEADER = Header(id="s", title="A \x1b[31mchat", time=1.0, provider="p", model="m", working_dir="/w")
ANSWER = Message(role="assistant", content=(Text(text="two"),))
GOOD = [
    {"type": "message", "id": "1", "parent": "s", "message": to_dict(user("one"))},
    {
        "type": "message",
        "id": "2",
        "parent": "1",
        "message": to_dict(Message(role="assistant", content=(Text(text="two"),))),
    },
    {"type": "state", "id": "3", "parent": "2", "state": {"pack": {"n": 1}}},
    {"type": "compaction", "id": "4", "parent": "3", "messages": [to_dict(user("sum"))], "state": {}},
]

# --- any lines at all ----------------------------------------------------------------------------------------------

IDS = (
    st.sampled_from(["s", "1", "2", "3", "4", ""])
    | st.none()
    | st.integers()
    | st.lists(st.text(max_size=1), max_size=1)
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "thinking", "tool_call", "tool_output"]) | JUNK},
    optional={
        name: st.just("x") | st.just([{"type": "text", "text": "x"}]) | JUNK
        for name in ("text", "data", "media_type", "id", "call_id", "name", "arguments", "content", "provider_data")
    },
)
MESSAGES = (
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]) | JUNK, "content": st.lists(BLOCKS, max_size=3) | JUNK},
        optional={"usage": JUNK, "stop_reason": JUNK, "provider": JUNK, "model": JUNK},
    )
    | JUNK
)
RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["session", "message", "compaction", "state"]) | JUNK},
    optional={
        "id": IDS,
        "parent": IDS,
        "message": MESSAGES,
        "messages": st.lists(MESSAGES, max_size=3) | JUNK,
        "state": JUNK,
        "time": JUNK,
        "title": JUNK,
        "provider": JUNK,
        "model": JUNK,
        "working_dir": JUNK,
    },
)
LINES = (
    st.sampled_from([json.dumps(record).encode() for record in GOOD] + [header_line(HEADER, 3).strip()])
    | RECORDS.map(lambda record: json.dumps(record).encode("utf-8", "surrogatepass"))
    | st.binary(max_size=30)
    | st.sampled_from(
        [b"[" * 5_000, b'{"type":"message","id":' + b"[" * 5_000, b"\0" * 100, b"\xff\xfe", b"", b"{}", b"5"]
    )
)
FILES = st.lists(LINES, max_size=8).map(b"\n".join)


def everything(path: Path) -> list[Callable[[], Any]]:
    """All that reads a session file."""
    folder = path.parent
    return [
        lambda: read_header(path),
        lambda: survey(path),
        lambda: list(entries(folder)),
        lambda: list(entries(folder, "/w")),
        lambda: newest_of(folder, "/w"),
        lambda: load(path),
        lambda: load(path, "2"),
        lambda: list(search(folder, "one")),
        lambda: branches(path, "2"),
        lambda: as_text(load_full(path)),
        lambda: as_markdown(load_full(path)),
        lambda: as_html(load_full(path)),
        lambda: json.loads(as_json(load_full(path))),
        lambda: diagnose(path, TIMEOUTS),
    ]


def endure(path: Path) -> None:
    """Do all of it, whether or not the file is fit for that."""
    for work in everything(path):
        try:
            work()
        except MarvinError:
            continue


@pytest.mark.slow
@given(FILES, st.booleans())
def test_any_lines_at_all_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, headed: bool
) -> None:
    path = tmp_path_factory.mktemp("sessions") / "s.jsonl"
    path.write_bytes(header_line(HEADER) + content if headed else content)
    endure(path)
    if not headed:
        return
    found = load(path)  # with a header, there is always something to go on with
    Transcript.resumed(path, found, TIMEOUTS).append(user("and on"))
    assert load(path).messages[-1].text == "and on"
    repair(path, TIMEOUTS)
    assert diagnose(path, TIMEOUTS).problems == ()
    assert load(path).problems == ()


# --- each kind of damage, among good sessions ----------------------------------------------------------------------

WHOLE = header_line(HEADER) + b"".join(json.dumps(record).encode() + b"\n" for record in GOOD)
DEEP = b"[" * 100_000
BAD = {
    "deep first": DEEP + b"\n" + WHOLE,
    "deep last": WHOLE + DEEP,
    "deep state": WHOLE
    + b'{"type":"state","id":"5","parent":"4","state":'
    + b'{"a":' * 400
    + b"1"
    + b"}" * 400
    + b"}\n",
    "many values": WHOLE + b"[" + b"[]," * 300_000 + b"[]]",
    "nul": WHOLE + b"\0" * 1_000_000,
    "not utf-8": WHOLE.replace(b"one", b"\xff\xfe"),
    "only newlines": b"\n" * 10_000,
    "empty": b"",
    "many torn lines": WHOLE + b"x\n" * 5_000,
}


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_file_among_good_ones_ends_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(BAD[kind])
    (tmp_path / "good.jsonl").write_bytes(WHOLE)
    endure(path)
    assert [entry.messages for _, entry in entries(tmp_path) if entry][-1:] == [2]
    assert newest_of(tmp_path, "/w") in (path, tmp_path / "good.jsonl")
    assert [hit.messages for hit in search(tmp_path, "one")]
    found = diagnose(path, TIMEOUTS)
    assert found.problems
    assert len(found.problems) <= 1_010
    if kind not in ("only newlines", "empty"):
        loaded = load(path)
        assert [message.text for message in loaded.messages] == ["sum"]
        assert len(loaded.problems) <= 1_010


def chain(count: int, parent: Callable[[int], str]) -> bytes:
    """A file of so many messages; `parent` gives what each follows."""
    lines = [header_line(HEADER)]
    for number in range(count):
        message = {"role": "user", "content": [{"type": "text", "text": str(number)}]}
        record = {"type": "message", "id": f"m{number}", "parent": parent(number), "message": message}
        lines.append(json.dumps(record).encode() + b"\n")
    return b"".join(lines)


SHAPES: dict[str, Callable[[int], bytes]] = {
    "in a row": lambda count: chain(count, lambda n: f"m{n - 1}" if n else "s"),
    "all lost": lambda count: chain(count, lambda n: f"lost{n}"),
    "a ring": lambda count: chain(count, lambda n: f"m{(n + 1) % count}"),
    "one id": lambda count: chain(count, lambda n: "s").replace(b'"id": "m', b'"id": "m", "was": "'),
    "a comb": lambda count: chain(
        count, lambda n: ("s" if not n else f"m{n - 1}") if n < count // 2 else f"m{count // 2 - 1}"
    ),
    "calls without outputs": lambda count: chain(count, lambda n: f"m{n - 1}" if n else "s").replace(
        b'"role": "user", "content": [{"type": "text", "text": "',
        b'"role": "assistant", "content": [{"type": "tool_call", "name": "x", "arguments": "{}", "id": "',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_file_whatever_its_shape(tmp_path: Path, shape: str) -> None:
    work = {}
    for count in (200, 400):
        folder = tmp_path / str(count)
        folder.mkdir()
        path = folder / "s.jsonl"
        path.write_bytes(SHAPES[shape](count))
        work[count] = lines_run(lambda path=path: endure(path))  # type: ignore[misc]
    assert work[400] <= 2.5 * work[200]


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python are run."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


# --- size ----------------------------------------------------------------------------------------------------------

MEASURED = """
    import resource, sys
    from pathlib import Path
    from tests.core.sessions import test_hostile_files as hostile

    path = Path(sys.argv[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hostile.endure(path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


_UNIT = 1_048_576 if sys.platform == "darwin" else 1_024
"""What a megabyte has of the units in which the system tells the size of a process."""


def peak(path: Path) -> int:
    """Megabytes that reading a file in every way takes above what the process had before."""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURED), str(path)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout) // _UNIT


@pytest.mark.slow
def test_a_line_without_an_end_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as stream:
        stream.write(WHOLE)
        stream.truncate(200_000_000)  # a hole of zeros: no disk is taken
        stream.seek(0, 2)
        stream.write(b"\n" + WHOLE[len(header_line(HEADER)) :].replace(b'"id": "', b'"id": "again'))
    assert peak(path) < 150
    loaded = load(path)
    assert loaded.messages[-1].text == "sum"
    assert "is longer than 32,000,000 bytes" in str(load_full(path).problems)


@pytest.mark.slow
def test_a_line_of_very_many_values_is_never_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(WHOLE + b'{"type":"state","id":"5","parent":"4","state":{"a":[' + b"[]," * 7_000_000 + b"[]]}}\n")
    assert peak(path) < 150
    assert "more than 500,000 values" in load(path).problems[0]


def test_counting_counts(tmp_path: Path) -> None:
    """The measure above tells linear work from other work."""

    def quadratic(count: int) -> None:
        for outer in range(count):
            for _ in range(outer):
                pass

    assert lines_run(lambda: quadratic(200)) > 3 * lines_run(lambda: quadratic(100))
    assert times_called("quadratic", lambda: quadratic(1)) == 1


def test_only_files_are_sessions(tmp_path: Path) -> None:
    """A pipe waits for somebody who writes, and a device has no end: nothing opens them."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    (tmp_path / "s.jsonl").write_bytes(header_line(HEADER))
    assert sessions(tmp_path) == [tmp_path / "s.jsonl"]
    assert newest_of(tmp_path, "/w") == tmp_path / "s.jsonl"
