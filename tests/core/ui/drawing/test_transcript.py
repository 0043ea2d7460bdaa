"""The transcript: everything in full, bounded, in rows that fit."""

from __future__ import annotations

import re
from time import process_time

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from marvin_core.api.events import MessageUpdate, Notice, ToolExecutionEnd, ToolExecutionStart
from marvin_core.ui.drawing.transcript import MOST, Line, Transcript, rows_of
from tests.support.examples import examples


def texts(transcript: Transcript) -> list[str]:
    return [line.text for line in transcript.lines()]


def test_it_has_all_that_the_chat_cuts() -> None:
    transcript = Transcript(get_cwidth)
    command = "\n".join(f"echo {number}" for number in range(50))
    output = "\n".join(f"line {number}" for number in range(500))
    transcript.typed("do\nit")
    transcript.add(MessageUpdate(kind="thinking", delta="I think\nof it"))
    transcript.add(MessageUpdate(kind="text", delta="Some "))
    transcript.add(MessageUpdate(kind="text", delta="**text**"))
    transcript.add(MessageUpdate(kind="tool_call", delta='{"command"'))
    transcript.add(ToolExecutionStart(call_id="1", name="run", arguments={"command": command, "n": 3}))
    transcript.add(
        ToolExecutionEnd(
            call_id="1", name="run", text=output, is_error=False, elapsed=0.5, details={"diff": "-a\n+b\n"}
        )
    )
    transcript.add(Notice(level="warning", text="careful"))
    found = texts(transcript)
    assert found[:2] == ["> do", "it"]
    for line in (
        "I think",
        "of it",
        "Some **text**",
        "🔧 run",
        "  command: echo 0",
        "    echo 49",
        "  n: 3",
        "line 499",
    ):
        assert line in found
    assert "(careful)" in found
    roles = {line.text: line.role for line in transcript.lines()}
    assert (roles["-a"], roles["+b"], roles["I think"]) == ("removed", "added", "thinking")
    assert not any('{"command"' in line for line in found)


def test_what_is_old_goes_before_memory_does() -> None:
    transcript = Transcript(get_cwidth)
    for _ in range(8):
        transcript.add(Notice(level="info", text="x" * (MOST // 4)))
    found = texts(transcript)
    assert sum(map(len, found)) <= MOST + 200
    assert "(Older messages are not shown; the session file contains them.)" in found[0]


def test_nothing_in_it_steers_the_terminal() -> None:
    transcript = Transcript(get_cwidth)
    attack = "\x1b[2J\x1b]0;t\x07\x9b2J\u202e\rx\x85"
    transcript.typed(attack)
    transcript.add(MessageUpdate(kind="text", delta=attack))
    transcript.add(ToolExecutionStart(call_id="1", name=f"r{attack}", arguments={attack: attack, "list": [attack]}))
    transcript.add(
        ToolExecutionEnd(call_id="1", name="r", text=attack, is_error=True, elapsed=1, details={"diff": attack})
    )
    transcript.add(Notice(level="error", text=attack))
    found = "\n".join(texts(transcript))
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", found) is None


@examples(100)
@given(st.text(alphabet="ab 漢👨\u0301", max_size=200), st.integers(2, 40))
def test_rows_fit_and_no_character_is_lost(text: str, width: int) -> None:
    rows = rows_of([Line("faint", text)], width, get_cwidth)
    assert all(get_cwidth(row.text) <= width and row.role == "faint" for row in rows)
    assert "".join(row.text for row in rows).replace(" ", "") == text.replace(" ", "")


def test_a_very_long_line_is_folded_in_a_moment() -> None:
    begun = process_time()
    rows = rows_of([Line(None, "漢字 and words " * 20_000)], 80, get_cwidth)
    assert len(rows) > 1_000
    assert process_time() - begun < 3.0
