"""What a screen reader hears: who speaks, tables in words, choices by number, and never anything twice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.controls import SaidEntry
from marvin_core.api.events import ToolExecutionEnd, ToolExecutionStart
from marvin_core.api.messages import Link, Table
from marvin_core.ui.line_writing import LineWriting, SpokenQuoting, SpokenWriting
from marvin_core.ui.rendering import Paint
from tests.support.examples import examples

TABLE = "| name | size |\n|:---|---:|\n| a.py | 10 |\n| b \\| c | |\n"
SPOKEN = "Row 1. name: a.py; size: 10.\nRow 2. name: b | c.\n"


def heard(*pieces: str) -> str:
    writing = SpokenWriting()
    return "".join([*map(writing.text, pieces), writing.end_text()])


def test_an_answer_begins_with_who_speaks_and_says_it_once() -> None:
    assert heard("Hel", "lo.\nMore.\n") == "Marvin: Hello.\nMore.\n"
    assert heard("", "\n\n") == ""
    assert heard("\n", "\nHello") == heard("\n\nHello") == "Marvin: Hello"
    writing = SpokenWriting()
    assert [writing.text("a"), writing.end_text(), writing.text("b")] == ["Marvin: a", "", "Marvin: b"]


def test_a_table_is_told_by_its_headers() -> None:
    assert heard(f"See:\n\n{TABLE}\nDone.") == f"Marvin: See:\n\n{SPOKEN}\nDone."
    assert heard(TABLE) == f"Marvin: {SPOKEN}"
    assert heard(TABLE.rstrip("\n")) == f"Marvin: {SPOKEN}", "the end of the answer ends it too"


@pytest.mark.parametrize("text", ["| not a table\n", "a | b\n", "|\n|\n", "| x |\nno rule\n", "||||"])
def test_what_is_no_table_stays_as_it_is(text: str) -> None:
    assert heard(text) == f"Marvin: {text}"


@examples(100)
@given(
    st.lists(st.sampled_from(["| a | b |", "|---|---|", "| 1 | 2 |", "text", "", "|", "x|y"]), max_size=8), st.data()
)
def test_however_it_is_cut_the_same_is_heard(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cuts = [0, *places, len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(cuts)]
    assert heard(*pieces) == heard(text)


def test_a_table_without_an_end_is_not_held_back_for_ever() -> None:
    writing = SpokenWriting()
    given_out = "".join(writing.text("| a | b |\n") for _ in range(5_000))
    assert len(given_out) > 30_000


def test_sequences_of_a_model_do_not_get_through() -> None:
    assert "\x1b" not in heard("a\x1b]0;PW", "NED\x07b\n| \x1b[2J | c |\n|---|---|\n| \x1b[31md | e |\n")


def start(**arguments: object) -> ToolExecutionStart:
    return ToolExecutionStart(call_id="1", name="run_command", arguments=arguments)


def end(**fields: Any) -> ToolExecutionEnd:
    given_fields: dict[str, Any] = {
        "call_id": "1",
        "name": "run_command",
        "text": "fine",
        "is_error": False,
        "elapsed": 1.25,
        **fields,
    }
    return ToolExecutionEnd(**given_fields)


def test_a_call_is_told_in_words_without_signs() -> None:
    assert SpokenWriting().call(start(command="ls -l"), "", 80) == "Tool run_command. command: ls -l"
    told = SpokenWriting().call(start(command="a\x1b[2Jb\nc" + "x" * 500), "", 80)
    assert "\n" not in told
    assert "\x1b" not in told
    assert len(told) < 300
    assert "🔧" in LineWriting().call(start(command="ls"), "command", 80), "for eyes as ever"


@pytest.mark.parametrize("writing", [LineWriting(), SpokenWriting()])
def test_the_whole_of_a_command_is_told(writing: LineWriting) -> None:
    told = writing.call(start(command=f"echo {'x ' * 300}\x1b[2J; rm -rf /"), "command", 80)
    assert told.count("x ") >= 290
    assert "rm -rf /" in told
    assert "\x1b" not in told


def test_how_a_call_ended_is_told_with_its_difference() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n context\n--- gone\n"
    told = SpokenWriting().outcome(end(details={"diff": diff}), 80).splitlines()
    assert told == [
        "Tool done in 1.2 s: fine", "Difference of b/x", "removed: old", "added: new", "context", "removed: -- gone"
    ]  # fmt: skip


def test_what_a_tool_shows_is_told_by_its_headers() -> None:
    table = Table(title="Files", columns=("name", "size"), rows=(("a", 1), ("b", None)), omitted=3)
    told = SpokenWriting().outcome(end(show=(table, Link(url="https://example.org", text="more"))), 80)
    assert told.splitlines()[1:] == [
        "Files",
        "Row 1. name: a; size: 1.",
        "Row 2. name: b.",
        "3 more rows.",
        "more: https://example.org",
    ]


def test_a_long_table_is_counted() -> None:
    told = SpokenWriting().outcome(end(show=(Table(columns=("n",), rows=tuple((n,) for n in range(500))),)), 80)
    assert "450 more rows." in told
    assert len(told.splitlines()) < 60


def test_choices_are_numbered_and_a_number_is_an_answer() -> None:
    writing = SpokenWriting()
    assert writing.choices("[yes/no/view] ") == "1 yes, 2 no, 3 view: "
    assert [writing.chosen("[yes/no/view] ", line) for line in ("2", " 3. ", "no", "4", "0", "")] == [
        "no",
        "view",
        "no",
        "4",
        "0",
        "",
    ]
    for sign in ("[all/none/1,2/each/view] ", "command (empty: back) > ", "[1-3, or your own words] "):
        assert writing.choices(sign) == sign, "numbers mean something else there"
        assert writing.chosen(sign, "2") == "2"
    assert LineWriting().chosen("[yes/no] ", "1") == "1"


def test_a_replay_names_who_spoke_and_when() -> None:
    said = [
        SaidEntry(role="user", text="Fix\x1b[2J it", time=0.0, calls=()),
        SaidEntry(role="assistant", text="Done.", time=0.0, calls=("run_command",)),
    ]
    assert SpokenWriting().replay(said).splitlines()[1:] == ["You: Fix it", "Marvin: Done. Tools: run_command."]
    assert LineWriting().replay(said).splitlines() == ["(Earlier)", "> Fix it", "Done.", "  (run_command)"]
    assert (SpokenWriting().replay(()), LineWriting().replay(())) == ("", "")


def test_a_question_quotes_in_words_and_hides_nothing() -> None:
    quoting = SpokenQuoting(Paint(color=False), 20, len)
    assert [*quoting.rows("a long command that is folded nowhere\n1. yes")] == [
        "quoted: a long command that is folded nowhere",
        "quoted: 1. yes",
    ]
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- evil\n+++ evil"
    assert [*quoting.rows(diff, diff=True)] == [
        "quoted: --- a/x",
        "quoted: +++ b/x",
        "quoted: place: @ -1,2 +1,2 @@",
        "quoted: same",
        "quoted: removed: -- evil",
        "quoted: added: ++ evil",
    ]
    assert [*quoting.rows("1\n2\n3", 2)] == ["quoted: 1", "quoted: 2", "1 line left out here; view tells all of it"]
