"""Taking back what commands did to files."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.api.events import Notice
from marvin_core.api.limits import Limits
from marvin_core.guard.undo.inverses import Inverse
from marvin_core.guard.undo.ledger import LedgerEntry, UndoLedger, this_process
from marvin_core.guard.undo.stores import sweep_stores
from marvin_core.testing import ToolRunner
from marvin_core.tools.schema import describe
from tests.support import command_tools, undo_tools
from tests.support.chat import Chat, chatting
from tests.support.command_tools import (
    add_names,
    goes_back_and_forth,
    runs_a_command,
    runs_commands,
    shell,
    swaps_a_folder,
)
from tests.support.engine import calls, make, says, until
from tests.support.undo_tools import put
from tests.support.undoing import Commands

SPECS = (
    *(describe(tool, source="tests", module=undo_tools.__name__) for tool in undo_tools.ALL),
    *(describe(tool, source="tests", module=command_tools.__name__) for tool in command_tools.ALL),
)


def fill(desk: Commands) -> None:
    desk.at("src/a.py", "a = 1\n")
    desk.at("src/deep/er/b.py", "b = 1\n").chmod(0o600)
    desk.at("src/run.sh", "#!/bin/sh\n").chmod(0o755)
    desk.at("src/data.bin", bytes(range(256)) * 40)
    desk.at("src/crlf.txt", b"one\r\ntwo\r\n")
    desk.at("src/new\nline 'x'.txt", "odd")
    (desk.project / "src/link").symlink_to("../outside/that/is/nowhere")
    desk.at("README.md", "# Read me\n")


def test_what_programs_of_a_tool_with_a_snapshot_changed_is_taken_back(desk: Commands) -> None:
    desk.write(manifest="a\n")
    before = desk.tree
    assert desk.runner.call(add_names, names=["b", "c"]).text == "0"
    assert (desk.project / "manifest").read_text() == "a\nb\nc\n"
    (told,) = desk.runner.take_back()
    assert "add_names b c: " in told
    assert "manifest" in told
    assert desk.tree == before


@pytest.mark.parametrize("repository", [False, True], ids=["plain", "git"])
def test_a_removed_folder_is_back_as_it_was(desk: Commands, repository: bool) -> None:
    fill(desk)
    if repository:
        desk.git("init", "-q")
        desk.git("add", "-A")
        desk.git("commit", "-qm", "first")
        desk.at("src/a.py", "a = 2, not committed\n")
        desk.at("src/untracked.py", "new")
        desk.at("README.md", "# staged\n")
        desk.git("add", "README.md")
    before = desk.tree
    status = desk.git("status", "--porcelain") if repository else ""
    desk.sh("rm -rf src")
    (line,) = desk.runner.take_back()
    assert line.startswith("shell: rm -rf src: removed src/")
    assert desk.tree == before
    if repository:
        assert desk.git("status", "--porcelain") == status
        assert desk.git("stash", "list") == ""
        assert desk.git("for-each-ref", "--format=%(refname)").split() == [desk.git("symbolic-ref", "HEAD").strip()]
    assert desk.runner.take_back() == ()
    assert not list((desk.home / ".local/share/marvin/undo").rglob("*.json"))


def test_a_whole_working_directory_with_its_repository_is_back_but_for_the_repository(desk: Commands) -> None:
    """The contents stay readable without the objects of the repository."""
    fill(desk)
    desk.git("init", "-q")
    desk.git("add", "-A")
    desk.git("commit", "-qm", "first")
    desk.git("gc", "-q")
    before = desk.tree
    desk.sh("rm -rf .git src README.md")
    desk.runner.take_back()
    assert desk.tree == before


def test_what_a_command_created_and_changed_is_taken_back(desk: Commands) -> None:
    fill(desk)
    before = desk.tree
    desk.sh("mkdir -p out/x && echo 1 >out/x/1 && sed -i s/1/2/ src/a.py && mv README.md out/ && chmod +x src/a.py")
    assert len(desk.runner.take_back()) == 1
    assert desk.tree == before
    assert not (desk.project / "out").exists()


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf src && echo file >src",
        "rm README.md && mkdir README.md && echo x >README.md/x",
        "rm src/link && echo file >src/link",
        "rm src/a.py && ln -s /etc/passwd src/a.py",
        "mv src other && ln -s other src",
        "rm -rf src && ln -s . src",
        "chmod +x src/a.py",
        ": >src/a.py",
    ],
)
def test_files_folders_and_links_in_the_place_of_each_other(desk: Commands, command: str) -> None:
    fill(desk)
    before = desk.tree
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before


def test_permissions_that_were_changed_later_come_back_too(desk: Commands) -> None:
    """A private file never becomes readable by others."""
    file = desk.at("key", "secret")
    desk.sh("true")
    file.chmod(0o600)
    desk.sh("rm key")
    desk.runner.take_back()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_no_race_brings_in_what_lies_outside(desk: Commands, tmp_path: Path) -> None:
    """I4: a process swaps a folder for a link to another one while snapshots are taken and put back."""
    (tmp_path / "outside").mkdir()
    for number in range(20):
        (tmp_path / "outside" / f"{number}").write_text("of outside")
        desk.at(f"sub/{number}", "of the project")
    (desk.project / "link").symlink_to(tmp_path / "outside")
    process = started(swaps_a_folder, desk)
    try:
        wait_for(desk.home / "going", process)
        for number in range(6):
            desk.runner.call(shell, command=f"echo {number} >n{number}")
            with suppress(MarvinError):
                desk.runner.take_back()
    finally:
        process.kill()
        process.join(50)
    assert {path.read_text() for path in (tmp_path / "outside").iterdir()} <= {"of outside"}
    objects = subprocess.run(
        ["bash", "-c", "for s in */; do git --git-dir $s cat-file --batch-all-objects --batch; done"],
        cwd=desk.home / ".local/share/marvin/snapshots",
        capture_output=True,
        check=True,
    ).stdout
    assert b"of the project" in objects
    assert b"of outside" not in objects


def test_what_the_user_changed_since_is_refused_with_the_difference(desk: Commands) -> None:
    desk.write(a="1\n", b="1\n")
    desk.sh("echo 2 >a; echo 2 >b")
    desk.at("b", "mine\n")
    text = desk.refused()
    assert "These files have changed since then. Undo the later change first, or restore them by hand" in text
    assert "-2\n+mine" in text
    assert desk.tree["a"][1] == b"2\n", "all of them or none"
    desk.at("b", "2\n")
    desk.runner.take_back()
    assert desk.tree["a"][1] == desk.tree["b"][1] == b"1\n"


def test_a_link_in_the_place_of_a_folder_leads_nowhere_else(desk: Commands, tmp_path: Path) -> None:
    """I4."""
    desk.at("sub/a", "1")
    desk.sh("echo 2 >sub/a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a").write_text("2\n")
    (desk.project / "sub").rename(desk.project / "moved")
    (desk.project / "sub").symlink_to(tmp_path / "outside")
    assert "link" in desk.refused()
    assert (tmp_path / "outside/a").read_text() == "2\n"


def test_commands_and_files_are_taken_back_in_their_order(desk: Commands) -> None:
    desk.write(a="0\n")
    desk.runner.call(put, files={"a": "1\n"})
    desk.sh("echo 2 >a")
    desk.runner.call(put, files={"a": "3\n"})
    desk.sh("echo 4 >a")
    for expected in (b"3\n", b"2\n", b"1\n", b"0\n"):
        assert len(desk.runner.take_back()) == 1
        assert desk.tree["a"][1] == expected


def test_what_is_ignored_is_left_alone(desk: Commands) -> None:
    desk.git("init", "-q")
    desk.write(**{".gitignore": "build/\n"})
    desk.at("build/x", "1")
    desk.at("kept", "1")
    desk.sh("echo 2 >build/x; echo 2 >kept")
    desk.runner.take_back()
    assert (desk.tree["build/x"][1], desk.tree["kept"][1]) == (b"2\n", b"1")


def test_a_command_that_changes_nothing_leaves_nothing_to_take_back(desk: Commands) -> None:
    fill(desk)
    desk.sh("cat src/a.py; touch src/a.py")
    assert desk.runner.take_back() == ()


def test_what_is_kept_is_for_the_user_alone(desk: Commands) -> None:
    """Folders and files; what the user's repository has as well is the same file, and stays as it is there."""
    fill(desk)
    desk.git("init", "-q")
    desk.git("add", "-A")
    desk.git("commit", "-qm", "first")
    for number in range(120):
        desk.at(f"many/{number}", str(number))
    desk.sh("echo x > made; rm -r many")
    shared = {path.stat().st_ino for path in (desk.project / ".git").rglob("*")}
    kept = [path for path in (desk.home / ".local" / "share" / "marvin").rglob("*") if path.stat().st_ino not in shared]
    assert len(kept) > 20
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_the_commands_of_a_prompt_are_taken_back_as_one(tmp_path: Path) -> None:
    script = [
        calls(("a", "shell", json.dumps({"command": "rm -rf src"}))),
        calls(("b", "shell", json.dumps({"command": "echo new >made"}))),
        says("Done."),
        says("I see."),
    ]
    made = make(tmp_path, *script, specs=SPECS)
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "a.py").write_text("a")
    said: list[str] = []

    async def work(chat: Chat) -> None:
        await chat.session.submit("Go.")
        assert not (tmp_path / "project" / "src").exists()
        said.extend([await chat.do("/undo list"), await chat.do("/undo")])

    chatting(made, work)
    assert "shell: rm -rf src; echo new >made: created made, removed src/a.py" in said[0]
    assert (tmp_path / "project" / "src" / "a.py").read_text() == "a"
    assert not (tmp_path / "project" / "made").exists()


