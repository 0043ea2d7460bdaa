"""What a session cost stands in its header, so that who goes on with it knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.messages import user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.doctor import diagnose
from marvin_core.sessions.reader import load
from marvin_core.sessions.records import Header
from marvin_core.sessions.transcript import Transcript
from marvin_core.sessions.writer import SessionWriter

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.002)
HEADER = Header(id="s1", title="A chat", time=1.5, provider="p", model="m", working_dir="/w")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"


def begun(file: Path) -> Transcript:
    transcript = Transcript(file, HEADER, TIMEOUTS)
    transcript.append(user("one"))
    return transcript


def resumed(file: Path) -> Transcript:
    return Transcript.resumed(file, load(file), TIMEOUTS)


def test_what_each_prompt_costs_adds_up(file: Path) -> None:
    transcript = begun(file)
    transcript.add_spent(0.25)
    transcript.append(user("two"))
    transcript.add_spent(0.5)
    assert load(file).header == HEADER.replace(spent=0.75)
    assert load(file).count == 2
    later = resumed(file)
    later.add_spent(1.0)
    assert load(file).header.spent == 1.75
    assert diagnose(file, TIMEOUTS).problems == ()


def test_two_that_go_on_with_one_session_lose_nothing(file: Path) -> None:
    one = begun(file)
    other = resumed(file)
    for transcript in (one, other, one, other):
        transcript.add_spent(0.25)
    assert load(file).header.spent == 1.0


def test_a_change_and_a_compaction_and_another_branch_keep_it(file: Path) -> None:
    """Money that a branch cost is spent, whatever branch goes on."""
    transcript = begun(file)
    transcript.add_spent(0.25)
    transcript.change_header(model="other")
    transcript.append_compaction([user("so far")])
    transcript.step_back()
    transcript.append(user("instead"))
    assert load(file).header == HEADER.replace(spent=0.25, model="other")


@pytest.mark.parametrize("bad", ["NaN", "-1", '"1"', "true", "1e999", "null", "{}", "1" + "0" * 400])
def test_a_number_that_is_none_costs_the_number_and_not_the_session(file: Path, bad: str) -> None:
    begun(file).close()
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([first.replace('"spent":0.0', f'"spent":{bad}'), *rest]) + "\n")
    loaded = load(file)
    assert (loaded.header.spent, len(loaded.messages), loaded.problems) == (0.0, 1, ())


def test_a_session_of_an_older_version_cost_nothing_that_is_known(file: Path) -> None:
    begun(file).close()
    first, *rest = file.read_text().splitlines()
    header: dict[str, Any] = json.loads(first)
    del header["spent"]
    file.write_text("\n".join([json.dumps(header), *rest]) + "\n")
    assert load(file).header.spent == 0.0


def test_a_writer_tells_what_its_session_cost(tmp_path: Path) -> None:
    writer = SessionWriter(tmp_path, TIMEOUTS, pytest.fail)
    assert writer.cost == 0.0
    writer.spent(5.0)  # nothing is being saved
    writer.begin(1.0, "A chat", "p", "m", "/w")
    writer.spent(0.25)
    writer.save(user("one"))
    writer.spent(0.25)
    assert writer.cost == 0.5
    writer.close()
    (path,) = tmp_path.glob("*.jsonl")
    again = SessionWriter(tmp_path, TIMEOUTS, pytest.fail)
    again.resume(path, load(path))
    assert again.cost == 0.5
    again.clear()
    assert again.cost == 0.0
