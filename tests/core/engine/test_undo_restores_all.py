"""Undo of commands restores permissions, owners and attributes, and replaces empty folders."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.guard.undo.contents import name_of
from marvin_core.guard.undo.restoring import put_files_back
from marvin_core.guard.undo.trees import Change, Kept
from tests.support.undoing import Commands


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o7777)


@pytest.mark.parametrize(
    ("mode", "command"),
    [
        (0o700, "chmod -x it"),
        (0o600, "chmod 755 it"),
        (0o600, "chmod 644 it; echo 2 >it"),
        (0o600, "rm it; echo 2 >it"),
        (0o640, "rm it; mkdir it; echo 2 >it/x"),
        (0o644, "echo 2 >it; chmod 600 it"),
        (0o4750, "rm it; echo 2 >it"),
    ],
)
def test_a_changed_file_has_its_earlier_permissions_again(desk: Commands, mode: int, command: str) -> None:
    """A private file never becomes readable by others."""
    desk.at("it", "1").chmod(mode)
    desk.sh(command)
    desk.runner.take_back()
    assert ((desk.project / "it").read_text(), mode_of(desk.project / "it")) == ("1", oct(mode))


@pytest.mark.parametrize("command", ["mv private/a private/b", "rm -r private", "mv private other", "rm -r private/in"])
def test_a_private_folder_stays_private(desk: Commands, command: str) -> None:
    desk.write(**{"private/a": "1", "private/in/deep/b": "1"})
    places = [desk.project / "private", desk.project / "private/in/deep"]
    for place in places:
        place.chmod(0o700)
    before = desk.tree
    desk.sh(command)
    assert desk.tree != before
    desk.runner.take_back()
    assert desk.tree == before
    assert [mode_of(place) for place in places] == ["0o700", "0o700"]


def test_a_changed_file_keeps_its_owner_and_attributes(desk: Commands) -> None:
    file = desk.at("a", "1")
    os.setxattr(file, "user.note", b"kept")
    if os.getuid() == 0:
        os.chown(file, 1234, 1234)
    owner = file.stat().st_uid
    desk.sh("echo 2 >a")
    desk.runner.take_back()
    assert (file.read_text(), os.getxattr(file, "user.note"), file.stat().st_uid) == ("1", b"kept", owner)


@pytest.mark.parametrize("command", ["rm a; mkdir a", "rm a; mkdir -p a/b/c a/d"])
def test_a_file_replaces_an_empty_folder_in_its_place(desk: Commands, command: str) -> None:
    desk.write(a="1", b="1")
    before = desk.tree
    desk.sh(f"{command}; echo 2 >b")
    desk.runner.take_back()
    assert desk.tree == before


def test_what_lies_in_a_folder_in_the_place_of_a_file_is_left_alone(desk: Commands) -> None:
    desk.write(a="1", b="1")
    desk.sh("rm a; echo 2 >b")
    (desk.project / "a/in").mkdir(parents=True)
    (desk.project / "a/in/link").symlink_to("/etc")
    assert "a/in/link is there" in desk.refused()
    assert desk.tree["b"][1] == b"2\n"


def test_a_ledger_that_cannot_be_changed_is_an_error_that_names_the_call(desk: Commands) -> None:
    desk.write(a="1")
    desk.sh("echo 2 >a")
    (folder,) = (desk.home / ".local/share/marvin/undo").iterdir()
    fixed = subprocess.run(["chattr", "+i", str(folder)], capture_output=True).returncode == 0
    if not fixed:
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("this user can write everywhere, and the file system has no attribute that prevents it")
    try:
        assert "Not undone: shell: echo 2 >a: changed a. " in desk.refused()
    finally:
        if fixed:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        folder.chmod(0o700)
    desk.runner.take_back()
    assert desk.tree["a"][1] == b"1"


@pytest.mark.parametrize(
    ("mode", "command"), [(0o600, "chmod 644 it"), (0o644, "chmod 600 it"), (0o4750, "chmod 750 it")]
)
def test_permissions_alone_come_back(desk: Commands, mode: int, command: str) -> None:
    desk.at("it", "1").chmod(mode)
    desk.sh(command)
    assert desk.runner.take_back() == (f"shell: {command}: changed permissions of it",)
    assert mode_of(desk.project / "it") == oct(mode)
    desk.sh("cat it")
    assert desk.runner.take_back() == ()


def test_permissions_that_the_user_changed_since_stay(desk: Commands) -> None:
    file = desk.at("it", "1")
    file.chmod(0o600)
    desk.write(a="1")
    desk.sh("chmod 666 it; echo 2 >a")
    file.chmod(0o400)
    assert (
        "These files have other permissions since then: it (400 instead of 666). Change them by hand." in desk.refused()
    )
    assert (mode_of(file), desk.tree["a"][1]) == ("0o400", b"2\n")
    file.chmod(0o666)
    desk.runner.take_back()
    assert (mode_of(file), desk.tree["a"][1]) == ("0o600", b"1")


def test_a_file_that_the_user_made_private_since_stays_private(desk: Commands) -> None:
    desk.write(a="1", b="1")
    desk.sh("echo 2 >a; echo 2 >b")
    (desk.project / "a").chmod(0o600)
    assert "These files have other permissions since then: a (600 instead of 644)." in desk.refused()
    assert (mode_of(desk.project / "a"), desk.tree["b"][1]) == ("0o600", b"2\n")
    (desk.project / "a").chmod(0o644)
    desk.runner.take_back()
    assert desk.tree["a"][1] == desk.tree["b"][1] == b"1"


def test_a_removed_file_has_no_permissions_that_would_be_in_the_way(desk: Commands) -> None:
    desk.write(a="1", b="1")
    desk.sh("echo 2 >b")
    desk.sh("chmod 600 a")
    (desk.project / "a").unlink()
    desk.runner.take_back()
    desk.runner.take_back()
    assert {name: text for name, (_, text) in desk.tree.items()} == {"b": b"1"}


@pytest.mark.parametrize(
    ("mode", "command"),
    [
        (0o664, "chmod 600 it"),
        (0o664, "chmod 644 it"),
        (0o664, "echo 2 >it; chmod 644 it"),
        (0o664, "rm it"),
        (0o644, "chmod 664 it"),
        (0o644, "chmod 664 it; echo 2 >it"),
        (0o775, "chmod 700 it"),
        (0o775, "rm it; echo 2 >it"),
    ],
)
def test_files_of_a_group_are_of_the_group_again(desk: Commands, mode: int, command: str) -> None:
    """As of users with a umask of 002."""
    desk.at("it", "1").chmod(mode)
    desk.sh(command)
    desk.runner.take_back()
    assert ((desk.project / "it").read_text(), mode_of(desk.project / "it")) == ("1", oct(mode))


def test_a_private_file_is_private_again_after_a_crash(desk: Commands) -> None:
    desk.at("it", "secret").chmod(0o600)
    with left_by_a_crash(desk):
        desk.sh(f"cp {desk.home}/.local/share/marvin/undo/*/*.json ../home/open; echo 2 >it; chmod 644 it")
    assert "No snapshot was taken when its commands ended" in desk.refused()
    desk.runner.take_back()
    assert ((desk.project / "it").read_text(), mode_of(desk.project / "it")) == ("secret", "0o600")


@contextmanager
def left_by_a_crash(desk: Commands) -> Iterator[None]:
    """The only call is as a Marvin leaves it that is killed during a command, which copies it to `open`."""
    yield
    (entry,) = (desk.home / ".local/share/marvin/undo").rglob("*.json")
    head, _, data = (desk.home / "open").read_bytes().partition(b"\n")
    entry.write_bytes(json.dumps({**json.loads(head), "process": [1, 1]}).encode() + b"\n" + data)


@pytest.mark.parametrize("there", ["link", "folder"])
def test_what_the_user_put_in_the_place_of_a_file_is_told(desk: Commands, there: str) -> None:
    desk.write(a="1", b="1")
    desk.sh("echo 2 >a")
    (desk.project / "a").unlink()
    if there == "link":
        (desk.project / "a").symlink_to("b")
    else:
        desk.at("a/mine", "work")
    before = desk.tree
    assert f"\na was replaced by a {there}." in desk.refused()
    assert desk.tree == before


def test_a_file_that_cannot_be_compared_is_told(desk: Commands) -> None:
    desk.write(**{"sub/a": "1", "b": "1"})
    desk.sh("echo 2 >sub/a; echo 2 >b")
    (desk.project / "sub").rename(desk.project / "moved")
    (desk.project / "sub").symlink_to("moved")
    refused = desk.refused()
    assert "These files cannot be compared: sub/a: its folder was replaced by a link. Change that," in refused
    assert desk.tree["b"][1] == b"2\n"


def test_a_folder_that_cannot_be_changed_is_told(desk: Commands) -> None:
    desk.at("r/a", "1")
    desk.sh("echo 2 >r/new")
    folder = desk.project / "r"
    fixed = subprocess.run(["chattr", "+i", str(folder)], capture_output=True).returncode == 0
    if not fixed:
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("this user can write everywhere, and the file system has no attribute that prevents it")
    try:
        refused = desk.refused()
    finally:
        if fixed:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        folder.chmod(0o755)
    assert re.search(r"r/new cannot be removed: [A-Z][a-z ]+\. Change that, then try again\. No file was", refused)
    desk.runner.take_back()
    assert "r/new" not in desk.tree


def test_new_folders_have_their_earlier_permissions_though_an_undo_fails_halfway(tmp_path: Path) -> None:
    """The next try finds them there. Only their owner may write in them as well, so that it can."""
    kept = Kept(mode=0o100644, content=name_of(b"1"))
    changes = [Change(path=b"d/a", before=kept, after=None), Change(path=b"e/a", before=kept, after=kept)]
    done: list[bytes] = []
    modes = {"d": 0o2570}
    with pytest.raises(MarvinError, match="e/a was changed at the same moment"):
        put_files_back(tmp_path, changes, {kept.content: b"1"}, modes, done)
    assert (done, mode_of(tmp_path / "d")) == ([b"d/a"], "0o2770")


def test_what_is_saved_while_the_earlier_content_is_written_is_kept(tmp_path: Path) -> None:
    file, before = tmp_path / "a", Kept(mode=0o100644, content=name_of(b"1"))

    class Slow(dict[str, bytes]):
        """Contents that take as long as the user takes to save the file."""

        def __getitem__(self, name: str) -> bytes:
            file.write_bytes(b"mine")
            return super().__getitem__(name)

    file.write_bytes(b"2")
    changes = [Change(path=b"a", before=before, after=Kept(mode=0o100644, content=name_of(b"2")))]
    with pytest.raises(MarvinError, match="a was changed at the same moment"):
        put_files_back(tmp_path, changes, Slow({before.content: b"1"}), {}, [])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"mine")]