# --- going back to a prompt -----------------------------------------------------------------------------------------


async def yes(question: str, choices: Sequence[str]) -> str:
    return choices[0]


def rewinding(tmp_path: Path, *lines: str) -> tuple[list[str], list[str], Path]:
    """Three prompts, then slash commands: what they say, what the conversation holds, and the project."""
    script = [
        calls(("a", "shell", json.dumps({"command": "echo 1 >a"}))),
        says("First."),
        calls(("b", "put", json.dumps({"files": {"a": "2\n", "b": "2\n"}}))),
        says("Second."),
        calls(("c", "shell", json.dumps({"command": "rm a"}))),
        says("Third."),
    ]
    made = make(tmp_path, *script, specs=SPECS, asker=yes)
    said: list[str] = []
    texts: list[str] = []

    async def work(chat: Chat) -> None:
        for prompt in ("One.", "Two.", "Three."):
            (await chat.session.submit(prompt)).check()
        said.extend([await chat.do(line) for line in lines])
        texts.extend(chat.texts)

    chatting(made, work)
    return said, texts, tmp_path / "project"


def files(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in project.iterdir() if path.is_file()}


def test_rewind_goes_back_with_files_and_conversation(tmp_path: Path) -> None:
    said, texts, project = rewinding(tmp_path, "/rewind", "/rewind 2", "/rewind", "/rewind 1", "/undo list")
    assert [line[18:].strip() for line in said[0].splitlines()[:3]] == ["  One.", "Two.", "Three."] or "Three." in said[
        0
    ]
    assert "put: created b" in said[1] or "created b" in said[1]
    assert "Two." not in said[2]
    assert (texts, files(project)) == ([], {})
    assert said[4] == "There is nothing to undo in this folder."


