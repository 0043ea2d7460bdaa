"""The user's own tickets, beside the profiles, in the format of those of projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import Outcome, ToolRunner


def folder(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/tickets"


def create(tools: ToolRunner, title: str = "Buy milk", **fields: Any) -> str:
    """A new ticket's id."""
    made = tools.call("create_ticket", title=title, **fields)
    assert not made.is_error, made.text
    return made.text.split()[1]


def text(tools: ToolRunner, name: str) -> str:
    return (folder(tools) / f"{name}.md").read_text()


def ok(outcome: Outcome) -> str:
    assert not outcome.is_error, outcome.text
    return outcome.text


def test_a_ticket_from_its_making_to_its_end(marvin_tools: ToolRunner) -> None:
    parent = create(marvin_tools, "Party", ticket_type="epic", priority=1)
    milk = create(marvin_tools, description="Two litres\n\n# no heading", tags="home, Food,[x]", parent=parent)
    assert "tags: [home, Food, x]" in text(marvin_tools, milk)
    assert f"parent: {parent}" in text(marvin_tools, milk)
    ok(marvin_tools.call("ticket_start", ticket_id=milk))
    ok(marvin_tools.call("ticket_add_note", ticket_id=milk, note="-n is not an option\nsecond line"))
    shown = ok(marvin_tools.call("ticket_show", ticket_id=milk))
    for part in ("Two litres", "-n is not an option", "status: in_progress", "# Party"):
        assert part in shown
    ok(marvin_tools.call("ticket_close", ticket_id=milk.partition("-")[2]))
    listed = ok(marvin_tools.call("ticket_list")).splitlines()
    assert listed[0] == f"{parent} [open, P1] Party"
    assert listed[1] == f"{milk} [closed, P2] Buy milk (home, Food, x)"
    assert ok(marvin_tools.call("ticket_list", status="open")).splitlines() == listed[:1]
    assert ok(marvin_tools.call("ticket_list", tags="FOOD, home")).splitlines() == listed[1:]
    assert "None of the 2 tickets" in ok(marvin_tools.call("ticket_list", tags="other"))


def test_tickets_of_a_project_and_own_ones_do_not_mix(marvin_tools: ToolRunner) -> None:
    create(marvin_tools)
    assert not (marvin_tools.working_dir / ".tickets").exists()
    assert len(list(folder(marvin_tools).glob("*.md"))) == 1


def test_dependencies_are_a_tree_without_circles(marvin_tools: ToolRunner) -> None:
    party, shop, milk = (create(marvin_tools, title) for title in ("Party", "Shop", "Milk"))
    ok(marvin_tools.call("ticket_add_dep", ticket_id=party, depends_on=shop))
    ok(marvin_tools.call("ticket_add_dep", ticket_id=shop, depends_on=milk))
    assert marvin_tools.call("ticket_add_dep", ticket_id=party, depends_on=shop).undo is None
    tree = ok(marvin_tools.call("ticket_dep_tree", ticket_id=party))
    assert [line.split()[-1] for line in tree.splitlines()] == ["Party", "Shop", "Milk"]
    assert "waits for" in marvin_tools.call("ticket_list").text
    for first, then in ((milk, party), (party, party), (shop, party)):
        refused = marvin_tools.call("ticket_add_dep", ticket_id=first, depends_on=then)
        assert refused.is_error
        assert "cannot wait for" in refused.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ticket_start", {}),
        ("ticket_close", {}),
        ("ticket_add_note", {"note": "x"}),
        ("ticket_show", {}),
        ("ticket_dep_tree", {}),
        ("ticket_add_dep", {"depends_on": "x"}),
    ],
)
def test_an_unknown_ticket_tells_what_to_do(marvin_tools: ToolRunner, tool: str, arguments: dict[str, str]) -> None:
    """I10: before there is a ticket, and after."""
    for given in ("nope", "", "../../etc/passwd", "--help", "\x1b[31m"):
        refused = marvin_tools.call(tool, ticket_id=given, **arguments)
        assert refused.is_error
        assert "Use create_ticket to create one" in refused.text
    create(marvin_tools)
    for given in ("nope", "../../etc/passwd", "--help"):
        refused = marvin_tools.call(tool, ticket_id=given, **arguments)
        assert refused.is_error
        assert "There is no ticket" in refused.text
        assert "ticket_list" in refused.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"title": "  "}, "Give 1 to 200"),
        ({"title": "--"}, "Give 1 to 200"),
        ({"title": "x" * 300}, "Give 1 to 200"),
        ({"title": "x", "description": "x" * 30_000}, "Split it into several notes"),
        ({"title": "x", "parent": "nope"}, "There is no ticket 'nope'"),
        ({"title": "x", "priority": 7}, "priority"),
        ({"title": "x", "ticket_type": "wish"}, "ticket_type"),
    ],
)
def test_wrong_arguments_are_explained(marvin_tools: ToolRunner, arguments: dict[str, Any], says: str) -> None:
    create(marvin_tools)
    refused = marvin_tools.call("create_ticket", **arguments)
    assert refused.is_error
    assert says in refused.text
    assert len(list(folder(marvin_tools).glob("*.md"))) == 1


