"""Calls on the screen: the whole command, what comes of it while it runs and in the end, several side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import process_time
from typing import Any

from prompt_toolkit.utils import get_cwidth

from marvin_core.api.events import CallOrigin, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from marvin_core.api.messages import Table
from marvin_core.ui.drawing.calls import HEADER_ROWS, Calls, header_rows
from marvin_core.ui.drawing.diffs import diff_rows
from marvin_core.ui.quoted import Quoting
from marvin_core.ui.rendering import DIFF_LINES, Paint


def calls(*, color: bool = False) -> Calls:
    return Calls(Paint(color), get_cwidth, lambda name: "command" if name == "run_command" else "")


def start(call_id: str = "1", name: str = "run_command", **arguments: Any) -> ToolExecutionStart:
    return ToolExecutionStart(call_id=call_id, name=name, arguments=arguments)


def end(text: str, call_id: str = "1", name: str = "run_command", **fields: Any) -> ToolExecutionEnd:
    usual = {"call_id": call_id, "name": name, "text": text, "is_error": False, "elapsed": 1.25}
    return ToolExecutionEnd(**{**usual, **fields})


def told(text: str, call_id: str = "1", **fields: Any) -> ToolExecutionUpdate:
    return ToolExecutionUpdate(call_id=call_id, name="run_command", text=text, **fields)


def test_the_header_has_the_whole_command() -> None:
    assert calls().begin(start(command="ls -la"), 80) == ["  🔧 run_command(command='ls -la')"]
    long = "echo " + "word " * 40
    rows = calls().begin(start(command=long), 40)
    assert rows[0] == "  🔧 run_command()"
    assert "".join(row[7:] for row in rows[1:]) == long
    assert max(map(get_cwidth, rows)) <= 40
    rows = calls().begin(start(command="cd x &&\n\tmake\n", timeout=5), 80)
    assert rows == ["  🔧 run_command(timeout=5)", "     | cd x &&", "     |     make", "     | "]


def test_a_hidden_character_of_a_command_is_seen() -> None:
    rows = calls().begin(start(command="ls\x1b[2J \u202e#safe"), 80)
    assert rows == ["  🔧 run_command()", r"     | ls\x1b[2J \u202e#safe"]


def test_rows_beyond_ten_are_counted_and_none_is_where_no_key_shows_them() -> None:
    command = "\n".join(f"echo {number}" for number in range(30))
    rows = calls().begin(start(command=command), 80)
    assert len(rows) == HEADER_ROWS + 2
    assert rows[-1] == "     … 20 more rows. Ctrl+O shows all."
    quoting = Quoting(Paint(False), 80, len)
    whole = header_rows(start(command=command), "command", quoting, 80, len, most=200)
    assert len(whole) == 31


def test_a_command_of_any_length_is_announced_in_a_moment() -> None:
    begun = process_time()
    rows = calls().begin(start(command="echo a word; " * 100_000), 80)
    assert re.fullmatch(r" +… \d+ more rows and 1,250,000 characters\. Ctrl\+O shows all\.", rows[-1])
    assert len(rows) == HEADER_ROWS + 2
    assert process_time() - begun < 2.0


def test_other_arguments_are_cut_and_marked_as_before() -> None:
    (row,) = calls().begin(start(name="edit", path="a.txt", text="x" * 500), 400)
    assert row.endswith("x…)")
    rows = calls().begin(start(name="edit", path="a.txt", text="several words in it"), 40)
    assert [row.strip() for row in rows] == ["🔧 edit(path='a.txt', text='several", "words in it')"]


def test_the_outcome_has_the_first_and_last_lines_of_the_output() -> None:
    view = calls()
    view.begin(start(command="ls"), 80)
    rows = view.end(end("\n".join(f"line {number}" for number in range(20))), 80)
    assert rows == [
        "     done in 1.2 s: line 0",
        "     line 1",
        "     … 15 more lines. Ctrl+O shows all.",
        "     line 17",
        "     line 18",
        "     line 19",
    ]
    view.begin(start(command="ls"), 80)
    assert view.end(end("one\ntwo\nthree\n"), 80) == ["     done in 1.2 s: one", "     two", "     three"]
    view.begin(start(command="ls"), 80)
    (row,) = view.end(end("a long line of output, far too long"), 30)
    assert get_cwidth(row) <= 30
    assert row.endswith("…")


def test_a_failure_is_told_in_full_and_a_refusal_as_what_it_is() -> None:
    view = calls()
    view.begin(start(), 38)
    rows = view.end(end("Error: there is no such file", is_error=True), 38)
    assert rows == ["     failed in 1.2 s: Error: there is", "     no such file"]
    view.begin(start(), 80)
    refused = view.end(end("Error: run_command was not run: the mode is readonly.", is_error=True), 80)
    assert refused == ["     not run: the mode is readonly."]


def test_a_call_by_hand_shows_nothing_twice() -> None:
    origins: tuple[CallOrigin, ...] = ("person", "typed")
    for origin in origins:
        view = calls()
        assert view.begin(start(command="ls").replace(origin=origin), 80) == []
        assert view.end(end("output\nmore", origin=origin, elapsed=0.1), 80) == []
        assert view.end(end("output\nmore", origin=origin), 80) == ["     done in 1.2 s"]


def test_a_running_call_shows_the_beginning_and_the_end_of_its_output() -> None:
    view = calls()
    view.begin(start(command="make"), 80)
    assert view.live_rows(80) == ["… run_command"]
    view.update(told("one\ntwo\n"))
    assert view.live_rows(80) == ["… run_command", "     one", "     two"]
    view.update(told("\n".join(f"line {number}" for number in range(50)) + "\x1b[2J"))
    assert view.live_rows(80) == [
        "… run_command", "     one", "     two", "     … 47 lines …", "     line 47", "     line 48", "     line 49",
    ]  # fmt: skip
    view.update(told("half", done=1.0, total=2.0))
    assert len(view.live_rows(20)) == 7
    assert max(map(get_cwidth, view.live_rows(20))) <= 20
    view.end(end("done"), 80)
    assert not view.are_running


def test_how_far_a_call_is() -> None:
    view = calls()
    view.begin(start(name="download"), 80)
    view.update(told("2 of 4", done=2.0, total=4.0))
    assert view.live_rows(80) == ["… download: [#####.....] 50 % 2 of 4"]


def test_calls_side_by_side_are_one_block_and_close_into_a_line_each() -> None:
    view = calls()
    for number, task in enumerate(("look at the parser", "write the docs")):
        view.begin(start(str(number), "launch_agent", task=task), 80)
    view.update(told("reading\nparser.py", "0"))
    assert view.live_rows(80) == [
        "… launch_agent look at the parser: parser.py",
        "… launch_agent write the docs",
    ]
    assert view.end(end("Written.\nall", "1", "launch_agent"), 80) == [
        "     launch_agent write the docs done in 1.2 s: Written."
    ]
    assert view.live_rows(80) == ["… launch_agent look at the parser: parser.py"], "what is left of the block stays so"
    assert view.end(end("Looked.\nmore", "0", "launch_agent"), 80) == [
        "     launch_agent look at the parser done in 1.2 s: Looked."
    ]


def test_tables_of_a_tool_stand_below_its_outcome() -> None:
    view = calls()
    view.begin(start(name="saved"), 80)
    rows = view.end(end("2 rows\nmore", name="saved", show=(Table(columns=("a",), rows=(("\x1b[2Jb",),)),)), 80)
    assert rows == ["     done in 1.2 s: 2 rows", "     a", "     -", "     b"]


# --- diffs ---------------------------------------------------------------------------------------------


def diff(*lines: str) -> Mapping[str, Any]:
    return {"diff": "\n".join(lines)}


def test_diffs_are_coloured_and_cut() -> None:
    lines = ("--- a", "+++ b", "@@ -1 +1 @@", "-old", "+new", " same")
    assert diff_rows(diff(*lines), Paint(False)) == [f"     {line}" for line in lines]
    assert "     \x1b[31m-old\x1b[0m" in diff_rows(diff(*lines), Paint(True))
    long = diff_rows({"diff": "+line\n" * 1_100}, Paint(False), ". There is more.")
    assert len(long) == DIFF_LINES + 1
    assert long[-1].strip() == "… 1,060 more lines. There is more."
    for nothing in (None, {}, {"diff": ""}, {"diff": 3}):
        assert diff_rows(nothing, Paint(True)) == []


def test_the_words_that_are_others_are_marked() -> None:
    old, new = diff_rows(diff("-total = price + tax", "+total = price * tax"), Paint(True))
    assert old == "     \x1b[31m-total = price \x1b[0m\x1b[31;7m+\x1b[0m\x1b[31m tax\x1b[0m"
    assert new == "     \x1b[32m+total = price \x1b[0m\x1b[32;7m*\x1b[0m\x1b[32m tax\x1b[0m"
    unlike = diff_rows(diff("-abc", "+something else"), Paint(True))
    assert not any(";7m" in row for row in unlike)
    uneven = diff_rows(diff("-a b", "-a c", "+a d"), Paint(True))
    assert not any(";7m" in row for row in uneven)


def test_nothing_in_a_diff_steers_the_terminal() -> None:
    rows = diff_rows(diff("-a \x1b[2J b\x9b", "+a \x1b]0;t\x07 c\u202e"), Paint(True))
    seen = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(rows))
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", seen) is None