def test_rewind_of_files_alone_and_of_the_conversation_alone(tmp_path: Path) -> None:
    said, texts, project = rewinding(tmp_path, "/rewind 3 files")
    assert files(project) == {"a": "2\n", "b": "2\n"}
    assert "Three." in texts
    (tmp_path / "again").mkdir()
    said, texts, project = rewinding(tmp_path / "again", "/rewind 2 conversation", "/tree")
    assert files(project) == {"b": "2\n"}
    assert texts[-1] == "First."
    assert "Three." in said[1], "the branch that was left is there"


def test_rewind_goes_past_long_commands_of_another_marvin(tmp_path: Path) -> None:
    """They began before the prompt, and ended after it."""
    made = make(tmp_path, calls(("a", "put", '{"files": {"a": "1"}}')), says("Done."), specs=SPECS, asker=yes)

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        ledger = UndoLedger(made.config.data_folder / "undo", tmp_path / "project", Limits())
        other = LedgerEntry(path=tmp_path, time=1.0, session="other", process=(1, 1), tool="shell", what="x")
        ledger.record(other, Inverse())
        assert "created a" in await chat.do("/rewind 1 files")

    chatting(made, work)
    assert files(tmp_path / "project") == {}


def test_rewind_says_how_it_is_used(tmp_path: Path) -> None:
    said, texts, _ = rewinding(tmp_path, "/rewind 9", "/rewind 1 all")
    assert all(text.startswith("Error: Use /rewind") for text in said)
    assert "Three." in texts


