"""When things were said: in the file, and wherever what was said is shown again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.messages import Message, Text, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.export import as_markdown, as_text
from marvin_core.sessions.export_html import as_html
from marvin_core.sessions.reader import load, load_full
from marvin_core.sessions.records import Header
from marvin_core.sessions.replay import end_of
from marvin_core.sessions.search import search
from marvin_core.sessions.transcript import Transcript
from marvin_core.util.text import local_time

BEGUN = 1_790_000_000.0
HEADER = Header(id="s", title="A talk", time=BEGUN, provider="p", model="m", working_dir="/w")


def answer(text: str) -> Message:
    return Message(role="assistant", content=(Text(text=text),))


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A session with a prompt, an answer, what a hook said, and another prompt, a minute apart."""
    transcript = Transcript(tmp_path / "s.jsonl", HEADER, Timeouts())
    transcript.append(user("first"), at=BEGUN)
    transcript.append(answer("One."), at=BEGUN + 60)
    transcript.append(user("mind the tests"), at=BEGUN + 120, origin="hook")
    transcript.append(user("second"), at=BEGUN + 180)
    transcript.close()
    return transcript.path


def without_times(path: Path) -> None:
    """Make the file one of a Marvin that wrote no times."""
    lines = [{name: value for name, value in record.items() if name != "time"} for record in records(path)[1:]]
    first = path.read_bytes().splitlines()[0]
    path.write_bytes(b"\n".join([first, *(json.dumps(line).encode() for line in lines)]) + b"\n")


def test_each_record_carries_its_time(tmp_path: Path) -> None:
    before = time.time()
    transcript = Transcript(tmp_path / "s.jsonl", HEADER, Timeouts())
    transcript.append(user("first"))
    transcript.append_state({"pack": {"n": 1}})
    transcript.append_compaction([user("sum")])
    transcript.append(answer("One."), at=12.3456)
    transcript.close()
    found = [record["time"] for record in records(transcript.path) if record["type"] != "session"]
    assert all(before - 1 <= one <= time.time() + 1 for one in found[:3])
    assert found[3] == 12.346


def test_reading_gives_the_times_of_messages(talk: Path) -> None:
    expected = (BEGUN, BEGUN + 60, BEGUN + 120, BEGUN + 180)
    assert (load(talk).times, load_full(talk).times) == (expected, expected)


def test_files_without_times_load_and_show_none(talk: Path) -> None:
    shown = [write(load_full(talk)) for write in (as_markdown, as_html, as_text)]
    without_times(talk)
    loaded = load(talk)
    assert [message.text for message in loaded.messages] == ["first", "One.", "mind the tests", "second"]
    assert (loaded.times, loaded.prompts, loaded.problems) == ((0.0,) * 4, (), ())
    for text, write in zip(shown, (as_markdown, as_html, as_text), strict=True):
        assert local_time(BEGUN + 60) in text
        assert local_time(BEGUN + 60) not in write(load_full(talk))
        assert "One." in write(load_full(talk))


@pytest.mark.parametrize("spoilt", ["now", -5, True, 1e300, [1], {"a": 1}, None])
def test_a_time_that_is_none_costs_the_time_alone(talk: Path, spoilt: object) -> None:
    lines = [json.dumps({**record, "time": spoilt}) for record in records(talk)[1:]]
    talk.write_text("\n".join([talk.read_text().splitlines()[0], *lines]) + "\n")
    loaded = load(talk)
    assert len(loaded.messages) == 4
    assert not any(loaded.times)
    assert "One." in as_markdown(load_full(talk))


def test_what_a_compaction_kept_has_no_time_and_what_follows_has(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "s.jsonl", HEADER, Timeouts())
    transcript.append(user("first"), at=BEGUN)
    transcript.append_compaction([user("sum")])
    transcript.append(user("second"), at=BEGUN + 60)
    transcript.close()
    loaded = load(transcript.path)
    assert loaded.times == (0.0, BEGUN + 60)
    assert [(one.text, one.time) for one in loaded.prompts] == [("second", BEGUN + 60)]


def test_prompts_are_what_the_user_sent_and_lead_to_before_it(talk: Path) -> None:
    first, second = load(talk).prompts
    assert (first.text, second.text, second.time) == ("first", "second", BEGUN + 180)
    assert [message.text for message in load(talk, second.leaf).messages] == ["first", "One.", "mind the tests"]


def test_search_says_when(talk: Path) -> None:
    (hit,) = search(talk.parent, "one.")
    assert (hit.snippets, hit.times) == (("One.",), (BEGUN + 60,))


def test_a_replay_is_the_end_of_what_was_said() -> None:
    said = [message for number in range(50) for message in (user(f"q{number}"), answer(f"a{number}"))]
    shown = end_of(said, [BEGUN + number for number in range(100)])
    assert [entry.text for entry in shown] == ["q47", "a47", "q48", "a48", "q49", "a49"]
    assert [entry.time for entry in shown] == [BEGUN + number for number in range(94, 100)]


def test_a_replay_has_neither_summaries_nor_outputs_and_is_not_endless() -> None:
    summary = user("sum").replace(is_summary=True)
    assert end_of([summary, user("q"), answer("x" * 100_000)], [])[0].text == "q"
    assert len(end_of([user("q"), answer("x" * 100_000)], [])[1].text) < 5_000
    assert len(end_of([answer("again")] * 1_000, [])) < 20
    assert end_of([], []) == ()
