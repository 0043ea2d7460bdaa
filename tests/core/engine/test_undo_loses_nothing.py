"""Undo of commands never loses the user's work, nor the way back, whatever fails meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.guard.undo.stores import merge_modes, read_modes
from marvin_core.testing import ToolRunner
from marvin_core.tools.schema import describe
from tests.support import command_tools
from tests.support.chat import Chat, chatting
from tests.support.command_tools import shell
from tests.support.engine import calls, make, says
from tests.support.undoing import Commands

pytestmark = pytest.mark.slow

LIMITED = "MARVIN_TEST_LIMITED_ROOT"
"""Set where a test runs again without root's right to read everything."""


def unfinished(desk: Commands, command: str) -> None:
    """A command after which no snapshot was taken, as after a crash."""
    stores, aside = desk.home / ".local/share/marvin/snapshots", desk.home / "aside"
    desk.sh(f"{command}; mv {stores} {aside}; touch {stores}")
    with suppress(MarvinError):
        desk.runner.take_back()
    stores.unlink()
    aside.rename(stores)
    desk.again()


# --- the entry stays until it is undone -----------------------------------------------------------------------------


SLOW = '#!/bin/sh\ncase "$*" in *-files*) sleep 9;; esac\nexec {git} "$@"\n'
BROKEN = "#!/bin/sh\nkill -9 $$\n"


def without_git(desk: Commands, text: str = "") -> None:
    """Another Marvin whose git is missing, or this script."""
    programs = desk.home.parent / "programs"
    programs.mkdir()
    if text:
        (programs / "git").write_text(text.format(git=shutil.which("git")))
        (programs / "git").chmod(0o755)
    desk.again(env={"PATH": f"{programs}:/bin" if "exec" in text else str(programs)}, timeouts={"snapshot": 0.3})


@pytest.mark.parametrize("git", [SLOW, "", BROKEN], ids=["slow", "missing", "killed"])
def test_a_first_undo_that_fails_for_now_keeps_the_entry(desk: Commands, git: str) -> None:
    desk.write(a="1")
    unfinished(desk, "rm a")
    without_git(desk, git)
    for _ in range(2):
        assert "It stays listed." in desk.refused()
    desk.again()
    assert "removed a" in desk.refused()
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"


@pytest.mark.parametrize("git", ["", BROKEN], ids=["missing", "killed"])
def test_an_undo_that_fails_for_now_keeps_the_entry(desk: Commands, git: str) -> None:
    desk.write(a="1")
    desk.sh("rm a")
    without_git(desk, git)
    assert "no longer listed" not in desk.refused()
    desk.again()
    assert desk.runner.take_back() == ("shell: rm a: removed a",)
    assert desk.tree["a"][1] == b"1"


@pytest.mark.parametrize(
    "damage",
    [": >index", "truncate -s 50 index", "head -c 99 /dev/zero >index", ": >HEAD"],
)
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "unfinished"])
def test_a_damaged_index_does_not_prevent_an_undo(desk: Commands, damage: str, ended: bool) -> None:
    """For example after a loss of power; all earlier files are intact."""
    desk.write(a="1", b="1")
    if ended:
        desk.sh("rm a; echo 2 >b")
    else:
        unfinished(desk, "rm a; echo 2 >b")
    subprocess.run(["bash", "-ec", damage], cwd=desk.store, check=True)
    desk.again()
    if not ended:
        assert "Repeat the command" in desk.refused()
    desk.runner.take_back()
    assert (desk.tree["a"][1], desk.tree["b"][1]) == (b"1", b"1")


def test_objects_that_a_loss_of_power_emptied_are_written_again(desk: Commands) -> None:
    """The user's files are still there."""
    desk.write(a="1 and more", b="1")
    desk.sh("true")
    empty = "for o in objects/??/*; do chmod u+w $o; : >$o; done; echo earlier >boot"
    subprocess.run(["bash", "-ec", empty], cwd=desk.store, check=True)
    desk.again()
    desk.sh("rm a; echo 2 >b")
    desk.runner.take_back()
    assert (desk.tree["a"][1], desk.tree["b"][1]) == (b"1 and more", b"1")


@pytest.mark.parametrize("size", [0, 9, -1])
def test_a_damaged_object_that_the_repository_has_is_taken_from_there(desk: Commands, size: int) -> None:
    desk.git("init", "-q")
    desk.write(a="1")
    desk.sh("rm a")
    name = subprocess.run(["git", "hash-object", "--stdin"], input=b"1", capture_output=True, check=True).stdout
    kept = desk.store / "objects" / name[:2].decode() / name[2:].strip().decode()
    kept.chmod(0o600)
    os.truncate(kept, size if size >= 0 else kept.stat().st_size + size)
    desk.at("elsewhere", "1")
    desk.git("hash-object", "-w", "elsewhere")
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"