# --- repositories and folders of all kinds --------------------------------------------------------------------------


HOSTILE = """
git init -q .
git config core.fsmonitor 'touch ran-fsmonitor; false'
git config core.hooksPath hooks
git config filter.evil.clean 'touch ran-clean; cat'
git config filter.evil.smudge 'touch ran-smudge; cat'
git config filter.evil.required true
git config core.autocrlf true
git config core.worktree ..
mkdir hooks
for hook in post-index-change post-checkout pre-commit reference-transaction; do
  printf '#!/bin/sh\\ntouch ran-hook\\n' >hooks/$hook; chmod +x hooks/$hook
done
printf '* filter=evil text eol=crlf ident working-tree-encoding=UTF-16\\n' >.gitattributes
printf '[submodule "x"]\\npath = sub\\nurl = ext::touch ran-url\\n' >.gitmodules
"""


def test_nothing_of_a_hostile_repository_runs_and_bytes_stay_as_they_are(desk: Commands) -> None:
    subprocess.run(["bash", "-ec", HOSTILE], cwd=desk.project, check=True)
    desk.at("a.txt", b"$Id$ one\r\ntwo\n\xff\xfe")
    before = desk.tree
    desk.sh("rm -rf a.txt hooks .gitattributes; echo 'x' >b.txt")
    desk.runner.take_back()
    assert desk.tree == before
    assert not list(desk.project.rglob("ran-*"))


def test_what_the_index_of_the_user_says_of_files_does_not_count(desk: Commands) -> None:
    """Flags in it would hide changes: files that count as unchanged, or as not there."""
    fill(desk)
    desk.git("init", "-q")
    desk.git("add", "-A")
    desk.git("update-index", "--assume-unchanged", "src/a.py")
    desk.git("update-index", "--skip-worktree", "README.md")
    before = desk.tree
    index = (desk.project / ".git/index").read_bytes()
    desk.sh("echo other >src/a.py; rm README.md")
    desk.runner.take_back()
    assert desk.tree == before
    assert (desk.project / ".git/index").read_bytes() == index


@pytest.mark.parametrize("git", ["true", "git init -q .", "git init -q --object-format=sha256 ."])
def test_repositories_within_the_folder_are_kept_too(desk: Commands, git: str) -> None:
    desk.at("lib/inner/a", "1").chmod(0o640)
    desk.at("lib/inner/deep/er/b", "1")
    desk.at("c", "1")
    for folder in (desk.project, desk.project / "lib/inner", desk.project / "lib/inner/deep"):
        subprocess.run(["bash", "-ec", git], cwd=folder, check=True)
    before = desk.tree
    for _ in range(2):
        desk.sh("rm -rf lib c")
        desk.runner.take_back()
        assert desk.tree == before


