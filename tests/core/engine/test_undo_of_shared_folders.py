"""Undo where somebody else works in the folder, too: the user, another Marvin, or another session of this one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Hook
from marvin_core.api.events import Notice
from marvin_core.api.tools import ToolSpec
from marvin_core.testing import ToolRunner
from marvin_core.tools.schema import describe
from tests.core.engine.test_undo_commands import started
from tests.support import command_tools, undo_tools
from tests.support.chat import Chat, chatting
from tests.support.command_tools import logged, runs_a_command, shell
from tests.support.engine import calls, make, says
from tests.support.undo_tools import put
from tests.support.undoing import Commands

pytestmark = pytest.mark.slow

SPECS = (
    *(describe(tool, source="tests", module=undo_tools.__name__) for tool in undo_tools.ALL),
    *(describe(tool, source="tests", module=command_tools.__name__) for tool in command_tools.ALL),
)


@contextmanager
def running(desk: Commands) -> Iterator[None]:
    """A command of this session, which changes `a` and runs until the end of the block."""
    thread = threading.Thread(target=lambda: desk.sh("echo 2 >a; until [ -e go ]; do sleep 0.02; done; rm go"))
    thread.start()
    try:
        while (desk.project / "a").read_text() != "2\n":
            time.sleep(0.01)
        yield
    finally:
        desk.at("go", "")
        thread.join()


# --- the work of others ---------------------------------------------------------------------------------------------


class Edits(Hook):
    """A user who edits a file between two commands of an answer."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._commands = 0

    async def before_tool(self, context: Any, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        self._commands += 1
        if self._commands == 2:
            await asyncio.sleep(0.3)
            self._file.write_text("an hour of work")
            await asyncio.sleep(0.3)


def test_what_the_user_edits_between_two_commands_of_an_answer_is_not_lost(tmp_path: Path) -> None:
    script = [
        calls(("a", "shell", json.dumps({"command": "echo 2 >a"}))),
        calls(("b", "shell", json.dumps({"command": "echo 3 >a"}))),
        says("Done."),
    ]
    project = tmp_path / "project"
    project.mkdir()
    made = make(tmp_path, *script, specs=SPECS, hooks=[Edits(project / "mine")])
    (project / "a").write_text("1")
    (project / "mine").write_text("1")
    said: list[str] = []

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        said.append(await chat.do("/undo"))
        assert (project / "mine").read_text() == "an hour of work"
        said.append(await chat.do("/undo"))

    chatting(made, work)
    assert "mine changed while no command ran, or through a job after its command had returned, so some" in said[0]
    assert "changed a, changed mine. Repeat" in said[0]
    assert "Before that, copy what you want to keep." in said[0]
    assert said[1].startswith("Undone: ")
    assert ((project / "a").read_text(), (project / "mine").read_text()) == ("1", "1")


def test_what_the_user_edits_before_a_command_that_changes_the_same_files_is_not_lost(tmp_path: Path) -> None:
    """As a formatter of all files does."""
    script = [
        calls(("a", "shell", json.dumps({"command": "echo 2 >a"}))),
        calls(("b", "shell", json.dumps({"command": "sed -i s/hour/day/ mine; echo 3 >a"}))),
        says("Done."),
    ]
    project = tmp_path / "project"
    project.mkdir()
    made = make(tmp_path, *script, specs=SPECS, hooks=[Edits(project / "mine")])
    (project / "a").write_text("1")
    (project / "mine").write_text("1")

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        said = await chat.do("/undo")
        assert "mine changed while no command ran" in said
        assert "a, mine" not in said
        assert (project / "mine").read_text() == "an day of work"

    chatting(made, work)


@pytest.mark.parametrize("command", ["mkdir m; mv mine m/", "cp mine m; rm mine", "rm mine; echo 3 >a"])
def test_a_file_that_the_user_makes_between_two_commands_and_the_next_one_moves_is_shown_first(
    tmp_path: Path, command: str
) -> None:
    """No snapshot shows it, so what the command made of it is the only copy."""
    script = [
        calls(("a", "shell", json.dumps({"command": "echo 2 >a"}))),
        calls(("b", "shell", json.dumps({"command": command}))),
        says("Done."),
    ]
    project = tmp_path / "project"
    project.mkdir()
    made = make(tmp_path, *script, specs=SPECS, hooks=[Edits(project / "mine")])
    (project / "a").write_text("1")

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        before = sorted(path.name for path in project.rglob("*"))
        assert "mine changed while no command ran" in await chat.do("/undo")
        assert sorted(path.name for path in project.rglob("*")) == before

    chatting(made, work)


class Breaks(Hook):
    """Breaks the index of the snapshots between the commands of an answer."""

    def __init__(self, stores: Path) -> None:
        self._stores = stores

    async def before_tool(self, context: Any, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        await asyncio.sleep(0.3)
        for index in self._stores.glob("*/index"):
            index.write_bytes(b"no index")


def test_a_look_between_commands_that_fails_is_told_once(tmp_path: Path) -> None:
    script = [*(calls((name, "shell", json.dumps({"command": f"echo 2 >{name}"}))) for name in "abc"), says("Done.")]
    made = make(tmp_path, *script, specs=SPECS, hooks=[Breaks(tmp_path / "home/marvin/data/snapshots")])

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        assert (tmp_path / "project/c").exists()

    chatting(made, work)
    (only,) = (event.text for event in made.seen(Notice) if "between two commands" in event.text)
    assert only.startswith("/undo takes what others change between two commands for changes by the commands: git ")


def test_what_a_job_changes_after_its_command_is_shown_first(tmp_path: Path) -> None:
    """Nobody knows whether it was the job or the user."""
    desk = Commands(tmp_path, origin="model", answers=["y"])
    try:
        desk.runner.call(logged, command="(sleep 0.5; echo x >late) >/dev/null 2>&1 &")
        wait_for_text(desk.project / "late", "x\n")
        assert "late changed while no command ran, or through a job after its command had returned" in desk.refused()
        desk.runner.take_back()
        assert "late" not in desk.tree
    finally:
        desk.runner.close()


def test_what_another_session_of_this_process_did_is_shown_first(desk: Commands) -> None:
    desk.write(a="1", b="1")
    with ToolRunner(desk.home, desk.project) as other, running(desk):
        other.call(put, files={"b": "theirs"})
    assert "Another Marvin worked in this folder at the same time" in desk.refused()
    assert desk.tree["b"][1] == b"theirs"


@pytest.mark.parametrize(("folder", "reached"), [(".", "mine"), ("sub", "mine"), ("..", "project/mine")])
def test_what_another_marvin_undid_is_shown_first(desk: Commands, folder: str, reached: str) -> None:
    """What it restored is the user's. Only a mark of the call remains."""
    there = (desk.project / folder).resolve()
    desk.write(**{"a": "1", "sub/b": "1"})
    (there / reached).write_text("the user's")
    ended(started(writes_in, desk, str(there), reached))
    assert (there / reached).read_text() == "of a tool"
    with running(desk):
        ended(started(undoes_in, desk, str(there)))
        assert (there / reached).read_text() == "the user's"
    marks = [path.read_bytes() for path in (desk.home / ".local/share/marvin/undo").rglob("*.undone")]
    assert [(mark.count(b"\n"), b"put" in mark) for mark in marks] == [(1, True)]
    assert "Another Marvin worked in this folder at the same time" in desk.refused()
    assert (there / reached).read_text() == "the user's"


def ended(process: BaseProcess) -> None:
    process.join(50)
    assert process.exitcode == 0


def writes_in(home: Path, project: Path, there: str, reached: str) -> None:
    """A Marvin in a process of its own, which writes a file in another folder."""
    with ToolRunner(home, Path(there)) as runner:
        runner.call(put, files={reached: "of a tool"})


def undoes_in(home: Path, project: Path, there: str) -> None:
    """One that undoes the newest call there."""
    with ToolRunner(home, Path(there)) as runner:
        assert len(runner.take_back()) == 1


@pytest.mark.parametrize(("folder", "reached"), [("sub", "b"), ("..", "project/sub/b")])
def test_what_another_marvin_did_in_a_folder_within_or_around_is_shown_first(
    desk: Commands, folder: str, reached: str
) -> None:
    desk.write(**{"a": "1", "sub/b": "1"})
    with running(desk):
        there = (desk.project / folder).resolve()
        ended(started(works_in, desk, str(there), reached))
    assert "Another Marvin worked in this folder at the same time" in desk.refused()
    assert desk.tree["sub/b"][1] == b"theirs\n"


def works_in(home: Path, project: Path, there: str, reached: str) -> None:
    """A Marvin in a process of its own, in another folder."""
    runs_a_command(home, Path(there), f"echo theirs >{reached}")


def test_commands_that_another_marvin_runs_in_a_folder_within_are_shown_first(desk: Commands) -> None:
    desk.write(**{"a": "1", "sub/b": "1"})
    process = started(works_in, desk, str(desk.project / "sub"), "b; until [ -e go ]; do sleep 0.01; done; rm go")
    try:
        wait_for_text(desk.project / "sub/b", "theirs\n")
        desk.sh("echo 2 >a")
        assert "Another Marvin worked in this folder at the same time" in desk.refused()
    finally:
        desk.at("sub/go", "")
        process.join(50)


def wait_for_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + 50
    while (not path.exists() or path.read_text() != text) and time.monotonic() < deadline:
        time.sleep(0.01)


def test_another_folder_is_no_reason_to_ask(desk: Commands, tmp_path: Path) -> None:
    desk.write(a="1")
    (tmp_path / "project-2").mkdir()
    with ToolRunner(desk.home, tmp_path / "project-2") as other, running(desk):
        other.call(put, files={"b": "theirs"})
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"


# --- files that were elsewhere before -------------------------------------------------------------------------------


def test_a_file_that_a_command_moved_in_from_elsewhere_is_the_only_copy_and_stays(desk: Commands) -> None:
    """From a place that git ignores, or from outside of the working directory."""
    desk.git("init", "-q")
    desk.write(**{".gitignore": "secret\ndist/\n", "secret": "mine", "dist/page": "mine too", "a": "1"})
    (desk.home / "report").write_text("also mine")
    desk.sh("ln dist/page page; ln secret second; mv secret shown; mv ../home/report .; echo 2 >a; echo 1 >new")
    (line,) = desk.runner.take_back()
    left = "Left as they are, because it is unknown what the commands did to them: report, second, shown"
    assert line.endswith(f": changed a, created new, created page. {left}")
    kept = {name: desk.tree[name][1] for name in ("shown", "second", "dist/page", "report", "a")}
    assert kept == {"shown": b"mine", "second": b"mine", "dist/page": b"mine too", "report": b"also mine", "a": b"1"}
    assert "new" not in desk.tree


@pytest.mark.parametrize(
    ("command", "replaced"),
    [
        ("mv build/out data", "data"),
        ("mv ../home/report data", "data"),
        ("rm -r src; mv ../home/new src", "src/page"),
    ],
)
def test_a_file_that_a_command_moved_over_another_one_is_shown_first(
    desk: Commands, command: str, replaced: str
) -> None:
    """It may be the only copy, from a place that git ignores, or from outside of the working directory."""
    desk.git("init", "-q")
    desk.write(**{".gitignore": "build/\n", "build/out": "only copy", "data": "old", "src/page": "old"})
    (desk.home / "report").write_text("only copy")
    (desk.home / "new").mkdir()
    (desk.home / "new/page").write_text("only copy")
    desk.sh(command)
    assert f"{replaced} may be the only copy of a file that was elsewhere before" in desk.refused()
    assert desk.tree[replaced][1] == b"only copy"
    desk.runner.take_back()
    assert desk.tree[replaced][1] == b"old"


@pytest.mark.parametrize(
    "command", ["echo 2 >a", "echo 2 >>a", "sed -i s/1/2/ a", "mv b a", "cp -p b c; echo 2 >b; mv c a", "chmod +x a"]
)
def test_what_a_command_changes_usually_is_undone_at_once(desk: Commands, command: str) -> None:
    desk.write(a="1", b="other")
    before = desk.tree
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before


def test_a_file_that_was_moved_in_stays_though_another_one_of_its_name_is_gone(desk: Commands) -> None:
    desk.at("docs/README", "of docs")
    (desk.home / "README").write_text("only copy")
    desk.sh("rm docs/README; mv ../home/README .")
    desk.runner.take_back()
    assert {name: text for name, (_, text) in desk.tree.items()} == {"README": b"only copy", "docs/README": b"of docs"}


@pytest.mark.parametrize(
    "command",
    [
        "mv a b",
        "mv a x; mv b a; mv x c",
        "mv a b; chmod +x b",
        "ln a c; rm a",
        "mkdir d; mv a d/b",
        "mv a c; echo 2 >a",
        "mv src lib; echo 2 >lib/c",
    ],
)
def test_a_file_that_was_moved_within_the_folder_moves_back(desk: Commands, command: str) -> None:
    desk.write(**{"a": "of a", "b": "of b", "src/c": "of c"})
    before = desk.tree
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before


def test_a_folder_that_was_there_stays(desk: Commands) -> None:
    (desk.project / "logs").mkdir(mode=0o700)
    desk.sh("echo 1 >logs/x; mkdir new; echo 1 >new/x")
    desk.runner.take_back()
    assert [path.name for path in desk.project.iterdir()] == ["logs"]


@pytest.mark.parametrize(
    "command",
    [
        "mv src lib",
        "mv src lib; sed -i s/of/from/ lib/c",
        "mv src lib; echo 2 >lib/c",
        "mkdir new; mv src new/",
        "mv src other; mv docs src; mv other docs",
        "mv docs docs.old; mv src docs",
    ],
)
def test_a_folder_that_was_moved_leaves_nothing_behind(desk: Commands, command: str) -> None:
    desk.write(**{"src/c": "of c", "src/in/d": "of d", "docs/c": "also c", "docs/page": "of docs"})
    names = sorted(desk.project.rglob("*"))
    before = desk.tree
    desk.sh(command)
    desk.runner.take_back()
    assert sorted(desk.project.rglob("*")) == names
    assert desk.tree == before


@pytest.mark.parametrize("command", ["mv src/* logs/; rmdir src", "mv src logs/"])
def test_an_empty_folder_into_which_files_were_moved_stays(desk: Commands, command: str) -> None:
    desk.write(**{"src/c": "of c"})
    (desk.project / "logs").mkdir()
    desk.sh(command)
    desk.runner.take_back()
    assert sorted(path.name for path in desk.project.rglob("*")) == ["c", "logs", "src"]


# --- the working directory itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["command", "user"])
def test_a_link_in_the_place_of_the_working_directory_leads_nowhere(desk: Commands, tmp_path: Path, by: str) -> None:
    """I4: nothing outside is read into the snapshots, or changed by an undo."""
    desk.write(a="1", b="1")
    outside, moved = tmp_path / "outside", tmp_path / "moved"
    outside.mkdir()
    (outside / "a").write_text("2\n")
    command = "echo 2 >a; rm b"
    swap = f"mv {desk.project} {moved}; ln -s {outside} {desk.project}; echo of outside >{outside}/c"
    desk.runner.call(shell, command=f"{command}; {swap}" if by == "command" else command)
    if by == "user":
        subprocess.run(["bash", "-ec", swap], check=True)
    assert "project was replaced by a link. Put the folder back, then try again." in desk.refused()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a": "2\n", "c": "of outside\n"}
    listed = ["git", "--git-dir", str(desk.store), "cat-file", "--batch-all-objects", "--batch"]
    assert b"of outside" not in subprocess.run(listed, capture_output=True, check=True).stdout
    desk.project.unlink()
    moved.rename(desk.project)
    if by == "command":
        assert "removed b" in desk.refused()
    desk.runner.take_back()
    assert desk.tree["a"][1] == desk.tree["b"][1] == b"1"


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude"])
def test_a_working_directory_that_the_repository_around_ignores_is_kept(tmp_path: Path, rules: str) -> None:
    """For example a project in a home folder whose repository ignores all but some files."""
    desk = Commands(tmp_path)
    desk.runner.close()
    desk.git("init", "-q")
    desk.at(rules, "*\n")
    desk.project /= "part"
    desk.write(**{"a": "1", "b": "1", ".gitignore": "own\n", "own": "1"})
    before = desk.tree
    for _ in range(2):
        desk.runner = ToolRunner(desk.home, desk.project)
        desk.sh("rm a; echo 2 >b; echo 1 >new; echo 2 >own")
        assert desk.runner.take_back()[0].endswith(": removed a, changed b, created new")
        desk.at("own", "1")
        assert desk.tree == before
        desk.runner.close()


def test_variables_of_git_in_the_environment_do_not_confuse_an_undo(desk: Commands) -> None:
    desk.again(env={"GIT_LITERAL_PATHSPECS": "1", "GIT_DEFAULT_HASH": "sha256", "GIT_TRACE": "1"})
    desk.git("init", "-q")
    desk.write(**{".gitignore": "secret\n", "secret": "1", "a": "1"})
    before = desk.tree
    desk.sh("rm .gitignore; echo 2 >a; echo 3 >new")
    desk.runner.take_back()
    assert desk.tree == before


# --- a clock that went back -----------------------------------------------------------------------------------------


def set_clock_back(desk: Commands) -> None:
    """Have the only call so far be of an hour later."""
    (earlier,) = (desk.home / ".local/share/marvin/undo").rglob("*.json")
    made, rest = int(earlier.name[:20]), earlier.name[20:]
    earlier.rename(earlier.with_name(f"{made + 3_600_000_000_000:020}{rest}"))


def test_the_newest_call_is_undone_first_although_the_clock_went_back(desk: Commands) -> None:
    desk.write(a="1", b="1")
    desk.sh("echo 2 >a")
    set_clock_back(desk)
    desk.sh("echo 2 >b")
    assert desk.runner.take_back()[0].endswith(": changed b")
    desk.runner.take_back()
    assert desk.tree["a"][1] == desk.tree["b"][1] == b"1"


def test_what_another_marvin_did_in_a_folder_within_is_shown_first_although_the_clock_went_back(desk: Commands) -> None:
    desk.write(**{"a": "1", "sub/b": "1"})
    desk.sh("echo 1 >a")
    set_clock_back(desk)
    with running(desk), ToolRunner(desk.home, desk.project / "sub") as other:
        other.call(put, files={"b": "theirs"})
    assert "Another Marvin worked in this folder at the same time" in desk.refused()
    assert desk.tree["sub/b"][1] == b"theirs"
