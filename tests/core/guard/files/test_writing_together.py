"""Several files written as one, on real files: all, or none, and what they were stays theirs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from marvin_core import FileChanged, FileWrite, PathRefused, ToolError
from marvin_core.guard.files.folder_descriptors import Folder, Place
from marvin_core.guard.files.preview import PreviewPaths
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.files.together import Step
from marvin_core.guard.files.writing import put
from tests.tools_coding.support import files_below


@pytest.fixture
def paths(tmp_path: Path) -> SandboxPaths:
    """A folder with two files."""
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "b.txt").write_bytes(b"b")
    return SandboxPaths(tmp_path)


BEFORE = {"a.txt": b"a", "b.txt": b"b"}


def test_files_are_written_made_and_removed(paths: SandboxPaths) -> None:
    changes = [
        FileWrite(path="a.txt", data=b"A"),
        FileWrite(path="b.txt", data=None),
        FileWrite(path="c/d.txt", data=b"d", create_only=True, mode=0o755),
    ]
    paths.write_together(changes)
    assert files_below(paths.root) == {"a.txt": b"A", "c/d.txt": b"d"}
    assert (paths.root / "c/d.txt").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (FileWrite(path="../x", data=b""), PathRefused),
        (FileWrite(path=".git/config", data=b""), PathRefused),
        (FileWrite(path="a.txt", data=b"", create_only=True), FileChanged),
        (FileWrite(path="missing.txt", data=None), ToolError),
        (FileWrite(path="a.txt/x", data=b""), ToolError),
    ],
)
def test_where_one_fails_none_is_changed(paths: SandboxPaths, bad: FileWrite, error: type[ToolError]) -> None:
    good = [FileWrite(path="b.txt", data=b"B"), FileWrite(path="new/c.txt", data=b"c", create_only=True)]
    for changes in ([*good, bad], [bad, *good]):
        with pytest.raises(error):
            paths.write_together(changes)
        assert files_below(paths.root) == BEFORE
        assert sorted(path.name for path in paths.root.iterdir()) == ["a.txt", "b.txt"]


def test_what_was_put_in_place_is_taken_back_where_a_later_file_cannot_be(paths: SandboxPaths) -> None:
    """Each is checked before: only what happens in between is left, as a second writing of the same new file."""
    changes = [
        FileWrite(path="a.txt", data=b"A"),
        FileWrite(path="b.txt", data=None),
        FileWrite(path="c.txt", data=b"1", create_only=True),
        FileWrite(path="c.txt", data=b"2", create_only=True),
    ]
    with pytest.raises(ToolError, match="already exists"):
        paths.write_together(changes)
    assert files_below(paths.root) == BEFORE
    assert sorted(path.name for path in paths.root.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("change", ["written", "replaced", "removed"])
def test_a_file_that_another_changed_meanwhile_is_kept(paths: SandboxPaths, change: str) -> None:
    file = paths.root / "a.txt"
    with paths.open("a.txt") as stream:
        expected = os.fstat(stream.fileno())
        if change == "written":
            file.write_bytes(b"work of the user")
        elif change == "replaced":
            (paths.root / "new").write_bytes(b"a")
            (paths.root / "new").replace(file)
        else:
            file.unlink()
        before = files_below(paths.root)
        with pytest.raises(FileChanged, match="this change was not made"):
            paths.write_together([FileWrite(path="a.txt", data=b"A", expected=expected)])
    assert files_below(paths.root) == before


@pytest.mark.parametrize("data", [b"A", None])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_another_saves_in_the_moment_of_the_writing_is_kept(
    paths: SandboxPaths, data: bytes | None, when: str
) -> None:
    """Between the check and the end: into the same file before it has its new content, or as a new file after that."""
    file = paths.root / "a.txt"
    with paths._writing("a.txt") as (place, old):
        step = Step(FileWrite(path="a.txt", data=data, expected=old), place, old)
        step.prepare()
        step.keep(is_alone=True)
        step.check()
        if when == "before":
            file.write_bytes(b"work of the user")
        step.put()
        if when == "after":
            (paths.root / "new").write_bytes(b"work of the user")
            (paths.root / "new").replace(file)
        else:
            with pytest.raises(FileChanged):
                step.check_kept()
        step.take_back()
        step.finish()
    assert files_below(paths.root) == {**BEFORE, "a.txt": b"work of the user"}


def test_a_second_name_that_another_marvin_sweeps_ends_no_writing(paths: SandboxPaths) -> None:
    """It has the time of the file, which may be an old one."""
    with paths._writing("a.txt") as (place, old):
        step = Step(FileWrite(path="a.txt", data=b"A", expected=old), place, old)
        step.prepare()
        step.keep(is_alone=True)
        step.check()
        step.put()
        for left in paths.root.glob(".marvin-*"):
            left.unlink()
        step.check_kept()
        step.finish()
    assert files_below(paths.root) == {**BEFORE, "a.txt": b"A"}


def test_a_link_is_followed_and_stays_one(paths: SandboxPaths) -> None:
    (paths.root / "link").symlink_to("a.txt")
    paths.write_together([FileWrite(path="link", data=b"A")])
    assert (paths.root / "link").is_symlink()
    assert (paths.root / "a.txt").read_bytes() == b"A"
    paths.write_together([FileWrite(path="link", data=None)])
    assert files_below(paths.root) == {"a.txt": b"A", "b.txt": b"b"}


@pytest.mark.skipif(sys.platform != "linux", reason="Python reads extended attributes on Linux only")
def test_extended_attributes_stay(paths: SandboxPaths) -> None:
    file = paths.root / "a.txt"
    try:
        os.setxattr(file, "user.origin", b"mail")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    paths.replace("a.txt", b"A")
    paths.write_together([FileWrite(path="a.txt", data=b"B"), FileWrite(path="b.txt", data=b"B")])
    assert os.getxattr(file, "user.origin") == b"mail"


def test_a_preview_writes_nothing(paths: SandboxPaths) -> None:
    preview = PreviewPaths(paths)
    with preview.trying():
        preview.write_together([FileWrite(path="a.txt", data=b"A"), FileWrite(path="b.txt", data=None)])
    assert preview.changes == {"a.txt": (b"a", b"A"), "b.txt": (b"b", b"")}
    assert files_below(paths.root) == BEFORE


def test_what_replaces_a_private_file_is_nobody_elses_to_read_at_any_time(tmp_path: Path) -> None:
    """Beside the file it could be read by all for as long as it is written."""
    (tmp_path / "key").write_bytes(b"old")
    (tmp_path / "key").chmod(0o600)
    folder = os.open(tmp_path, os.O_RDONLY)
    seen: list[int] = []

    def write(stream: BinaryIO) -> None:
        seen.append(os.fstat(stream.fileno()).st_mode & 0o077)
        stream.write(b"new")

    try:
        put(Place(Folder(folder, ()), "key"), write, (tmp_path / "key").stat())
    finally:
        os.close(folder)
    assert seen == [0]
    assert files_below(tmp_path) == {"key": b"new"}
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