def test_below_the_top_of_a_repository_its_rules_count_and_the_rest_is_left(desk: Commands, tmp_path: Path) -> None:
    top = tmp_path / "home"
    work = top / "packages" / "app"
    work.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    (top / ".gitignore").write_text("node_modules/\n")
    (top / ".git/info/exclude").write_text("private\n")
    (work / "node_modules").mkdir()
    (work / "node_modules/x").write_text("1")
    (work / "private").write_text("1")
    (work / "ä b").write_text("1")
    (top / "other").write_text("1")
    with ToolRunner(top, work) as runner:
        runner.call(shell, command="echo 2 >node_modules/x; echo 2 >private; rm 'ä b'; echo 2 >../../other")
        (line,) = runner.take_back()
        assert line.endswith("removed ä b")
        assert (work / "ä b").read_text() == "1"
        assert (work / "private").read_text() == (top / "other").read_text() == "2\n"


def test_the_home_folder_is_kept_without_what_is_marvins_own(desk: Commands) -> None:
    (desk.home / "note").write_text("1")
    with ToolRunner(desk.home, desk.home) as runner:
        runner.call(shell, command="rm note")
        assert runner.take_back() == ("shell: rm note: removed note",)
        assert (desk.home / "note").read_text() == "1"


def test_what_marvin_keeps_in_a_project_is_not_taken_back(desk: Commands) -> None:
    """I1: the state of the pipeline never goes back. Its documents do."""
    for name in ("pipeline_state", "review-history-1.md", "logs/x", "memories/x", "spec.md"):
        desk.at(f".marvin/{name}", "1")
    desk.sh("for file in $(find .marvin -type f); do echo 2 >$file; done")
    assert desk.runner.take_back()[0].endswith(": changed .marvin/spec.md")


@pytest.mark.parametrize(
    "command", ["sed -i /secret/d .gitignore", "rm -rf .git", "git -C sub init -q", "rm .gitignore sub/.gitignore"]
)
@pytest.mark.parametrize("part", ["", "part"])
def test_files_that_a_command_no_longer_has_ignored_are_not_removed(tmp_path: Path, command: str, part: str) -> None:
    """They look like new ones, but are the user's."""
    desk = Commands(tmp_path)
    desk.git("init", "-q")
    (desk.project / ".git/info/exclude").write_text("private\n")
    if part:
        desk.runner.close()
        desk.project /= part
        desk.project.mkdir()
        desk.runner = ToolRunner(desk.home, desk.project)
        command = command.replace("rm -rf .git", "mv ../.git ../gone")
    desk.write(**{".gitignore": "secret\nnode_modules/\n", "secret": "1", "private": "1", "kept": "1"})
    desk.write(**{"sub/node_modules/deep/x": "1", "sub/.gitignore": "own\n", "sub/own": "1"})
    before = desk.tree
    desk.sh(f"{command}; echo 2 >kept; mkdir new; echo 1 >new/made; echo 1 >sub/made; echo 1 >':(x'")
    desk.runner.take_back()
    assert desk.tree == before
    desk.runner.close()


@pytest.mark.parametrize(("size", "name"), [(900, "large"), (1100, "small")])
def test_a_file_that_a_command_makes_smaller_or_too_large_is_left_alone(tmp_path: Path, size: int, name: str) -> None:
    """The earlier content of the one, or the later content of the other, is not stored."""
    made = make(tmp_path, specs=SPECS, yaml="limits: {undo_file: 1000}")
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "large").write_text("x" * 1001)
    (project / "small").write_text("x" * 1000)
    (project / "other").write_text("x")
    said: list[str] = []

    async def work(chat: Chat) -> None:
        await chat.session.call_tool("shell", {"command": f"truncate -s {size} {name}; rm other"})
        said.append(await chat.do("/undo"))

    chatting(made, work)
    left = f"Left as they are, because it is unknown what the commands did to them: {name}"
    assert said[0].endswith(f": removed other. {left}")
    assert (project / "other").exists()
    assert (project / name).stat().st_size == size


