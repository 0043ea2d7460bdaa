"""The commands of the ticket program: what they print, what they write, and how they fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core import TicketError, TicketPlace, find_ticket_folder, run_tickets
from tests.support.tickets import Desk

# --- create ---------------------------------------------------------------------------------------------------------


def test_a_ticket_of_nothing_but_a_title(desk: Desk) -> None:
    path = desk.create("Mend the login")
    assert re.fullmatch(r"mp-[a-z0-9]{4}\.md", path.name)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert re.fullmatch(r"created: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", lines.pop(5))
    assert lines == [
        *("---", f"id: {path.stem}", "status: open", "deps: []", "links: []", "type: task", "priority: 2", "---"),
        *("# Mend the login", "", ""),
    ]


def test_a_ticket_with_all_that_there_is(desk: Desk) -> None:
    desk.put("up-1")
    path = desk.create(
        *("Search", "-d", "What\nand why", "--design", "How", "--acceptance", "Tests", "-t", "bug", "-p", "0"),
        *("-a", "Ada L", "--external-ref", "gh-7", "--parent", "p-1", "--tags", "ui,api"),
    )
    text = path.read_text(encoding="utf-8")
    head, _, body = text.partition("---\n# ")
    assert head.endswith("type: bug\npriority: 0\nassignee: Ada L\nexternal-ref: gh-7\nparent: up-1\ntags: [ui, api]\n")
    assert body == "Search\n\nWhat\nand why\n\n## Design\n\nHow\n\n## Acceptance Criteria\n\nTests\n\n"


def test_the_title_is_the_last_word_or_none_at_all(desk: Desk) -> None:
    assert "# two\n" in desk.create("one", "two").read_text(encoding="utf-8")
    assert "# Untitled\n" in desk.create().read_text(encoding="utf-8")
    assert "# Untitled\n" in desk.create("").read_text(encoding="utf-8")


def test_what_create_refuses(desk: Desk) -> None:
    assert desk.fails("create", "x", "--owner", "me") == "Unknown option: --owner"
    assert desk.fails("create", "x", "--") == "Unknown option: --"
    assert desk.fails("create", "x", "-d") == "Error: option -d needs a value"
    assert desk.fails("create", "x", "--parent", "nobody") == "Error: ticket 'nobody' not found"
    assert desk.files() == []


@pytest.mark.parametrize("option", ["-t", "-p", "-a", "--external-ref", "--tags"])
def test_no_value_becomes_a_field_of_its_own(desk: Desk, option: str) -> None:
    """A value of several lines could otherwise close the ticket, or end its head."""
    path = desk.create("x", option, "a\nstatus: closed\r\n---\u2028b")
    assert desk.field(path.stem, "status") == "open"
    assert desk.run("ls").endswith("[open] - x")


def test_who_git_says_the_user_is_gets_the_ticket(desk: Desk) -> None:
    desk.place.user = lambda: "Grace"
    assert desk.field(desk.create("x").stem, "assignee") == "Grace"
    assert "assignee" not in desk.create("x", "-a", "").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("web_shop-api", "wsa"),
        ("plan", "pla"),
        ("ab", "ab"),
        ("-x", "x"),
        (".config", "co"),
        ("a,b]", "ab"),
        ("日本", "t"),
    ],
)
def test_ids_begin_with_the_letters_of_the_folder(tmp_path: Path, name: str, prefix: str) -> None:
    made = Desk(tmp_path / name).run("create", "x")
    assert re.fullmatch(rf"{prefix}-[a-z0-9]{{4}}", made)


# --- ids ------------------------------------------------------------------------------------------------------------


def test_a_part_of_an_id_will_do_and_a_whole_one_comes_first(desk: Desk) -> None:
    desk.put("ab")
    desk.put("ab-cd")
    assert "id: ab\n" in desk.run("show", "ab")
    assert "id: ab-cd" in desk.run("show", " -cd\n")
    assert desk.fails("show", "b") == "Error: ambiguous ID 'b' matches multiple tickets"
    assert desk.fails("close", "zz") == "Error: ticket 'zz' not found"


@pytest.mark.parametrize(
    "given", ["../secret", "/etc/passwd", "", " ", ".", "..", "a/b", "*", "a\0b", "x" * 5000, "-x"]
)
def test_no_id_leads_out_of_the_folder(desk: Desk, given: str) -> None:
    """I4."""
    (desk.root / "secret.md").write_text("---\nid: secret\n---\n# Secret\n", encoding="utf-8")
    desk.put("one")
    for command in ("show", "close", "edit"):
        assert desk.fails(command, given) == f"Error: ticket '{given.strip()}' not found"
    assert (desk.root / "secret.md").read_text(encoding="utf-8").endswith("# Secret\n")


# --- status, dependencies, links, notes -----------------------------------------------------------------------------


def test_each_status_has_its_command(desk: Desk) -> None:
    path = desk.put("one")
    before = path.read_text(encoding="utf-8")
    assert desk.run("start", "one") == "Updated one -> in_progress"
    assert path.read_text(encoding="utf-8") == before.replace("status: open", "status: in_progress")
    assert desk.run("close", "one") == "Updated one -> closed"
    assert desk.run("reopen", "one") == "Updated one -> open"
    assert desk.run("status", "one", "closed") == "Updated one -> closed"
    assert desk.fails("status", "one", "done") == (
        "Error: invalid status 'done'. Must be one of: open in_progress closed"
    )


def test_a_ticket_depends_on_another_once(desk: Desk) -> None:
    for name in ("a-1", "a-12", "b-2"):
        desk.put(name)
    assert desk.run("dep", "b-2", "a-12") == "Added dependency: b-2 -> a-12"
    assert desk.run("dep", "b", "a-12") == "Dependency already exists"
    # The id of one is a part of the other's, and still another ticket.
    assert desk.run("dep", "b", "a-1") == "Added dependency: b-2 -> a-1"
    assert desk.field("b-2", "deps") == "[a-12, a-1]"
    assert desk.run("undep", "b", "a-1") == "Removed dependency: b-2 -/-> a-1"
    assert desk.field("b-2", "deps") == "[a-12]"
    assert desk.fails("undep", "b", "a-1") == "Dependency not found"
    assert desk.run("undep", "b", "a-12")
    assert desk.field("b-2", "deps") == "[]"
    assert desk.fails("dep", "b", "none") == "Error: ticket 'none' not found"


def test_links_go_both_ways(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        desk.put(name)
    assert desk.run("link", "a", "b") == "Added 2 link(s) between 2 tickets"
    assert desk.run("link", "a", "b") == "All links already exist"
    assert desk.run("link", "a", "b", "c") == "Added 4 link(s) between 3 tickets"
    assert [desk.field(name, "links") for name in "abc"] == ["[b, c]", "[a, c]", "[a, b]"]
    assert desk.run("unlink", "c", "a") == "Removed link: c <-> a"
    assert [desk.field(name, "links") for name in "abc"] == ["[b]", "[a, c]", "[b]"]
    assert desk.fails("unlink", "c", "a") == "Link not found"
    assert desk.run("link", "a", "a") == "All links already exist", "nothing is linked with itself"


def test_where_one_of_them_cannot_be_linked_none_is(desk: Desk) -> None:
    desk.put("a")
    (desk.tickets / "b.md").write_text("no ticket\n", encoding="utf-8")
    assert "has no front matter" in desk.fails("link", "a", "b")
    assert desk.fails("link", "a", "none") == "Error: ticket 'none' not found"
    assert desk.field("a", "links") == "[]"


def test_notes_stand_at_the_end_with_their_time(desk: Desk) -> None:
    path = desk.put("one")
    before = path.read_text(encoding="utf-8")
    assert desk.run("add-note", "one", "half", "done") == "Note added to one"
    desk.place.stdin = lambda: "from a pipe\n\n"
    assert desk.run("add-note", "one")
    assert desk.run("add-note", "one", "")
    stamp = r"\*\*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\*\*"
    added = path.read_text(encoding="utf-8").removeprefix(before)
    assert re.fullmatch(rf"\n## Notes\n\n{stamp}\n\nhalf done\n\n{stamp}\n\nfrom a pipe\n\n{stamp}\n\n\n", added)


def test_without_a_text_on_a_terminal_there_is_no_note(desk: Desk) -> None:
    desk.put("one")
    assert desk.fails("add-note", "one") == "Error: no note provided"
    assert desk.fails("add-note", "none") == "Error: ticket 'none' not found"


# --- lists ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(desk: Desk) -> Desk:
    desk.put("base", "Base", status="closed", more="tags: [ui]\n")
    desk.put("next", "Next", deps="base", priority=1, more="assignee: Ada\n")
    desk.put("later", "Later", deps="next, base, gone", status="in_progress", more="tags: [ui, api]\n")
    desk.put("old", "Old", priority=10)
    return desk


def test_all_tickets_in_the_order_of_their_files(full: Desk) -> None:
    assert full.run("ls").splitlines() == [
        "base     [closed] - Base",
        "later    [in_progress] - Later <- [next, base, gone]",
        "next     [open] - Next <- [base]",
        "old      [open] - Old",
    ]
    assert full.run("list") == full.run("ls")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--status=closed"], ["base"]),
        (["--status", "closed"], ["base"]),
        (["-a", "Ada"], ["next"]),
        (["--assignee=Ada"], ["next"]),
        (["-T", "ui"], ["base", "later"]),
        (["--tag=api"], ["later"]),
        (["--tag=ap"], []),
        (["whatever", "--colour"], ["base", "later", "next", "old"]),
    ],
)
def test_a_list_can_be_narrowed(full: Desk, options: list[str], names: list[str]) -> None:
    assert [line.split()[0] for line in full.run("ls", *options).splitlines()] == names


def test_what_can_be_worked_on_comes_by_its_priority(full: Desk) -> None:
    assert full.run("ready").splitlines() == ["next     [P1][open] - Next", "old      [P10][open] - Old"]
    assert full.run("ready", "-a", "Ada") == "next     [P1][open] - Next"
    full.put("aaa", "Second", priority=2)
    full.put("soon", "Of any kind", priority="soon")
    assert [line.split()[0] for line in full.run("ready").splitlines()] == ["next", "aaa", "old", "soon"]


def test_what_has_to_wait_is_told_with_what_it_waits_for(full: Desk) -> None:
    assert full.run("blocked") == "later    [P2][in_progress] - Later <- [next, gone]"
    assert full.run("blocked", "-T", "none") == ""


def test_what_was_closed_last_comes_first(desk: Desk) -> None:
    for number, name in enumerate(["c", "a", "b"]):
        os.utime(desk.put(name, name.upper(), status="done" if name == "a" else "closed"), (number, number))
    desk.put("open")
    assert desk.run("closed").splitlines() == ["b        [closed] - B", "a        [done] - A", "c        [closed] - C"]
    assert desk.run("closed", "--limit=1") == "b        [closed] - B"
    assert desk.run("closed", "--limit=0") == ""
    assert "invalid limit 'many'" in desk.fails("closed", "--limit=many")


def test_closed_looks_at_the_hundred_newest_files(desk: Desk) -> None:
    for number in range(101):
        os.utime(desk.put(f"t{number}", status="closed" if number == 0 else "open"), (number, number))
    assert desk.run("closed") == ""


def test_a_ticket_is_shown_with_what_belongs_to_it(full: Desk) -> None:
    path = full.put("one", "One", deps="base, next, gone", links="old, lost", more="parent: base\n")
    full.put("child", "Child", deps="one", more="parent: one  # One\n")
    text = path.read_text(encoding="utf-8").replace("parent: base", "parent: base  # Base")
    assert full.run("show", "one") == text + (
        "\n## Blockers\n\n- next [open] Next\n- gone [] \n"
        "\n## Blocking\n\n- child [open] Child\n"
        "\n## Children\n\n- child [open] Child\n"
        "\n## Linked\n\n- old [open] Old\n- lost [] "
    )
    assert full.run("show", "old") + "\n" == (full.tickets / "old.md").read_text(encoding="utf-8")


def test_tickets_as_json(full: Desk) -> None:
    full.put("odd", more='due: "tomorrow" \\ or so\nempty:\n')
    records = {record["id"]: record for record in full.records()}
    assert list(records) == ["base", "later", "next", "odd", "old"]
    assert records["later"] == {
        "id": "later",
        "status": "in_progress",
        "deps": ["next", "base", "gone"],
        "links": [],
        "created": "2024-05-06T07:08:09Z",
        "type": "task",
        "priority": "2",
        "tags": ["ui", "api"],
    }
    assert (records["odd"]["due"], records["odd"]["empty"]) == ('"tomorrow" \\ or so', "")


def test_a_filter_is_left_to_jq(full: Desk) -> None:
    assert run_tickets(["query", '.status == "open"'], full.place).jq == '.status == "open"'


def test_edit_names_the_file(desk: Desk) -> None:
    path = desk.put("one")
    assert desk.run("edit", "on") == f"Edit ticket file: {path}"
    assert run_tickets(["edit", "one"], desk.place).edits == str(path)


# --- usage, help, folders -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["start"], "Usage: tk start <id>"),
        (["close"], "Usage: tk close <id>"),
        (["reopen"], "Usage: tk reopen <id>"),
        (["status", "one"], "Usage: tk status <id> <status>\nValid statuses: open in_progress closed"),
        (["undep", "one"], "Usage: tk undep <id> <dependency-id>"),
        (["link", "one"], "Usage: tk link <id> <id> [id...]"),
        (["unlink", "one"], "Usage: tk unlink <id> <target-id>"),
        (["show"], "Usage: tk show <id>"),
        (["add-note"], "Usage: tk add-note <id> [note text]"),
        (["edit"], "Usage: tk edit <id>"),
        (["dep", "tree"], "Usage: tk dep tree [--full] <id>"),
        (["dep", "tree", ""], "Usage: tk dep tree [--full] <id>"),
        (["ls", "-a"], "Error: option -a needs a value"),
    ],
)
def test_what_is_missing_is_told(desk: Desk, words: list[str], usage: str) -> None:
    assert desk.fails(*words) == usage


def test_the_usage_of_dep_names_its_three_forms(desk: Desk) -> None:
    lines = desk.fails("dep", "one").splitlines()
    assert [line.split(" - ")[0].strip() for line in lines] == [
        "Usage: tk dep <id> <dependency-id>",
        "tk dep tree <id>",
        "tk dep cycle",
    ]


def test_help_needs_no_tickets_and_names_every_command(tmp_path: Path) -> None:
    for words in ([], ["help"], ["--help"], ["-h"]):
        text = "\n".join(run_tickets(words, TicketPlace(str(tmp_path))).lines)
        assert "minimal ticket system" in text
        for command in "create start close reopen status dep undep link unlink ls ready blocked closed show".split():
            assert re.search(rf"^  {command} ", text, re.MULTILINE), command


def test_a_command_that_there_is_not(desk: Desk) -> None:
    assert desk.fails("frobnicate") == "Unknown command: frobnicate"


def test_the_folder_is_the_nearest_one_upwards(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "project")
    desk.put("one")
    below = desk.root / "src" / "deep"
    below.mkdir(parents=True)
    assert find_ticket_folder(str(below)) == str(desk.tickets)
    assert list(run_tickets(["ls"], TicketPlace(str(below))).lines) == ["one      [open] - A ticket"]
    # A file of that name is no folder.
    (below / ".tickets").write_text("", encoding="utf-8")
    assert find_ticket_folder(str(below)) == str(desk.tickets)


def test_a_variable_comes_before_every_folder(tmp_path: Path) -> None:
    """As in a worktree, whose tickets are those of the main folder."""
    near, other = Desk(tmp_path / "near"), Desk(tmp_path / "other")
    near.put("near")
    other.put("other")
    for given in (str(other.tickets), "../other/.tickets"):
        assert list(run_tickets(["ls"], TicketPlace(str(near.root), given)).lines) == ["other    [open] - A ticket"]
    with pytest.raises(TicketError, match=r"tickets directory '.*/none' does not exist"):
        run_tickets(["ls"], TicketPlace(str(near.root), "none"))
    made = run_tickets(["create", "x"], TicketPlace(str(near.root), "deep/new")).lines
    assert (near.root / "deep" / "new" / f"{next(iter(made))}.md").exists()


def test_only_create_makes_the_folder(tmp_path: Path) -> None:
    place = TicketPlace(str(tmp_path))
    with pytest.raises(TicketError) as caught:
        run_tickets(["ready"], place)
    assert str(caught.value).splitlines() == [
        "Error: no .tickets directory found (searched parent directories)",
        "Run 'tk create' to initialize, or set TICKETS_DIR env var",
    ]
    assert list(tmp_path.iterdir()) == []
    run_tickets(["create", "x"], place)
    assert [path.name for path in tmp_path.iterdir()] == [".tickets"]


def test_a_note_takes_no_longer_however_many_tickets_there_are(desk: Desk) -> None:
    """Nothing of the others is read for it."""
    for number in range(300):
        (desk.tickets / f"unreadable-{number}.md").symlink_to("/dev/zero")
    desk.put("one")
    begun = time.monotonic()
    desk.run("add-note", "one", "x")
    assert time.monotonic() - begun < 30


def test_the_program_of_the_how_to(desk: Desk) -> None:
    desk.put("one")
    page = Path(__file__).parents[3] / "docs" / "how-to" / "tickets.md"
    (program,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = program.replace("/home/ada/shop", str(desk.root))
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout == "one      [P2][open] - A ticket\none open A ticket\n", done.stderr