# --- what was there before is the user's ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["echo '*.log' >env/.gitignore", "rm env/.gitignore", "echo '!*' >>.gitignore", "sed -i d ../.gitignore"]
)
def test_ignored_files_that_are_ignored_no_more_are_left_alone(tmp_path: Path, command: str) -> None:
    """By their own folder, by rules of the user for all repositories, or by those of a folder above."""
    desk = Commands(tmp_path)
    desk.runner.close()
    (desk.home / ".gitconfig").write_text(f"[core]\nexcludesFile = {tmp_path}/rules\n")
    (tmp_path / "rules").write_text("*.own\n")
    desk.git("init", "-q")
    desk.write(**{".gitignore": "*.above\n"})
    desk.project /= "part"
    desk.write(**{".gitignore": "nothing\n", "a.own": "1", "b.above": "1", "env/.gitignore": "*", "env/deep/x": "1"})
    desk.runner = ToolRunner(desk.home, desk.project)
    before = desk.tree
    desk.sh(f"{command}; echo 1 >env/deep/more; mkdir new; echo 1 >new/x; cp -p .gitignore copy")
    desk.runner.take_back()
    left = desk.tree
    for tree in (left, before):
        for name in ("env/.gitignore", "env/deep/more"):
            tree.pop(name, None)  # it is ignored, at least before
    assert left == before
    desk.runner.close()


def test_an_ignored_file_that_the_command_changed_as_well_is_left_alone(desk: Commands) -> None:
    """Its earlier content is not stored."""
    (desk.home / ".gitconfig").write_text(f"[core]\nexcludesFile = {desk.home}/rules\n")
    (desk.home / "rules").write_text("*.own\n")
    desk.git("init", "-q")
    desk.write(**{"a.own": "1", ".gitignore": "b\n", "b": "1", "c": "1"})
    desk.again()
    desk.sh("printf '!*.own\\n' >.gitignore; echo 2 >>a.own; echo 2 >>b; rm c; echo 1 >new.own; echo 1 >new")
    desk.runner.take_back()
    assert {"a.own", ".gitignore", "b", "c", "new.own"} == {*desk.tree}


def test_files_of_a_crashed_command_are_told_from_those_that_were_there(desk: Commands) -> None:
    desk.git("init", "-q")
    desk.write(**{".gitignore": "", "env/.gitignore": "*", "env/x": "1"})
    before = desk.tree
    unfinished(desk, "rm env/.gitignore; echo 1 >new")
    text = desk.refused()
    assert "created new" in text
    assert "env/x" not in text
    desk.runner.take_back()
    del before["env/.gitignore"]  # it was ignored by itself
    assert desk.tree == before


@pytest.mark.parametrize(
    "command",
    [
        "mv src other",
        "mkdir lib && mv src lib/src",
        "mv src/deep deep",
        "cp -p src/a.py copy.py",
        "cp -a src copy",
        "tar cf all.tar src && rm -r src && tar xf all.tar --one-top-level=x && rm all.tar",
        "ln src/a.py b.py",
        "mv src x && mv x/deep y && mv y z",
        "touch -d 2001-01-01 old && mv old src/",
    ],
)
def test_moved_copied_and_unpacked_files_are_those_of_the_command(desk: Commands, command: str) -> None:
    """Their dates are old."""
    desk.write(**{"src/a.py": "a", "src/deep/b.py": "b", "src/deep/er/__init__.py": "", "src/__init__.py": ""})
    before = desk.tree
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before