@pytest.mark.slow
def test_of_very_many_repositories_none_is_taken_for_a_new_one(desk: Commands) -> None:
    for number in range(70):
        desk.at(f"r{number:02}/a", "1")
        subprocess.run(["git", "init", "-q"], cwd=desk.project / f"r{number:02}", check=True)
    desk.sh("rm -rf r69 r30 r00")
    left = desk.tree
    desk.runner.take_back()
    assert left.items() <= desk.tree.items()


def test_special_files_and_those_that_are_too_large_are_passed_over(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS, yaml="limits: {undo_file: 1000}")
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    os.mkfifo(project / "pipe")
    (project / "large").write_text("x" * 1001)
    (project / "small").write_text("x" * 1000)
    said: list[str] = []

    async def work(chat: Chat) -> None:
        await chat.session.call_tool("shell", {"command": "rm large small"})
        said.append(await chat.do("/undo"))

    chatting(made, work)
    assert said == ["Undone: shell: rm large small: removed small"]
    assert sorted(path.name for path in project.iterdir() if path.name != ".marvin") == ["pipe", "small"]


@pytest.mark.parametrize("why", ["it is too much", "there is no git"])
def test_what_cannot_be_kept_is_told_once_and_commands_run(tmp_path: Path, why: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "bash").symlink_to(str(shutil.which("bash")))
    if why == "there is no git":
        made, told = (
            make(tmp_path, specs=SPECS, env={"PATH": str(programs)}),
            "git, which stores the files, is not installed",
        )
    else:
        made = make(tmp_path, specs=SPECS, yaml="limits: {undo_snapshots: 1000}")
        told = "the folder has more than 1,000 bytes (limits.undo_snapshots)"
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "project" / "a").write_text("x" * 2000)
    said: list[str] = []

    async def work(chat: Chat) -> None:
        for _ in range(2):
            output = await chat.session.call_tool("shell", {"command": "echo ran"})
            assert "ran" in output.text
        said.append(await chat.do("/undo"))

    chatting(made, work)
    warned = [event.text for event in made.seen(Notice) if "/undo cannot undo what commands change here" in event.text]
    assert warned == [f"/undo cannot undo what commands change here: {told}."]
    assert said == ["There is nothing to undo in this folder."]


def test_commands_whose_result_cannot_be_kept_do_not_block_the_calls_before_them(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS, yaml="limits: {undo_snapshots: 2000}")
    said: list[str] = []

    async def work(chat: Chat) -> None:
        await chat.session.call_tool("put", {"files": {"a": "1"}})
        await chat.session.call_tool("shell", {"command": "head -c 3000 /dev/zero >b"})
        said.extend([await chat.do("/undo"), await chat.do("/undo")])

    chatting(made, work)
    assert "It cannot be undone: the folder has more than 2,000 bytes (limits.undo_snapshots)." in said[0]
    assert said[1] == "Undone: put: created a"


def test_commands_whose_result_could_not_be_kept_are_undone_once_it_was_shown(desk: Commands) -> None:
    """For example after the disk was full."""
    desk.write(a="1")
    stores, aside = desk.home / ".local/share/marvin/snapshots", desk.home / "aside"
    desk.sh(f"rm a; mv {stores} {aside}; touch {stores}")
    with suppress(MarvinError):
        desk.runner.take_back()
    stores.unlink()
    aside.rename(stores)
    text = desk.refused()
    assert "No snapshot was taken when its commands ended, so some of these changes may come from elsewhere" in text
    assert "removed a" in text
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"


# --- processes that end, and several of them ------------------------------------------------------------------------


def started(target: Callable[..., None], desk: Commands, *given: str) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(desk.home, desk.project, *given))
    process.start()
    return process


def wait_for(path: Path, process: BaseProcess) -> None:
    deadline = time.monotonic() + 50
    while not path.exists() and time.monotonic() < deadline and process.is_alive():
        time.sleep(0.01)