def test_a_title_like_an_option_is_a_title(marvin_tools: ToolRunner) -> None:
    assert "# p 4 -d x" in text(marvin_tools, create(marvin_tools, "-p 4 -d x"))


def test_all_of_it_is_taken_back(marvin_tools: ToolRunner) -> None:
    other, milk = create(marvin_tools, "Other"), create(marvin_tools)
    before = text(marvin_tools, milk)
    for tool, arguments in (
        ("ticket_start", {}),
        ("ticket_close", {}),
        ("ticket_add_note", {"note": "one\ntwo"}),
        ("ticket_add_note", {"note": "three"}),
        ("ticket_add_dep", {"depends_on": other}),
    ):
        ok(marvin_tools.call(tool, ticket_id=milk, **arguments))
    for _ in range(5):
        assert len(marvin_tools.take_back()) == 1
    assert text(marvin_tools, milk) == before
    marvin_tools.take_back(2)
    assert list(folder(marvin_tools).glob("*.md")) == []


def test_what_was_changed_since_is_not_taken_back(marvin_tools: ToolRunner) -> None:
    milk = create(marvin_tools)
    path = folder(marvin_tools) / f"{milk}.md"
    made = path.read_text()
    path.write_text(made + "by hand\n")
    with pytest.raises(Exception, match="was changed after it was created, so it was not removed"):
        marvin_tools.take_back()
    path.write_text(made)
    ok(marvin_tools.call("ticket_add_note", ticket_id=milk, note="x"))
    path.write_text(path.read_text() + "by hand\n")
    with pytest.raises(Exception, match="was changed after the note was added, so the note was not removed"):
        marvin_tools.take_back()
    assert "by hand" in path.read_text()


WRITER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2])) as tools:
    for number in range(8):
        for outcome in (
            tools.call("create_ticket", title=f"{sys.argv[4]} {number}"),
            tools.call("ticket_add_note", ticket_id=sys.argv[3], note=f"note {sys.argv[4]}-{number}."),
        ):
            assert not outcome.is_error, outcome.text
"""


@pytest.mark.slow
def test_eight_processes_lose_nothing(marvin_tools: ToolRunner) -> None:
    milk = create(marvin_tools)
    places = [str(marvin_tools.home), str(marvin_tools.working_dir), milk]
    children = [subprocess.Popen([sys.executable, "-P", "-c", WRITER, *places, str(n)]) for n in range(8)]
    assert [child.wait(200) for child in children] == [0] * 8
    assert len(ok(marvin_tools.call("ticket_list")).splitlines()) == 65
    shown = text(marvin_tools, milk)
    assert all(f"note {child}-{number}." in shown for child in range(8) for number in range(8))
    assert not [path for path in folder(marvin_tools).iterdir() if path.suffix != ".md"]