def ran_limited(request: pytest.FixtureRequest) -> bool:
    """Whether the test was run again as a user who cannot read and write everything, since this one is root."""
    if os.getuid() != 0 or LIMITED in os.environ:
        return False
    limited = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    again = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", request.node.nodeid]
    done = subprocess.run(
        [*limited, *again], cwd=request.config.rootpath, env={**os.environ, LIMITED: "1"}, capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode()
    return True


def test_files_of_a_folder_that_could_not_be_read_are_left_alone(
    desk: Commands, request: pytest.FixtureRequest
) -> None:
    if ran_limited(request):
        return
    desk.write(**{"closed/x": "1", "a": "1"})
    (desk.project / "closed").chmod(0)
    desk.sh("chmod 755 closed; rm a")
    desk.runner.take_back()
    assert {*desk.tree} == {"closed/x", "a"}


@pytest.mark.parametrize("command", ["chmod -R 755 fixed; rm -r fixed", "chmod 755 fixed fixed/in; mv fixed other"])
def test_a_folder_in_which_nobody_may_write_is_back_with_its_files(
    desk: Commands, request: pytest.FixtureRequest, command: str
) -> None:
    """Such as one that a package manager fills."""
    if ran_limited(request):
        return
    desk.write(**{"fixed/in/x": "1", "fixed/y": "1"})
    folders = [desk.project / "fixed/in", desk.project / "fixed"]
    before = desk.tree
    for folder in folders:
        folder.chmod(0o555)
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before
    assert [oct(folder.stat().st_mode & 0o777) for folder in folders] == ["0o555", "0o555"]
    assert not (desk.project / "other").exists()


@pytest.mark.parametrize("crashed", [False, True], ids=["ended", "unfinished"])
def test_what_an_undo_leaves_of_a_command_is_told(desk: Commands, crashed: bool) -> None:
    """A renamed file that was changed in place then may be another one, which was there before."""
    desk.write(a="of a", b="of b")
    command = "mv a c; echo 2 >>c; echo 2 >b"
    if crashed:
        unfinished(desk, command)
        assert "removed a, changed b. Repeat" in desk.refused()
    else:
        desk.sh(command)
    (said,) = desk.runner.take_back()
    assert said.endswith(". Left as they are, because it is unknown what the commands did to them: c")
    assert {name: text for name, (_, text) in desk.tree.items()} == {"a": b"of a", "b": b"of b", "c": b"of a2\n"}


# --- another repository around the folder ---------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["command", "user"])
@pytest.mark.parametrize("git", ["git init -q", "mv ../.git ../gone", "mv ../.git ../gone; git init -q"])
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "unfinished"])
def test_a_repository_that_appears_or_goes_does_not_confuse_an_undo(
    tmp_path: Path, git: str, by: str, ended: bool
) -> None:
    desk = Commands(tmp_path)
    desk.runner.close()
    desk.git("init", "-q")
    desk.project /= "part"
    desk.write(**{"a": "1", "b": "1", "sub/c": "1", ".gitignore": "secret\n", "secret": "1"})
    desk.runner = ToolRunner(desk.home, desk.project)
    before = desk.tree
    command = "rm a; echo 2 >b; mkdir new; echo 1 >new/x" + (f"; {git}" if by == "command" else "")
    if ended:
        desk.sh(command)
    else:
        unfinished(desk, command)
    if by == "user":
        subprocess.run(["bash", "-ec", git], cwd=desk.project, check=True)
    desk.again()
    if not ended:
        assert "created new/x, removed a, changed b. Repeat" in desk.refused()
    desk.runner.take_back()
    assert desk.tree == before
    desk.sh("rm a; echo 2 >b; mkdir new; echo 1 >new/x")
    desk.runner.take_back()
    assert desk.tree == before
    desk.runner.close()


def test_a_repository_that_appears_between_two_commands_of_a_session(tmp_path: Path) -> None:
    desk = Commands(tmp_path)
    desk.write(**{"a": "1", "sub/c": "1"})
    before = desk.tree
    for command in ("git init -q; rm a", "echo x >sub/d", "mv .git sub ../"):
        desk.sh(command)
        desk.runner.take_back()
        assert desk.tree == before
    desk.runner.close()


# --- permissions ----------------------------------------------------------------------------------------------------


def test_two_marvins_that_note_permissions_at_once_lose_none(tmp_path: Path) -> None:
    merge_modes(tmp_path, {}, {"kept": 0o600, "old": 0o600})
    known = read_modes(tmp_path)
    merge_modes(tmp_path, known, {"kept": 0o600, "old": 0o600, "one": 0o640})
    merge_modes(tmp_path, known, {"kept": 0o600, "two": 0o600})
    assert read_modes(tmp_path) == {"kept": 0o600, "one": 0o640, "two": 0o600}


# --- which commands still run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["/clear", "/fork"])
def test_commands_of_an_earlier_session_of_this_process_have_ended(tmp_path: Path, line: str) -> None:
    """The snapshot after them failed, and then another session began."""
    stores, aside = tmp_path / "home/marvin/data/snapshots", tmp_path / "aside"
    command = f"rm a; mkdir -p {stores}; mv {stores} {aside}; touch {stores}"
    script = [calls(("a", "shell", json.dumps({"command": command}))), says("Done.")]
    made = make(tmp_path, *script, specs=[describe(shell, source="tests", module=command_tools.__name__)])
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "a").write_text("1")
    said: list[str] = []

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        stores.unlink()
        aside.rename(stores)
        said.extend([await chat.do(line), await chat.do("/undo"), await chat.do("/undo")])

    chatting(made, work)
    assert "removed a. Repeat" in said[1], said
    assert (project / "a").read_text() == "1"


def test_commands_of_another_session_of_this_process_may_still_run(desk: Commands) -> None:
    """Neither session has a name before its first prompt."""
    desk.write(a="1")
    command = "rm a; echo >ready; until [ -e go ]; do sleep 0.05; done; rm go ready"
    running = threading.Thread(target=lambda: desk.sh(command))
    running.start()
    try:
        with ToolRunner(desk.home, desk.project) as other:
            while not (desk.project / "ready").exists():
                time.sleep(0.01)
            with pytest.raises(MarvinError, match="still running"):
                other.take_back()
    finally:
        desk.at("go", "")
        running.join()
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"