@pytest.mark.slow
def test_what_a_command_did_before_marvin_was_killed_is_taken_back_once_it_was_shown(desk: Commands) -> None:
    fill(desk)
    before = desk.tree
    process = started(runs_a_command, desk, "rm -rf src; echo 1 >ready; sleep 600")
    try:
        wait_for(desk.project / "ready", process)
        assert desk.runner.take_back() == (), "it still runs"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(50)
        text = desk.refused()
        assert "No snapshot was taken when its commands ended, so some of these changes may come from elsewhere" in text
        assert "created ready, removed src/a.py" in text
        desk.at("README.md", "changed after it was shown")
        assert len(desk.runner.take_back()) == 1
        assert desk.tree == before | {"README.md": ("0o644", b"changed after it was shown")}
        assert desk.runner.take_back() == ()
    finally:
        process.kill()
        process.join(50)


@pytest.mark.slow
@pytest.mark.parametrize("after", range(0, 400, 40))
def test_a_kill_at_any_moment_leaves_what_the_next_marvin_can_use(desk: Commands, after: int) -> None:
    """While a snapshot is taken, a command runs, or it is taken back."""
    for number in range(300):
        desk.at(f"src/{number}", f"{number}\n")
    before = desk.tree
    desk.sh("true")
    process = started(goes_back_and_forth, desk)
    try:
        wait_for(desk.home / "going", process)
        time.sleep(after / 1000)
        process.kill()
        process.join(50)
        for _ in range(9):
            with suppress(MarvinError):  # what it was at is shown first
                if not desk.runner.take_back(9):
                    break
        left = list(desk.project.rglob(".marvin-*.tmp"))
        assert len(left) <= 1
        for path in left:
            path.unlink()
        assert desk.tree == before
        desk.sh("rm -rf src")
        desk.runner.take_back()
        assert desk.tree == before
    finally:
        process.kill()
        process.join(50)


@pytest.mark.slow
def test_what_two_marvins_did_at_the_same_time_is_shown_before_it_is_taken_back(desk: Commands) -> None:
    process = started(runs_a_command, desk, "echo 1 >theirs; until [ -e go ]; do sleep 0.01; done; rm go")
    try:
        wait_for(desk.project / "theirs", process)
        desk.sh("echo 1 >mine")
        desk.sh("echo 1 >more")
        text = desk.refused()
        assert "Another Marvin worked in this folder at the same time" in text
        assert "created more" in text
        desk.at("go", "")
        process.join(50)
        assert "created mine, created more, created theirs" in desk.refused()
        assert len(desk.runner.take_back()) == 1
        assert desk.tree == {}
    finally:
        process.kill()
        process.join(50)


@pytest.mark.slow
def test_several_marvins_at_once_break_no_snapshot(desk: Commands) -> None:
    processes = [started(runs_commands, desk, name) for name in ("x", "y")]
    for process in processes:
        process.join(100)
        assert process.exitcode == 0
    assert {"x.kept", "y.kept", "x.4", "y.4"} <= set(desk.tree)


def test_a_store_that_somebody_removed_is_told_and_the_next_one_is_made(desk: Commands) -> None:
    desk.write(a="1")
    desk.sh("rm a")
    shutil.rmtree(desk.home / ".local/share/marvin/snapshots")
    desk.again()
    assert "no longer listed" in desk.refused()
    assert desk.runner.take_back() == ()
    desk.write(a="2")
    desk.sh("rm a")
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"2"


@pytest.mark.parametrize(
    "damage",
    [": >index", "truncate -s 50 index", "head -c 99 /dev/zero >index", ": >HEAD", "rm -r objects", "rm -r objects/??"],
)
def test_a_damaged_store_is_repaired(desk: Commands, damage: str) -> None:
    """For example after a loss of power: nothing is written with a wait for the disk."""
    desk.write(a="1")
    desk.sh("true")
    (store,) = (desk.home / ".local/share/marvin/snapshots").iterdir()
    subprocess.run(["sh", "-c", damage], cwd=store, check=True)
    desk.again()
    desk.sh("rm a")
    assert desk.runner.take_back() == ("shell: rm a: removed a",)
    assert desk.tree["a"][1] == b"1"


