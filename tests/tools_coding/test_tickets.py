"""The tool tk: lines for the ticket program, without a shell, and bound as agents are."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.guard.gates.ticket_lines import words_of
from marvin_core.testing import ToolRunner
from marvin_tools_coding.tickets.adapters import line_arguments
from tests.support.tickets import Desk

CREATE = "create 'Mend the login' -d 'It \"fails\" on $(touch pwned) `id`' --acceptance 'Tests pass'"


@pytest.fixture
def project(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "my-project")


def agent(folder: Path, **options: Any) -> ToolRunner:
    """A session of an agent in a folder."""
    home = folder.parent / "home"
    home.mkdir()
    return ToolRunner(home, folder, mode="coding", **options)


@pytest.fixture
def runner(project: Desk) -> Iterator[ToolRunner]:
    with agent(project.root) as made:
        yield made


def line(runner: ToolRunner, args: object) -> str:
    """What the tool answers; the call must succeed."""
    outcome = runner.call("tk", args=args)
    assert not outcome.is_error, outcome.text
    return outcome.text


def refused(runner: ToolRunner, args: object) -> str:
    outcome = runner.call("tk", args=args)
    assert outcome.is_error, outcome.text
    return outcome.text


def test_a_ticket_from_its_beginning_to_its_end(runner: ToolRunner, project: Desk) -> None:
    name = line(runner, CREATE)
    text = project.text(name)
    assert '\nIt "fails" on $(touch pwned) `id`\n\n## Acceptance Criteria\n\nTests pass\n' in text
    other = line(runner, f"create Second --parent {name} -p 0")
    assert line(runner, f"dep {name} {other}") == f"Added dependency: {name} -> {other}"
    assert line(runner, "ready") == f"{other}  [P0][open] - Second"
    assert line(runner, f"dep-tree {name}") == f"{name} [open] Mend the login\n└── {other} [open] Second"
    assert line(runner, f"close {other}") == f"Updated {other} -> closed"
    assert line(runner, "blocked") == "There are none."
    assert line(runner, f'add-note {name} "It\'s done"') == f"Note added to {name}"
    assert "It's done" in line(runner, f"show {name}")
    assert not (project.root / "pwned").exists()


def test_who_git_says_the_user_is_gets_the_ticket(runner: ToolRunner, project: Desk) -> None:
    for words in (["init", "-q"], ["config", "user.name", "Ada L"]):
        subprocess.run(["git", *words], cwd=project.root, check=True)
    assert project.field(line(runner, "create x"), "assignee") == "Ada L"
    assert project.field(line(runner, "create x -a Grace"), "assignee") == "Grace"


def test_an_option_and_its_value_may_be_one_word(runner: ToolRunner, project: Desk) -> None:
    """Models write it so. What follows an option is its value all the same, and the program itself stays as it is."""
    parent = line(runner, "create First")
    name = line(runner, f"create Second --parent={parent} --assignee='Ada L' --tags= -d --design=none")
    assert (project.field(name, "parent"), project.field(name, "assignee")) == (parent, "Ada L")
    assert project.field(name, "tags") == ""
    assert "\n--design=none\n" in project.text(name)
    assert "Unknown option: --urgent=yes" in refused(runner, "create Third --urgent=yes")
    assert project.fails("create", "Third", f"--parent={parent}") == f"Unknown option: --parent={parent}"


REFUSED = {
    "add-note x It's done": "cannot be parsed: No closing quotation. Put texts in quotes, and a text with an",
    "": "The line is empty. Commands: create, start,",
    "   ": "The line is empty",
    "shwo x": "There is no command 'shwo'. Did you mean 'show'",
    "delete x": "There is no command 'delete'.",
    "; rm -rf .": "There is no command ';'.",
    "--help; ls": "There is no command '--help;'.",
    "create Fix the bug": "create needs one title, but got 3: 'Fix', 'the', 'bug'. Put it in quotes.",
    "create x --owner me": "Unknown option: --owner. `help` lists the options.",
    "create x -d": "option -d needs a value.",
    "show nobody": "ticket 'nobody' not found. `ls` lists the tickets.",
    "show ../../etc/passwd": "ticket '../../etc/passwd' not found.",
    "show t-": "ambiguous ID 't-' matches multiple tickets. Give more characters",
    "edit t-1": "edit opens an editor for people. Use status",
    "status t-1 done": "invalid status 'done'. Must be one of: open in_progress closed",
    "ls --colour": "unknown option '--colour'. Known options: --status=",
    "closed --limit=all": "invalid limit 'all'.",
    "undep t-1 t-2": "Dependency not found. Use `show` to see the ticket.",
    "add-note t-1": "no note provided.",
    "create " + "x" * 200_000: "The line has 200,007 characters; the limit is 100,000.",
}


def test_what_it_refuses_says_what_to_do(runner: ToolRunner, project: Desk) -> None:
    """I10."""
    project.put("t-1")
    project.put("t-2")
    for args, told in REFUSED.items():
        assert told in refused(runner, args)
    assert project.files() == ["t-1.md", "t-2.md"]


def test_without_tickets_only_create_begins_any(runner: ToolRunner, project: Desk) -> None:
    project.tickets.rmdir()
    assert "no .tickets directory found" in refused(runner, "ls")
    assert "Run 'tk create'" in refused(runner, "ls")
    line(runner, "create x")
    assert len(project.files()) == 1


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("tk show x", "show x"),
        (" ticket  super show x ", "show x"),
        ("marvin-tk ls", "ls"),
        (["create", "Two words", "-d", "it's"], "create 'Two words' -d 'it'\"'\"'s'"),
        (["tk", "ls"], "ls"),
        ("create tk", "create tk"),
        ("tk", ""),
        (5, 5),
        ([1], [1]),
    ],
)
def test_habits_of_models(sent: object, meant: object) -> None:
    assert line_arguments({"args": sent}) == {"args": meant}


def test_a_line_may_have_another_name(runner: ToolRunner, project: Desk) -> None:
    project.put("one")
    assert runner.call("tk", command="tk ls").text == "one      [open] - A ticket"


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=5))
def test_the_tool_and_the_gates_read_the_same_words(words: list[str]) -> None:
    given = line_arguments({"args": words})["args"]
    kept = list(words_of(given))
    assert kept == words[len(words) - len(kept) :]


def test_no_word_of_a_model_is_an_option_of_a_program(runner: ToolRunner, project: Desk) -> None:
    """I27: neither git nor jq takes one for an option of its own."""
    project.put("one")
    if shutil.which("jq"):
        for condition in ("--version", "-n", "--from-file /etc/passwd", "--slurpfile a /etc/passwd"):
            assert "jq refuses the filter" in refused(runner, f"query '{condition}'")
    assert line(runner, "create -a --global -d --help --tags -x")
    assert "Unknown option: --global" in refused(runner, "create --global")


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_a_filter_of_jq_chooses_tickets(runner: ToolRunner, project: Desk) -> None:
    project.put("one")
    project.put("two", status="closed")
    assert line(runner, "query '.status == \"closed\"'").startswith('{"id":"two"')
    assert line(runner, "query false") == "There are none."
    assert "jq refuses the filter" in refused(runner, "query '.status =='")
    assert "$ENV" not in line(runner, "query '($ENV | keys | length) > 0 and env.HOME != null'")


def test_any_character_can_be_in_a_ticket(runner: ToolRunner, project: Desk) -> None:
    name = runner.call_raw("tk", '{"args": "create \\"odd \\u0000 \\u2028 text\\""}').text
    assert "# odd \0 \u2028 text" in project.text(name)


def test_a_folder_of_tickets_that_leads_elsewhere_is_not_used(runner: ToolRunner, project: Desk) -> None:
    """I4."""
    other = Desk(project.root.parent / "other")
    other.put("secret", "A secret")
    project.tickets.rmdir()
    project.tickets.symlink_to(other.tickets)
    for args in ("ls", "show secret", "close secret", "create x"):
        assert "is a link. Set TICKETS_DIR to the intended folder" in refused(runner, args)
    assert other.field("secret", "status") == "open"


def test_in_a_worktree_the_tickets_are_those_of_the_main_folder(project: Desk, tmp_path: Path) -> None:
    project.put("one")
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    with agent(worktree, env={"TICKETS_DIR": str(project.tickets)}) as runner:
        assert line(runner, "ls") == "one      [open] - A ticket"
        assert line(runner, "create x") + ".md" in project.files()
    assert list(worktree.iterdir()) == []


@pytest.mark.parametrize("args", ["close one", "dep one two", "undep two one", "link one two", "unlink two three"])
def test_what_was_changed_can_be_taken_back(runner: ToolRunner, project: Desk, args: str) -> None:
    project.put("one", status="in_progress")
    project.put("two", deps="one", links="three")
    project.put("three", links="two")
    before = {name: project.text(name) for name in ("one", "two", "three")}
    line(runner, args)
    assert {name: project.text(name) for name in before} != before
    runner.take_back()
    assert {name: project.text(name) for name in before} == before


# --- agents ---------------------------------------------------------------------------------------------------------


def test_a_read_only_agent_looks_at_tickets_only(project: Desk) -> None:
    project.put("one")
    before = project.text("one")
    with agent(project.root, read_only=True) as runner:
        for args in "ls,tk list,show one,ready,blocked,closed,dep tree one,dep-tree one,query,help".split(","):
            line(runner, args)
        for args in "close one,create x,add-note one x,dep one one,super close one,edit one".split(","):
            assert "this agent is read-only" in refused(runner, args)
        assert "this agent is read-only" in refused(runner, ["close", "one"])
    assert project.files() == ["one.md"]
    assert project.text("one") == before


def test_an_agent_begins_with_a_ticket_of_its_own(project: Desk) -> None:
    """I3: the first try is refused on purpose, and then it is a child of the ticket that the agent works on."""
    project.put("up-1")
    create = f"{CREATE} --parent up-1"
    with agent(project.root, env={"MARVIN_TICKET": "up-1", "MARVIN_DEPTH": "1"}) as runner:
        assert "must create its ticket before it writes" in runner.call("create_file", path="a.txt", content="x").text
        assert "refused on purpose" in refused(runner, create)
        assert "must be a child of up-1" in refused(runner, CREATE)
        assert "must be a child of up-1" in refused(runner, f"super {CREATE}")
        assert project.files() == ["up-1.md"]
        name = line(runner, f"tk super {create}")
        assert project.field(name, "parent") == "up-1"
        assert not runner.call("create_file", path="a.txt", content="x").is_error
