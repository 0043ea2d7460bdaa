"""Trees of what tickets depend on, and circles, in small ones and in those of strangers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.tickets.graph import DependencyTree, cycle_lines
from marvin_core.tickets.ticket import Ticket
from tests.support.tickets import Desk


def tickets(**deps: str) -> dict[str, Ticket]:
    """Tickets by their ids, each with what it depends on."""
    return {
        name: Ticket(name, f"---\nid: {name}\nstatus: open\ndeps: [{on.replace(' ', ',')}]\n---\n# {name.upper()}\n")
        for name, on in deps.items()
    }


def tree(**deps: str) -> list[str]:
    """The tree below the first of these."""
    return list(DependencyTree(tickets(**deps), next(iter(deps)), full=False).lines())


def full_tree(**deps: str) -> list[str]:
    return list(DependencyTree(tickets(**deps), next(iter(deps)), full=True).lines())


def test_the_flatter_branches_come_first() -> None:
    assert tree(a="e d b", b="c", c="", d="", e="") == [
        "a [open] A",
        "├── d [open] D",
        "├── e [open] E",
        "└── b [open] B",
        "    └── c [open] C",
    ]


def test_each_ticket_stands_where_it_is_deepest_once() -> None:
    deps = {"a": "b c d", "b": "d", "c": "b", "d": ""}
    assert tree(**deps) == [
        "a [open] A",
        "└── c [open] C",
        "    └── b [open] B",
        "        └── d [open] D",
    ]
    assert full_tree(**deps) == [
        "a [open] A",
        "├── b [open] B",
        "│   └── d [open] D",
        "├── c [open] C",
        "│   └── b [open] B",
        "│       └── d [open] D",
        "└── d [open] D",
    ]


def test_a_circle_ends_where_it_would_close() -> None:
    for shown in (tree, full_tree):
        assert shown(a="b", b="c", c="a") == ["a [open] A", "└── b [open] B", "    └── c [open] C"]
        assert shown(a="a") == ["a [open] A"]


def test_what_is_no_ticket_is_left_out() -> None:
    assert tree(a="gone b", b="") == ["a [open] A", "└── b [open] B"]


def test_a_tree_is_found_by_a_part_of_an_id_and_by_a_word_with_a_dash(desk: Desk) -> None:
    desk.put("top-1", "Top", deps="leaf-1")
    desk.put("leaf-1", "Leaf")
    shown = "top-1 [open] Top\n└── leaf-1 [open] Leaf"
    for words in (
        ["dep", "tree", "top"],
        ["dep-tree", "top"],
        ["dep", "tree", "--full", "top"],
        ["dep-tree", "top", "--full"],
    ):
        assert desk.run(*words) == shown
    assert desk.fails("dep", "tree", "nobody") == "Error: ticket 'nobody' not found"
    assert desk.fails("dep", "tree", "1") == "Error: ambiguous ID '1' matches multiple tickets"


def test_circles_are_told_with_their_tickets(desk: Desk) -> None:
    assert list(cycle_lines(tickets(a="b", b="", c="b"))) == ["No dependency cycles found"]
    assert list(cycle_lines(tickets(z="c", c="b", b="z", d="d"))) == [
        "Cycle 1: b -> z -> c -> b",
        "  b        [open] B",
        "  z        [open] Z",
        "  c        [open] C",
        "",
        "Cycle 2: d -> d",
        "  d        [open] D",
    ]
    desk.put("a", deps="b", status="closed")
    desk.put("b", deps="a")
    assert desk.run("dep", "cycle") == "No dependency cycles found", "one of them is closed"
    assert desk.run("dep-cycle") == "No dependency cycles found"


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


@pytest.mark.slow
def test_ten_thousand_tickets_in_a_circle() -> None:
    """Nothing recurses, and a tree of that depth is cut: its indentation grows with the square of it."""
    every = names(10_000)
    ring = tickets(**{name: every[(number + 1) % 10_000] for number, name in enumerate(every)})
    lines = list(cycle_lines(ring))
    assert lines[0].startswith("Cycle 1: n0 -> n1 -> n2")
    assert len(lines) == 10_001
    for full in (False, True):
        shown = list(DependencyTree(ring, "n0", full=full).lines())
        assert shown[-1] == "[the rest is left out: the tree has more than 2,000,000 characters]"
        assert sum(map(len, shown)) < 2_100_000


def test_many_ways_to_one_ticket_are_not_all_walked() -> None:
    """Forty diamonds in a row have a million million ways through them."""
    every = names(120)
    deps: dict[str, str] = {}
    for number in range(0, 117, 3):
        left, right, below = every[number + 1 : number + 4]
        deps |= {every[number]: f"{left} {right}", left: below, right: below}
    deps[every[117]] = ""
    made = tickets(**deps)
    # The second way into each diamond is there, and what follows hangs on one of the two.
    assert len(list(DependencyTree(made, "n0", full=False).lines())) == len(deps)
    assert list(DependencyTree(made, "n0", full=True).lines())[-1].startswith("[the rest is left out")


def test_where_everything_depends_on_everything_the_number_of_circles_is_bounded() -> None:
    every = names(150)
    lines = list(cycle_lines(tickets(**{name: " ".join(every) for name in every})))
    assert lines[-1] == "[there are more than 100 cycles; the rest is left out]"


EDGES = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=4).map(" ".join), min_size=1
)


@given(EDGES)
def test_every_ticket_below_another_one_is_in_its_tree(deps: dict[str, str]) -> None:
    made = tickets(**deps)
    root = min(deps)
    below, new = {root}, [root]
    while new:
        for one in made[new.pop()].deps:
            if one in made and one not in below:
                below.add(one)
                new.append(one)
    once = [line.split("── ")[-1].split()[0] for line in DependencyTree(made, root, full=False).lines()]
    assert sorted(once) == sorted(below)
    several = [line.split("── ")[-1].split()[0] for line in DependencyTree(made, root, full=True).lines()]
    assert {*several} == below


@given(EDGES)
def test_circles_are_found_where_there_are_any(deps: dict[str, str]) -> None:
    made = tickets(**deps)
    reach = {name: {one for one in made[name].deps if one in made} for name in made}
    for _ in made:
        reach = {name: found.union(*(reach[one] for one in found)) for name, found in reach.items()}
    in_circles = any(name in found for name, found in reach.items())
    lines = list(cycle_lines(made))
    assert (lines == ["No dependency cycles found"]) is not in_circles
    for line in lines:
        if line.startswith("Cycle"):
            way = line.split(": ")[1].split(" -> ")
            assert way[0] == way[-1] == min(way)
            assert all(after in made[before].deps for before, after in pairwise(way))
