"""What is secret is in no record, however an answer is cut into pieces, and wherever it is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import CallDelta, Delta, Stop, TextDelta, ThinkingDelta
from marvin_core.recording.cassette import read_cassette
from marvin_core.recording.recorder import Recorder
from tests.support.engine import USED, make, says
from tests.support.examples import examples

_SECRETS = st.text("abcXYZ0189-_+/=.", min_size=12, max_size=30)


def in_pieces(text: str, places: Sequence[int]) -> list[str]:
    """The text, cut at these places."""
    cuts = sorted({0, *(place % (len(text) + 1) for place in places), len(text)})
    return [text[begin:end] for begin, end in pairwise(cuts)]


@given(
    secret=_SECRETS,
    places=st.lists(st.integers(0, 200), max_size=6),
    beside=st.sampled_from(["", "{cwd}", "/tmp/"]),
    between=st.sampled_from([USED, ThinkingDelta(text="~")]),
)
@examples(40, deadline=None)
def test_no_declared_secret_is_in_a_cassette(
    tmp_path_factory: pytest.TempPathFactory, secret: str, places: list[int], beside: str, between: Delta
) -> None:
    folder = tmp_path_factory.mktemp("recorded")
    path = folder / "s.jsonl"
    said = f"It is {secret}{beside} and {beside}{secret}."
    arguments = json.dumps({"note": said, secret: 1})
    first: list[Delta] = [
        *(ThinkingDelta(text=piece) for piece in in_pieces(said, places)),
        *(delta for piece in in_pieces(said, places) for delta in (TextDelta(text=piece), between)),
        CallDelta(key=0, id="c1", name="no_such_tool"),
        *(CallDelta(key=0, arguments=piece) for piece in in_pieces(arguments, places)),
        USED,
        Stop(reason="tool_calls"),
    ]
    recorder = Recorder(path, print, depth=0)
    made = make(folder, first, says(*in_pieces(said, places)), env={"OPENAI_API_KEY": secret}, watch=recorder)

    async def go() -> None:
        await made.session.submit(f"Use {secret} for {beside}{secret}")
        await made.session.close()

    asyncio.run(go())
    content = path.read_text("utf-8")
    assert secret not in content
    assert secret not in json.dumps([json.loads(line) for line in content.splitlines()], ensure_ascii=False)
    assert "[redacted]" in content
    for record in map(json.loads, content.splitlines()):
        assert secret not in "".join(part["text"] for part in record.get("parts", ()) if part["kind"] == "text")
    assert not read_cassette(path).is_cut


def test_a_disk_that_fails_ends_the_recording_and_not_the_session(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    recorder = Recorder(path, print, depth=0)
    made = make(tmp_path, says("Fine."), watch=recorder)
    recorder.end()  # as where the file can no longer be written

    async def go() -> str:
        result = await made.session.submit("Do it.")
        await made.session.close()
        return result.text

    assert asyncio.run(go()) == "Fine."
