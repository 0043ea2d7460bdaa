"""Lines for the ticket program: what only reads, what creates, and below which parents."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.guard.gates.ticket_lines import creates, only_reads, parents_of, words_of

NOT_READING = "create x,start T,close T,reopen T,status T closed,add-note T x,edit T,dep T U,link T U".split(",")


@pytest.mark.parametrize(
    "line",
    [
        "show T-1",
        "ls",
        "ls --status=open",
        "ready",
        "blocked -T ui",
        "closed",
        "dep tree T-1",
        "query '.[]'",
        " ls ",
        "list",
        "dep-tree T",
        "dep cycle",
        "help",
    ],
)
def test_what_only_reads(line: str) -> None:
    assert only_reads(words_of(line))


@pytest.mark.parametrize(
    "line",
    [*NOT_READING, "undep T U", "dep", "dep --full tree", "LS", "show'", "-v ls", "'ls x'", "lsx", "\x00ls", "", " "],
)
def test_what_may_write_or_cannot_be_read(line: str) -> None:
    assert not only_reads(words_of(line))


@pytest.mark.parametrize("line", [None, 5, ["ls"], {"args": "ls"}, "ls 'open"])
def test_what_is_no_line_has_no_words(line: object) -> None:
    assert words_of(line) == ()


@pytest.mark.parametrize(
    ("line", "parents"),
    [
        ("create x", set()),
        ("create x --parent T-1", {"T-1"}),
        ("create --parent=T-1 x", {"T-1"}),
        ("create x --parent T-1 --parent T-1", {"T-1"}),
        ("create x --parent T-1 --parent=T-2", {"T-1", "T-2"}),
        ("create x --par T-2 --parent T-1", {"T-1", "T-2"}),
        ("create x -d '--parent T-1'", set()),
        ("create x -d --parent T-1", set()),
        ("create x -d --parent=T-1", set()),
        ("create x --parent", {""}),
        ("create x --parent ''", {""}),
        ("create x --parents T-1", set()),
        ("create -- x --parent T-1", set()),
        ("create --parent T-1 -- x --parent T-2", {"T-1"}),
        ("create x -p 2 -t task --tags a,b --parent T-1 --acceptance 'all tests pass'", {"T-1"}),
    ],
)
def test_the_parents_that_a_ticket_is_given(line: str, parents: set[str]) -> None:
    words = words_of(line)
    assert creates(words)
    assert parents_of(words) == parents


@pytest.mark.parametrize("line", ["create --help", "create x --parent T-1 -h", "create --he x", "create -d x --h"])
def test_who_asks_for_help_creates_nothing(line: str) -> None:
    """The gate must not open for it."""
    assert not creates(words_of(line))


@pytest.mark.parametrize("line", ["create x -d --help", "create -- --help", "create help", "create '-h x'"])
def test_what_only_speaks_of_help_creates_a_ticket(line: str) -> None:
    assert creates(words_of(line))


@given(st.lists(st.tuples(st.sampled_from(["-d", "--design", "--acceptance", "-t"]), st.text(max_size=20)), max_size=5))
def test_what_stands_in_a_description_is_never_a_parent(options: list[tuple[str, str]]) -> None:
    line = shlex.join(["create", "title", *(word for option in options for word in option)])
    assert parents_of(words_of(line)) == set()


@given(st.text(max_size=60))
def test_any_text_is_taken(text: str) -> None:
    words = words_of(text)
    assert not (only_reads(words) and creates(words))
    parents_of(words)
