"""What tools show people: checked, bounded and redacted once, kept with the session, drawn everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Call, Image, Link, Picture, Table, ToolContext, ToolResult, tool
from marvin_core.api.events import ToolExecutionEnd
from marvin_core.api.messages import Message, ToolOutput, from_dict, to_dict
from marvin_core.api.messages import tool as tool_message
from marvin_core.guard.kept_texts import KeptTexts
from marvin_core.sessions.records import line_of
from marvin_core.testing import Outcome, ToolRunner
from marvin_core.util.event_lines import event_line
from marvin_core.util.shown import shown_lines
from tests.support.examples import examples

EVIL = "\x1b]0;title\x07\x1b[31mred\x1b[0m\nnext\u202e"


@tool(access=["read"], secrets=["MARVIN_TEST_SECRET"])
async def show_all(context: ToolContext, secret: bool = False) -> ToolResult:
    """Show one of each."""
    text = context.secret("MARVIN_TEST_SECRET") or "" if secret else "plain"
    return ToolResult(
        content=("shown"),
        show=[
            Table(columns=("name", "size"), rows=[("a", 1), (text, None)], title=text),
            Picture(path="plot.png", alt=text),
            Link(url=f"https://example.com/?q={text}", text="More"),
        ],
        undo=Call(name="show_none", arguments={"text": text, "odd": Path("x"), 1: (2,)}),  # type: ignore[dict-item]
    )


@tool(access=["state"], secrets=["MARVIN_TEST_SECRET"])
async def lasts(context: ToolContext, text: str, secret: bool = False) -> ToolResult:
    """Keep a text."""
    kept = context.secret("MARVIN_TEST_SECRET") if secret else f"{text}\ud800"
    return ToolResult(content="kept", lasting=kept)


@tool(access=["state"])
async def lasts_oddly() -> ToolResult:
    """Keep what is no text."""
    result: ToolResult = made(ToolResult, content="kept", lasting=Speechless())
    return result


class Speechless:
    """Says nothing of itself."""

    def __repr__(self) -> str:
        raise ValueError("no words")


def made(kind: Any, **values: Any) -> Any:
    """A record whose values type checkers would refuse."""
    return kind(**values)


def returned(marvin_tools: ToolRunner, show: Any = (), undo: Any = None) -> Outcome:
    """What comes of a call that shows this."""

    @tool(access=["read"])
    async def show_this() -> ToolResult:
        """Show it."""
        return ToolResult(content="done", show=show, undo=undo)

    return marvin_tools.call(show_this)


def test_a_tool_shows_tables_pictures_and_links_and_says_how_it_is_undone(marvin_tools: ToolRunner) -> None:
    (marvin_tools.working_dir / "plot.png").write_bytes(b"x" * 2_500)
    outcome = marvin_tools.call(show_all)
    assert outcome.show == (
        Table(columns=("name", "size"), rows=(("a", 1), ("plain", None)), title="plain"),
        Picture(path="plot.png", alt="plain", size=2_500),
        Link(url="https://example.com/?q=plain", text="More"),
    )
    assert outcome.undo == Call(name="show_none", arguments={"text": "plain", "odd": "x", "1": [2]})
    assert outcome.text == "shown"


def test_secrets_are_taken_out_of_all_of_it(marvin_tools: ToolRunner) -> None:
    session = marvin_tools.session(env={"MARVIN_TEST_SECRET": "s3cr3t-value"})
    outcome = session.call(show_all, secret=True)
    assert "s3cr3t-value" not in repr(outcome)
    assert repr(outcome).count("[redacted]") == 5


@pytest.mark.parametrize(
    "show",
    ["text", 7, [{"columns": []}], [Table(columns="ab", rows=())], [Table(columns=(), rows="ab")],
     [made(Table, columns=(), rows=[7])], [made(Table, columns=(1,), rows=())], [made(Link, url=None)],
     [made(Picture, path=Path("x"))], {"a": 1}, [made(Table, columns=(), rows=(), omitted="3")],
     [made(Table, columns=(), rows=(), omitted=None)], [made(Table, columns=(), rows=(), omitted=float("nan"))],
     [Speechless()]],
)  # fmt: skip
def test_what_cannot_be_shown_is_an_error_of_the_call(marvin_tools: ToolRunner, show: Any) -> None:
    outcome = returned(marvin_tools, show)
    assert outcome.is_error
    assert "is not a valid table, picture or link" in outcome.text
    assert outcome.show == ()


@pytest.mark.parametrize(
    "undo", ["text", {"name": "a"}, made(Call, name=1, arguments={}), made(Call, name="a", arguments=[1])]
)
def test_an_undo_that_is_none_is_an_error_of_the_call(marvin_tools: ToolRunner, undo: Any) -> None:
    outcome = returned(marvin_tools, undo=undo)
    assert (outcome.is_error, outcome.undo) == (True, None)


def test_what_is_shown_is_bounded(marvin_tools: ToolRunner) -> None:
    row = ["x" * 1_000]
    outcome = returned(marvin_tools, [Table(columns=["a"], rows=[row] * 100_000), *[Link(url="y" * 10)] * 1_000])
    table, *links = outcome.show
    assert isinstance(table, Table)
    assert 190 <= len(table.rows) <= 201
    assert len(table.rows) + table.omitted == 100_000
    assert (len(links), len(json.dumps(to_dict(_message(outcome)))) < 250_000) == (99, True)


def _message(outcome: Outcome) -> Message:
    output = ToolOutput(call_id="1", name="t", content=outcome.content, show=outcome.show, undo=outcome.undo)
    return tool_message([output])


@pytest.mark.parametrize("huge", [10**400, pytest.param(10**5_000, id="cannot be written")])
def test_counts_that_no_reader_knows_are_the_largest_that_one_does(marvin_tools: ToolRunner, huge: int) -> None:
    show = [Table(columns=["a"], rows=[[1]], omitted=huge), Picture(path="x.png", size=huge)]
    table, picture = returned(marvin_tools, show).show
    assert isinstance(table, Table)
    assert isinstance(picture, Picture)
    assert (table.omitted, picture.size) == (2**53, 2**53)
    assert shown_lines([table, picture])[-2].endswith("more rows")


def test_a_cell_that_says_nothing_of_itself_is_called_by_its_class(marvin_tools: ToolRunner) -> None:
    (table,) = returned(marvin_tools, [made(Table, columns=["a"], rows=[[Speechless()]])]).show
    assert isinstance(table, Table)
    assert table.rows == (("a Speechless",),)


def test_odd_cells_become_such_that_json_can_hold_them(marvin_tools: ToolRunner) -> None:
    cells = [float("nan"), 10**400, True, None, Path("a"), "\ud83d", 1.5]
    (table,) = returned(marvin_tools, [made(Table, columns=[], rows=[cells])]).show
    assert isinstance(table, Table)
    first, second, *rest = table.rows[0]
    assert (first, str(second)[:2], rest) == ("nan", "0x", [True, None, "a", "\\ud83d", 1.5])


def test_the_session_file_keeps_it(marvin_tools: ToolRunner) -> None:
    message = _message(marvin_tools.call(show_all))
    data = json.loads(json.dumps(to_dict(message)))
    read = from_dict(data).outputs[0]
    assert to_dict(from_dict(data)) == data
    assert read.undo == message.outputs[0].undo
    assert [type(item) for item in read.show] == [Table, Picture, Link]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from("type columns rows title omitted url text path size name arguments".split()),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@examples(300)
@given(show=JSON, undo=JSON, kind=st.sampled_from(["table", "picture", "link", "other", None]))
def test_no_session_file_is_lost_for_what_was_shown(show: Any, undo: Any, kind: str | None) -> None:
    from marvin_core.util.shown import shown_lines

    items = show if isinstance(show, list) else [show]
    items = [{**item, "type": kind} if isinstance(item, dict) and kind else item for item in items]
    block = {"type": "tool_output", "call_id": "1", "name": "t", "content": [], "show": items, "undo": undo}
    read = from_dict({"role": "tool", "content": [block]})
    assert all("\x1b" not in line for line in shown_lines(read.outputs[0].for_people))


def test_a_line_that_is_too_long_loses_what_was_shown_and_not_the_output() -> None:
    table = Table(columns=("a",), rows=[("x" * 50_000,)])
    output = ToolOutput(call_id="1", name="t", content=(), show=(table,), undo=Call(name="u", arguments={"a": "x"}))
    line = line_of({"type": "message", "id": "1", "parent": "0", "message": to_dict(tool_message([output]))}, 30_000)
    read = from_dict(json.loads(line)["message"]).outputs[0]
    assert (read.show, read.undo) == ((), Call(name="u", arguments={"a": "x"}))


def test_events_carry_it_as_data() -> None:
    output = ToolOutput(call_id="1", name="t", content=(Image(media_type="image/png", data="AAAA"),),
                        show=(Table(columns=("a",), rows=((1,),)), Link(url="u")))  # fmt: skip
    event = ToolExecutionEnd(call_id="1", name="t", text="", is_error=False, elapsed=0.0, show=output.for_people)
    assert json.loads(event_line(event))["show"] == [
        {"type": "table", "columns": ["a"], "rows": [[1]], "title": "", "omitted": 0},
        {"type": "link", "url": "u", "text": ""},
        {"type": "picture", "path": "", "alt": "", "media_type": "image/png", "size": 3},
    ]


@tool(access=["read"])
async def work(context: ToolContext) -> str:
    """Work."""
    context.progress("begun")
    context.progress("half", 5, 10)
    context.progress("too much", 12.5, 10)
    context.progress("odd", float("nan"), -1)
    context.progress("of nothing", 0, 0)
    return "done"


def test_progress_has_a_fraction(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.call(work)
    assert outcome.progress == ("begun", "half", "too much", "odd", "of nothing")
    assert [(each.done, each.total, each.fraction) for each in outcome.updates] == [
        (None, None, None), (5, 10, 0.5), (10, 10, 1.0), (None, None, None), (0, 0, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"), [(None, "None"), (5, "5"), (Speechless(), "a Speechless"), ("half \ud800", "half \\ud800")]
)
def test_progress_that_is_no_text_is_told_as_text(marvin_tools: ToolRunner, given: Any, told: str) -> None:
    @tool(access=["read"])
    async def tell(context: ToolContext) -> str:
        """Tell how far it is."""
        context.progress(given)
        return "done"

    assert marvin_tools.call(tell).progress == (told,)


def test_tools_that_show_nothing_import_nothing_for_it(marvin_tools: ToolRunner) -> None:
    import subprocess
    import sys

    code = "import sys, marvin_core.engine.session, marvin_core.ui.headless; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=150, check=True)
    assert not {"marvin_core.util.shown", "marvin_core.engine.calls.shown"} & set(done.stdout.split())


def test_what_lasts_of_a_call_is_kept_with_the_session_bounded_and_without_secrets(marvin_tools: ToolRunner) -> None:
    tools = marvin_tools.session(env={"MARVIN_TEST_SECRET": "hunter2-hunter2"})
    assert tools.call(lasts, text="a\nb").lasting == "a\nb\\ud800"
    assert "hunter2" not in tools.call(lasts, text="", secret=True).lasting
    assert len(tools.call(lasts, text="x" * 1_000_000).lasting) == 8_001
    odd = tools.call(lasts_oddly)
    assert (odd.is_error, odd.lasting) == (True, "")
    assert "lasts_oddly returned a Speechless as lasting, which is not text." in odd.text


def test_what_lasts_is_read_back_and_passed_over_where_it_is_damaged() -> None:
    message = tool_message([ToolOutput(call_id="a", name="lasts", content=(), lasting="all of it")])
    data = to_dict(message)
    assert data["content"][0]["lasting"] == "all of it"
    assert from_dict(json.loads(json.dumps(data))) == message
    for damaged in (7, None, ["a"]):
        data["content"][0]["lasting"] = damaged
        assert from_dict(data).outputs[0].lasting == ""


def test_a_key_of_somebody_is_not_written_to_disk_in_what_lasts(tmp_path: Path) -> None:
    key = "ghp_" + "a1" * 20
    message = tool_message([ToolOutput(call_id="a", name="lasts", content=(), lasting=f"use {key}")])
    assert key not in KeptTexts().message(message).outputs[0].lasting
