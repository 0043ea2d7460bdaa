"""Reading cassettes that anybody may have written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import Overloaded, ProviderError, UsageError
from marvin_core.recording import writing
from marvin_core.recording.cassette import CassetteError, read_cassette
from marvin_core.recording.form import cut_again, error_of, error_value
from marvin_core.recording.writing import LONGEST, CassetteFile
from tests.support.examples import examples

HEAD = {"type": "cassette", "version": 1, "marvin": "0.1"}
BEGUN = {"type": "conversation", "c": "main", "depth": 0}
REQUEST = {"type": "request", "c": "main", "n": 1, "request": {"messages": []}}


def written(folder: Path, *records: Any, end: bytes = b"\n") -> Path:
    """A file with these records, or lines that are given as bytes."""
    path = folder / "s.jsonl"
    parts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    path.write_bytes(b"\n".join(parts) + end)
    return path


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "not a cassette"),
        ([b"#!/bin/sh"], "damaged"),
        ([{"type": "session"}], "not a cassette"),
        ([{**HEAD, "version": 2}], "version 2"),
        ([{**HEAD, "version": "\x1b[2J" * 90}], "version"),
        ([HEAD, b"\xff\xfe", BEGUN], "Line 2"),
        ([HEAD, b"[" * 100_000, BEGUN], "Line 2"),
        ([HEAD, BEGUN, BEGUN], "twice"),
        ([HEAD, {"type": "prompt", "c": "other"}], "no conversation"),
        ([HEAD, BEGUN, {"type": "prompt", "c": "main", "text": 7}], "text is not a text"),
        ([HEAD, BEGUN, REQUEST, REQUEST], "twice"),
        ([HEAD, BEGUN, {**REQUEST, "n": "x"}], "Line 3"),
        ([HEAD, BEGUN, {**REQUEST, "request": {"messages": 5}}], "messages"),
        ([HEAD, BEGUN, {**REQUEST, "like": 9}], "Line 3"),
        ([HEAD, BEGUN, REQUEST, {**REQUEST, "n": 2, "like": 1, "same": 5}], "do not exist"),
        (
            [HEAD, BEGUN, REQUEST, {"type": "answer", "c": "main", "n": 1, "parts": [{"pieces": "x"}]}],
            "parts that are not valid",
        ),
        ([HEAD, BEGUN, {"type": "answer", "c": "main", "n": 4, "parts": []}], "Line 3"),
        ([HEAD, BEGUN, *({"type": "call", "c": "main", "id": str(one)} for one in range(1_001))], "no result"),
    ],
)
def test_what_is_no_sound_cassette_is_refused_with_its_line(tmp_path: Path, records: list[Any], said: str) -> None:
    with pytest.raises(CassetteError, match=re.escape(said)) as refused:
        read_cassette(written(tmp_path, *records))
    assert len(str(refused.value)) < 1_000


def test_a_line_that_is_too_long_is_not_held_in_memory(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, BEGUN)
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + LONGEST + 1)  # 16 MB of zeros that take no room
    with pytest.raises(CassetteError, match="longer than"):
        read_cassette(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, BEGUN)
    os.truncate(path, 300 * 1024 * 1024)
    with pytest.raises(CassetteError, match="larger than"):
        read_cassette(path)


def test_requests_that_grow_by_naming_each_other_are_refused(tmp_path: Path) -> None:
    message = {"role": "user", "content": []}
    records: list[Any] = [{**REQUEST, "request": {"messages": [message] * 5_000}}]
    records += [{**REQUEST, "n": n, "like": n - 1, "same": 5_000} for n in range(2, 500)]
    with pytest.raises(CassetteError, match="too long in total"):
        read_cassette(written(tmp_path, HEAD, BEGUN, *records))


def test_a_device_and_a_folder_are_no_cassettes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "missing"):
        with pytest.raises(CassetteError):
            read_cassette(path)


def test_the_last_line_may_be_cut_and_no_other_one(tmp_path: Path) -> None:
    cut = read_cassette(written(tmp_path, HEAD, BEGUN, b'{"type":"pro', end=b""))
    assert cut.is_cut
    assert cut.notes
    with pytest.raises(CassetteError, match="Line 3"):
        read_cassette(written(tmp_path, HEAD, BEGUN, b'{"type":"pro'))


def test_line_ends_of_windows_and_empty_lines_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD, b"", BEGUN, {"type": "end", "c": "main"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert not read_cassette(path).is_cut


@given(st.lists(st.dictionaries(st.sampled_from(["type", "c", "n", "text", "parts", "id"]), st.text(max_size=9))))
@examples(100)
def test_no_records_make_the_reader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]]
) -> None:
    kinds = ("prompt", "request", "answer", "call", "result", "extras", "message", "question", "done", "end", "x")
    mixed = [{**record, "type": kinds[n % len(kinds)], "c": "main"} for n, record in enumerate(records)]
    path = written(tmp_path_factory.mktemp("any"), HEAD, BEGUN, *mixed)
    with suppress(CassetteError):
        read_cassette(path)


def test_a_cassette_for_which_the_disk_has_no_room_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom marvin_core.recording.writing import CassetteFile\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
        "CassetteFile(Path(sys.argv[1]), print, joins=False)"
    )
    for room in ("0", "10"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, str(path), room], capture_output=True, text=True, check=False
        )
        assert "UsageError: --record: " in done.stderr
        assert "cannot be written" in done.stderr
        assert not path.exists()


def test_a_cassette_ends_where_it_is_full(tmp_path: Path) -> None:
    said: list[str] = []
    file = CassetteFile(tmp_path / "s.jsonl", said.append, joins=False)
    file.add({"type": "prompt", "c": "main", "text": "x" * (LONGEST + 1)})  # left out, and said so
    os.truncate(tmp_path / "s.jsonl", writing.LARGEST - 10)
    file.add({"type": "prompt", "c": "main", "text": "short"})
    file.add({"type": "end", "c": "main"})
    content = (tmp_path / "s.jsonl").read_bytes()
    assert b'"type":"left_out"' in content[:500]
    assert content.endswith(b'{"type":"full","c":"main"}\n')
    assert len(said) == 1


def test_a_cassette_goes_into_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name, joins in (("mine", False), ("mine", True), ("link", False), ("no/folder", False)):
        with pytest.raises(UsageError):
            CassetteFile(tmp_path / name, print, joins=joins)
    assert (tmp_path / "mine").read_text() == "mine\n"
    assert not (tmp_path / "new").exists()


@given(st.text(max_size=50), st.lists(st.integers(-3, 30), max_size=8), st.integers(-1, 60))
@examples(200)
def test_pieces_make_the_whole_text_again(text: str, lengths: list[int], before: int) -> None:
    pieces = cut_again(text, [[0.1, length] for length in lengths], before)
    assert "".join(piece for _, piece in pieces) == text


def test_errors_come_back_as_they_were_and_no_other_class_does() -> None:
    back = error_of(error_value(Overloaded("Busy.", retry_after=3.0)))
    assert isinstance(back, Overloaded)
    assert (str(back), back.retry_after) == ("Busy.", 3.0)
    for kind in ("SystemExit", "_Passing", "MarvinError", "__doc__", "annotations", 7):
        assert type(error_of({"kind": kind, "text": "x"})) is ProviderError
