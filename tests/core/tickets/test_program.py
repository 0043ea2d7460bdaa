"""The ticket program as it is run: exit codes, streams, plugins, jq, the editor and the pager."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pytest

from tests.support.tickets import Desk

BIN = Path(sys.executable).parent
SCRIPT = str(BIN / "marvin-tk")
AS_A_MODULE = (sys.executable, "-P", "-m", "marvin_core", "tk")
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")


class Typed:
    """Command lines in the folder of a desk, as child processes."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.bin = desk.root.parent / "bin"
        self.bin.mkdir()
        home = desk.root.parent / "home"
        home.mkdir()
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def __call__(
        self, *words: str, stdin: str = "", env: Mapping[str, str] | None = None, program: tuple[str, ...] = (SCRIPT,)
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *words],
            cwd=self.desk.root,
            env={**self.env, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=100,
        )

    def script(self, name: str, text: str) -> Path:
        """A program on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def on_terminal(self, *words: str, env: Mapping[str, str] | None = None) -> pexpect.spawn[str]:
        return pexpect.spawn(
            SCRIPT, list(words), cwd=str(self.desk.root), env={**self.env, **(env or {})}, encoding="utf-8", timeout=60
        )


@pytest.fixture
def typed(desk: Desk) -> Typed:
    return Typed(desk)


@pytest.mark.parametrize(
    "program", [(SCRIPT,), (str(BIN / "marvin-ticket"),), (sys.executable, "-P", "-m", "marvin_core", "tk")]
)
def test_each_way_to_start_it_does_the_same(typed: Typed, program: tuple[str, ...]) -> None:
    made = typed("create", "Ä ticket", "-d", "✓", program=program)
    assert (made.returncode, made.stderr) == (0, "")
    shown = typed("show", made.stdout.strip(), program=program)
    assert "# Ä ticket\n\n✓\n" in shown.stdout
    missing = typed("show", "nobody", program=program)
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "Error: ticket 'nobody' not found\n")


def test_it_stands_behind_flags_of_marvin_as_well(typed: Typed) -> None:
    typed.desk.put("one")
    marvin = (sys.executable, "-P", "-m", "marvin_core", "--plain")
    assert typed("tk", "ls", program=marvin).stdout == "one      [open] - A ticket\n"
    assert "tk show <id>" in typed("tk", "show", program=marvin).stderr


def test_what_went_wrong_and_the_help_go_to_standard_error(typed: Typed) -> None:
    done = typed("frobnicate")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Unknown command: frobnicate\nmarvin-tk - a minimal ticket system")
    assert typed("start").stderr == "Usage: marvin-tk start <id>\n"
    done = typed("undep", "a", "b", env={"TICKETS_DIR": "none"})
    assert done.returncode == 1
    assert done.stderr == f"Error: tickets directory '{typed.desk.root}/none' does not exist\n"
    for name in ("a", "b"):
        typed.desk.put(name)
    done = typed("undep", "a", "b")
    assert (done.returncode, done.stdout, done.stderr) == (1, "Dependency not found\n", "")


def test_notes_come_through_a_pipe(typed: Typed) -> None:
    typed.desk.put("one")
    assert typed("add-note", "one", stdin="from\na pipe\n").stdout == "Note added to one\n"
    assert typed.desk.text("one").endswith("**\n\nfrom\na pipe\n")


def test_who_git_says_the_user_is_gets_the_ticket(typed: Typed) -> None:
    assert typed("create", "x").returncode == 0
    named = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada L"}
    name = typed("create", "x", env=named).stdout.strip()
    assert typed.desk.field(name, "assignee") == "Ada L"
    without_git = typed("create", "x", env={"PATH": str(typed.bin)}).stdout.strip()
    assert typed.desk.field(without_git, "assignee") == ""


def test_it_starts_without_what_is_slow_to_import(typed: Typed) -> None:
    """Nothing that a plain `python -c pass` does without, but what it is made of."""
    typed.desk.put("one")
    code = (
        "import sys; before = {*sys.modules}; import marvin_core.tickets.program as program; "
        "code = program.TicketProgram({}, 'x', 'tk').run(sys.argv[1:]); print(*sorted({*sys.modules} - before))"
    )
    for words in (["ls"], ["close", "one"], ["create", "x", "-a", "me"], ["dep", "tree", "one"]):
        imported = typed(*words, program=(sys.executable, "-P", "-c", code)).stdout.splitlines()[-1].split()
        slow = [
            name
            for name in imported
            if name.split(".")[0] not in ("marvin_core", "errno", "fcntl", "stat", "time", "__future__")
        ]
        assert slow == []
        assert {name.split(".")[1] for name in imported if "." in name} <= {"tickets", "version"}


# --- other programs --------------------------------------------------------------------------------------------------


@needs_jq
def test_a_filter_of_jq_chooses_tickets(typed: Typed) -> None:
    typed.desk.put("one")
    typed.desk.put("two", status="closed")
    done = typed("query", '.status == "closed" and .deps == []')
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith('{"id":"two",')
    wrong = typed("query", "--arg")
    assert wrong.returncode != 0
    assert "jq" in wrong.stderr


def test_jq_that_is_missing_is_named(typed: Typed) -> None:
    typed.desk.put("one")
    done = typed("query", ".id", env={"PATH": str(typed.bin)})
    assert (done.returncode, done.stderr) == (127, "Error: the program 'jq' is not installed, or not on PATH\n")
    assert typed("query", env={"PATH": str(typed.bin)}).stdout.startswith('{"id":"one"')


def test_a_plugin_comes_before_a_command_and_super_passes_it_over(typed: Typed) -> None:
    typed.desk.put("one")
    typed.script("tk-ls", 'echo "tk: $*"')
    typed.script("ticket-ls", "echo ticket")
    typed.script("ticket-greet", 'echo "hello $1"; exit 3')
    assert typed("ls", "a b", "-c").stdout == "tk: a b -c\n"
    assert typed("super", "ls").stdout == "one      [open] - A ticket\n"
    greeted = typed("greet", "Ada")
    assert (greeted.returncode, greeted.stdout) == (3, "hello Ada\n")
    assert typed("super", "greet").stderr.startswith("Unknown command: greet\n")
    assert typed("help").stdout.startswith("marvin-tk - ")


def test_a_plugin_is_told_where_the_tickets_are_and_how_to_come_back(typed: Typed) -> None:
    typed.script("tk-where", 'echo "$TICKETS_DIR"; "$TK_SCRIPT" super create "$1"')
    below = typed.desk.root / "src"
    below.mkdir()
    for program in ((SCRIPT,), AS_A_MODULE):
        where, made = typed("where", "Two words", program=program).stdout.splitlines()
        assert where == str(typed.desk.tickets)
        assert "# Two words" in typed.desk.text(made)
    done = typed("where", env={"TICKETS_DIR": "/nowhere"})
    assert (done.returncode, done.stderr) == (1, "Error: tickets directory '/nowhere' does not exist\n")


def test_help_lists_plugins_with_what_they_say_of_themselves(typed: Typed) -> None:
    typed.script("tk-mine", "# tk-plugin: Does my things\necho ran")
    typed.script("tk-asked", '[ "$1" = --tk-describe ] && echo "tk-plugin: When it is asked"')
    typed.script("tk-silent", "echo something else")
    typed.script("ticket-mine", "# tk-plugin: Not this one")
    lines = typed("help").stdout.splitlines()
    begin = lines.index("Plugins (tk-COMMAND or ticket-COMMAND on PATH):")
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[begin + 1 : begin + 4]}
    assert found == {"asked": "When it is asked", "mine": "Does my things", "silent": "(no description)"}


def test_the_editor_gets_the_file_on_a_terminal(typed: Typed) -> None:
    path = typed.desk.put("one")
    typed.script("my-editor", 'sed "s/A ticket/Edited $1/" "$2" > "$2.new"; mv "$2.new" "$2"')
    child = typed.on_terminal("edit", "one", env={"EDITOR": "my-editor --wait"})
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert path.read_text(encoding="utf-8").count("# Edited --wait\n") == 1
    child = typed.on_terminal("edit", "one", env={"EDITOR": "no-such-editor"})
    child.expect("the program 'no-such-editor' is not installed")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 127


def test_a_pager_shows_a_ticket_on_a_terminal_only(typed: Typed) -> None:
    typed.desk.put("one")
    typed.script("my-pager", 'echo "paged $1"; cat')
    env = {"TICKET_PAGER": "my-pager now", "PAGER": "false"}
    child = typed.on_terminal("show", "one", env=env)
    child.expect("paged now")
    child.expect("# A ticket")
    child.expect(pexpect.EOF)
    assert "paged" not in typed("show", "one", env=env).stdout
    typed.script("early", "exit 0")
    child = typed.on_terminal("show", "one", env={"PAGER": "early"})
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_sequences_of_a_ticket_do_not_reach_the_terminal(typed: Typed) -> None:
    typed.desk.put("one", "Red \x1b]0;title\x07\x1b[31mhere")
    for words in (["ls"], ["show", "one"], ["ready"]):
        child = typed.on_terminal(*words)
        child.expect(pexpect.EOF)
        shown = str(child.before)
        assert "Red here" in shown
        assert "\x1b" not in shown
    assert "\x1b[31m" in typed("ls").stdout, "a pipe gets what the file holds"


def test_it_ends_quietly_where_nobody_reads_the_rest(typed: Typed) -> None:
    for number in range(500):
        typed.desk.put(f"n{number}", "x" * 300)
    done = subprocess.run(
        ["sh", "-c", f"{SCRIPT} ls | head -n 1"],
        cwd=typed.desk.root,
        env=typed.env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_closed_streams_do_no_harm(typed: Typed) -> None:
    path = typed.desk.put("one")
    before = path.read_bytes()

    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
        command = f"{SCRIPT} ls {closed}"
        subprocess.run(["sh", "-c", command], cwd=typed.desk.root, env=typed.env, capture_output=True, timeout=100)
    assert path.read_bytes() == before
    assert typed.desk.files() == ["one.md"]


def test_ctrl_c_while_it_waits_ends_it(typed: Typed) -> None:
    typed.desk.put("one")
    typed.script("slow-editor", "echo ready; exec sleep 100")
    child = typed.on_terminal("edit", "one", env={"EDITOR": "slow-editor"})
    child.expect("ready")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 128 + signal.SIGINT, "what the editor ended with"
