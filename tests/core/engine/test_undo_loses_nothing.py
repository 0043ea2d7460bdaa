"""Undo of commands never loses the user's work, nor the way back, whatever fails meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from tests.support.undoing import Commands


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Commands]:
    made = Commands(tmp_path)
    yield made
    made.runner.close()


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
    desk.again(env={"PATH": f"{programs}:/bin" if text == SLOW else str(programs)}, timeouts={"snapshot": 0.3})


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