@pytest.mark.slow
def test_several_marvins_know_the_permissions_of_all_files(desk: Commands) -> None:
    """A private file never becomes readable by others."""
    desk.sh("true")
    for number in range(60):
        desk.at(str(number), str(number)).chmod(0o600)
    with ToolRunner(desk.home, desk.project) as other:
        other.call(shell, command="true")
        desk.at("more", "1").chmod(0o600)
        desk.sh("true")
        desk.sh("rm 1 more")
    before = desk.tree
    desk.runner.take_back()
    assert desk.tree["1"][0] == desk.tree["more"][0] == "0o600"
    with ToolRunner(desk.home, desk.project) as third:
        third.call(shell, command="rm 2")
        third.take_back()
    assert desk.tree["2"] == before["2"]


@pytest.mark.slow
def test_a_file_that_is_changed_while_others_are_put_back_stays(desk: Commands) -> None:
    for number in range(2000):
        desk.at(f"{number:04}", "1")
    desk.sh("for file in *; do echo 2 >$file; done")
    first, last = desk.project / "0000", desk.project / "1999"

    def change() -> None:
        while first.read_text() != "1":
            pass
        last.write_text("mine")

    changing = threading.Thread(target=change)
    changing.start()
    text = desk.refused()
    assert "1999 was changed at the same moment, so it stays as it is. " in text
    assert "1,999 of 2,000 files are restored: 0000, 0001, " in text
    changing.join()
    assert last.read_text() == "mine"
    assert "-2\n+mine" in desk.refused()


def test_an_object_of_the_repository_that_is_not_what_its_name_says_is_never_put_back(desk: Commands) -> None:
    """Commands can write where the repository keeps its objects, and snapshots share them."""
    desk.git("init", "-q")
    desk.write(a="mine")
    name = desk.git("hash-object", "a").strip()
    desk.at(f".git/objects/{name[:2]}/{name[2:]}", zlib.compress(b"blob 4\0evil"))
    desk.sh("rm a")
    assert "is missing or incomplete" in desk.refused()
    assert "a" not in desk.tree


def test_a_command_that_is_cancelled_is_taken_back(tmp_path: Path) -> None:
    script = [calls(("a", "shell", json.dumps({"command": "rm a; echo 1 >ready; sleep 600"}))), says("Never.")]
    made = make(tmp_path, *script, specs=SPECS)
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "a").write_text("a")

    async def work(chat: Chat) -> None:
        answering = asyncio.ensure_future(chat.session.submit("Go."))
        await until((project / "ready").exists)
        answering.cancel()
        await asyncio.wait([answering])
        assert "removed a" in await chat.do("/undo")

    chatting(made, work)
    assert (project / "a").read_text() == "a"


def test_stores_that_nobody_uses_are_removed_by_age_and_size(tmp_path: Path) -> None:
    base = tmp_path / "snapshots"
    for number, size in enumerate((100, 200, 300)):
        (base / str(number) / "objects").mkdir(parents=True)
        (base / str(number) / "objects" / "x").write_bytes(b"x" * size)
        (base / str(number) / "index").touch()
        os.utime(base / str(number) / "index", (1000 * number, 1000 * number))
    (base / "1" / f"user-{os.getpid()}-{this_process()[1]}").touch()
    (base / "2" / "user-1-1").touch()
    sweep_stores(base, Limits(undo_snapshots=10_000), 2000 + 29 * 86_400)
    assert sorted(path.name for path in base.iterdir()) == ["0", "1", "2"]
    sweep_stores(base, Limits(undo_snapshots=350), 2000.0)
    assert sorted(path.name for path in base.iterdir()) == ["1", "2"], "one in use stays"
    sweep_stores(base, Limits(), 2001 + 30 * 86_400)
    assert sorted(path.name for path in base.iterdir()) == ["1"]
