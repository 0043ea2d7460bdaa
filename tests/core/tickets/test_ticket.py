"""One ticket: what is read of a file, and edits that leave everything else as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.tickets.ticket import Ticket, TicketError, is_complete

FULL = """\
---
id: ab-12
status: in_progress
deps: [ab-1, "ab-2" , 'ab-3',]
links: []
assignee: Ada: the first
parent: ab-9  # What it is a part of
tags: [ui,  urgent]
---

# The title # and more

---
status: closed
# No title
"""


def test_what_a_file_says() -> None:
    ticket = Ticket("ab-12", FULL)
    assert (ticket.id, ticket.status, ticket.title) == ("ab-12", "in_progress", "The title # and more")
    assert (ticket.deps, ticket.links, ticket.items("tags")) == (["ab-1", "ab-2", "ab-3"], [], ["ui", "urgent"])
    assert ticket.value("assignee") == "Ada: the first"
    assert ticket.parent == "ab-9"
    assert ticket.priority == "2", "where none is given"
    assert ticket.is_open


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "---",
        "---\n",
        "# Title\n",
        "id: x\nstatus: open\n",
        "\x00" * 100,
        "----\nid: x\n---\n",
        "\n---\nid: x\n",
    ],
)
def test_a_file_without_front_matter_is_no_ticket_of_a_list(text: str) -> None:
    assert Ticket("x", text).id == ""


def test_front_matter_that_never_ends_is_read_to_the_end() -> None:
    assert Ticket("x", "---\nid: x\nstatus: open").status == "open"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_lines_may_end_as_on_windows_and_a_file_begin_with_a_mark(begin: str, end: str) -> None:
    text = (begin + FULL).replace("\n", end)
    ticket = Ticket("ab-12", text)
    assert (ticket.status, ticket.parent, ticket.title) == ("in_progress", "ab-9", "The title # and more")
    edited = ticket.with_field("status", "closed")
    assert edited == text.replace("status: in_progress", "status: closed")
    added = ticket.with_field("due", "today")
    assert added == text.replace("---" + end, "---" + end + "due: today" + end, 1)
    note = ticket.with_note("2024-01-01T00:00:00Z", "one\ntwo").removeprefix(text)
    assert note == "\n## Notes\n\n**2024-01-01T00:00:00Z**\n\none\ntwo\n".replace("\n", end)


def test_a_list_may_stand_in_lines_of_its_own() -> None:
    text = "---\nid: x\ndeps:\n  - a\n  - 'b'\nlinks:\n- c\nstatus: open\n---\n# T\n"
    ticket = Ticket("x", text)
    assert (ticket.deps, ticket.links, ticket.status) == (["a", "b"], ["c"], "open")
    assert ticket.with_items("deps", ["a"]) == text.replace("deps:\n  - a\n  - 'b'\n", "deps: [a]\n")
    assert ticket.with_items("links", ["c", "d"]) == text.replace("links:\n- c\n", "links: [c, d]\n")


def test_of_a_field_that_is_given_twice_the_first_counts_and_is_changed() -> None:
    ticket = Ticket("x", "---\nstatus: open\nstatus: closed\n---\n")
    assert ticket.status == "open"
    assert Ticket("x", ticket.with_field("status", "in_progress")).status == "in_progress"


def test_a_field_is_not_added_where_there_is_no_front_matter() -> None:
    with pytest.raises(TicketError, match="ticket 'x' has no front matter"):
        Ticket("x", "# Title\n").with_field("status", "closed")


def test_there_is_one_heading_for_all_notes() -> None:
    text = Ticket("x", "---\nid: x\n---\n# T\n").with_note("1", "one")
    text = Ticket("x", text).with_note("2", "two")
    assert text == "---\nid: x\n---\n# T\n\n## Notes\n\n**1**\n\none\n\n**2**\n\ntwo\n"


ENDS = st.sampled_from(["\n", "\r\n"])
LINES = st.text(st.characters(blacklist_characters="\n\r"), max_size=20)
NAMES = st.sampled_from(["id", "status", "deps", "links", "type", "x-ref", "Status"])


@given(
    st.lists(st.tuples(NAMES, LINES), max_size=6),
    st.lists(LINES, max_size=6),
    ENDS,
    NAMES,
    st.sampled_from(["open", "[a, b]"]),
)
def test_an_edit_changes_one_line_and_no_other_byte(
    fields: list[tuple[str, str]], body: list[str], end: str, name: str, value: str
) -> None:
    head = [f"{field}: {text}" for field, text in fields]
    text = end.join(["---", *head, "---", *body])
    before = Ticket("x", text)
    after = Ticket("x", before.with_field(name, value))
    assert after.value(name) == value
    names = {field for field, _ in fields}
    assert {one: after.value(one) for one in names - {name}} == {one: before.value(one) for one in names - {name}}
    old, new = text.split("\n"), after.text.split("\n")
    if name in before.fields:
        changed = next(index for index, line in enumerate(old) if line.startswith(f"{name}:"))
        assert (old[:changed], old[changed + 1 :]) == (new[:changed], new[changed + 1 :])
    else:
        assert [new[0], *new[2:]] == old


@given(st.text(max_size=300) | st.text("-\n #:[]ab,'\"", max_size=60).map("---\n{}".format))
def test_any_text_can_be_read_and_what_is_written_is_read_again(text: str) -> None:
    ticket = Ticket("x", text)
    assert ticket.title == ticket.title.split("\n")[0]
    try:
        edited = ticket.with_items("deps", ["a-1", "b-2"])
    except TicketError:
        return
    again = Ticket("x", edited)
    assert again.deps == ["a-1", "b-2"]
    assert again.with_items("deps", ["c"]) == ticket.with_items("deps", ["c"])


@given(st.text("-\n #ab", max_size=80).map("---\n{}".format), st.integers(0, 80))
def test_the_beginning_of_a_file_suffices_where_it_says_so(text: str, size: int) -> None:
    begun = text[:size]
    if is_complete(begun):
        whole, part = Ticket("x", text), Ticket("x", begun)
        assert (part.title, {name: field.value for name, field in part.fields.items()}) == (
            whole.title,
            {name: field.value for name, field in whole.fields.items()},
        )
