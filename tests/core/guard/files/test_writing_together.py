"""Several files written as one, on real files: all, or none, and what they were stays theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pytest

from marvin_core import FileChanged, FileWrite, PathRefused, ToolError
from marvin_core.guard.files.displacing import put
from marvin_core.guard.files.folder_descriptors import Folder, Place
from marvin_core.guard.files.preview import PreviewPaths
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.files.together import Step
from tests.tools_coding.support import files_below


@pytest.fixture
def paths(tmp_path: Path) -> SandboxPaths:
    """A folder with two files."""
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "b.txt").write_bytes(b"b")
    return SandboxPaths(tmp_path)


PROTECTION = Path("/proc/sys/fs/protected_hardlinks")
HAS_PROTECTED_LINKS = os.geteuid() == 0 and PROTECTION.exists() and PROTECTION.read_text().strip() == "1"
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
    with pytest.raises(FileChanged, match="was created by another program"):
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


@contextmanager
def begun(paths: SandboxPaths, data: bytes | None, name: str = "a.txt") -> Iterator[Step]:
    """A step that is ready to be put in place."""
    with paths._writing(name) as (place, old):
        step = Step(FileWrite(path=name, data=data, expected=old), place, old)
        step.prepare()
        step.check()
        yield step


def save(file: Path) -> None:
    """What many editors do: write a new file, and rename it."""
    file.with_name("new").write_bytes(b"work of the user")
    file.with_name("new").replace(file)


@pytest.mark.parametrize("data", [b"A", None])
def test_what_another_saves_as_a_new_file_after_the_check_is_kept(paths: SandboxPaths, data: bytes | None) -> None:
    """The other files are checked, and put in place, before that."""
    file = paths.root / "a.txt"
    with begun(paths, data) as step:
        save(file)
        with pytest.raises(FileChanged):
            step.put()
        step.take_back()
        step.finish()
    assert files_below(paths.root) == {**BEFORE, "a.txt": b"work of the user"}


@pytest.mark.parametrize("data", [b"A", None])
@pytest.mark.parametrize("how", ["written", "replaced"])
def test_what_another_saves_after_the_writing_outlasts_its_end(
    paths: SandboxPaths, data: bytes | None, how: str
) -> None:
    file = paths.root / "a.txt"
    with begun(paths, data) as step:
        step.put()
        if how == "written":
            file.write_bytes(b"work of the user")
        else:
            save(file)
        step.take_back()
        step.finish()
    assert files_below(paths.root) == {**BEFORE, "a.txt": b"work of the user"}


def test_a_change_in_the_same_moment_and_of_the_same_size_is_noticed_by_its_content(paths: SandboxPaths) -> None:
    file = paths.root / "a.txt"
    before = file.stat()
    file.write_bytes(b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(FileChanged):
        paths.write_together([FileWrite(path="a.txt", data=b"A", expected=before, content=b"a")])
    assert files_below(paths.root) == {**BEFORE, "a.txt": b"x"}


def test_a_file_that_is_removed_in_the_moment_of_the_writing_is_not_created_again(paths: SandboxPaths) -> None:
    with begun(paths, b"A") as step:
        (paths.root / "a.txt").unlink()
        with pytest.raises(ToolError):
            step.put()
        step.finish()
    assert files_below(paths.root) == {"b.txt": b"b"}


def test_what_another_creates_in_the_moment_of_the_writing_is_kept(paths: SandboxPaths) -> None:
    with begun(paths, b"A", "new.txt") as step:
        (paths.root / "new.txt").write_bytes(b"work of the user")
        with pytest.raises(FileChanged, match="was created by another program"):
            step.put()
        step.take_back()
        step.finish()
    assert files_below(paths.root) == {**BEFORE, "new.txt": b"work of the user"}


@pytest.mark.parametrize("data", [b"A", None])
def test_the_second_name_of_an_old_file_is_none_that_another_marvin_sweeps(
    paths: SandboxPaths, data: bytes | None
) -> None:
    os.utime(paths.root / "a.txt", (1, 1))
    with begun(paths, data) as step:
        step.put()
        SandboxPaths(paths.root).replace("b.txt", b"b")
        step.take_back()
        step.finish()
    assert files_below(paths.root) == BEFORE


@pytest.mark.skipif(not HAS_PROTECTED_LINKS, reason="only root can become another user, and Linux protects links")
def test_a_file_that_cannot_have_a_second_name_stays_in_place_until_it_is_replaced() -> None:
    """As on a disk without hard links: a kill would leave it under a temporary name only."""
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        root.chmod(0o777)
        for file in ("a.txt", "b.txt"):
            (root / file).write_bytes(file[:1].encode())
            (root / file).chmod(0o4666)  # no other user may link such a file
        paths = SandboxPaths(root)
        os.seteuid(65_534)
        try:
            with begun(paths, b"A") as step:
                assert not [path for path in root.glob(".marvin-*") if path.stat().st_nlink > 1]
                assert (root / "a.txt").read_bytes() == b"a"
                step.put()
                assert (root / "a.txt").read_bytes() == b"A"
                step.take_back()
                step.finish()
            assert files_below(root) == BEFORE
            paths.write_together([FileWrite(path="a.txt", data=b"A"), FileWrite(path="b.txt", data=None)])
            assert files_below(root) == {"a.txt": b"A"}
        finally:
            os.seteuid(0)


@contextmanager
def other_user(root: Path, groups: Sequence[int]) -> Iterator[None]:
    """Another user, in these groups, who may write in the folder."""
    root.chmod(0o777)
    before = os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(65_534)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(before[1])
        os.setgroups(before[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("groups", "after"), [([2_000], (65_534, 2_000, 0o664)), ([], (65_534, 65_534, 0o664))])
def test_a_file_of_another_user_keeps_its_group_where_that_is_possible(
    groups: Sequence[int], after: tuple[int, int, int]
) -> None:
    """The owner can then still write it. It does not run with the rights of the one who has changed it."""
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / "a.txt").write_bytes(b"a")
        os.chown(root / "a.txt", 1_001, 2_000)
        (root / "a.txt").chmod(0o6664 if groups else 0o6666)
        with other_user(root, groups):
            SandboxPaths(root).write_together([FileWrite(path="a.txt", data=b"A")])
        status = (root / "a.txt").stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7775) == after


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_in_a_sticky_folder_a_file_of_another_user_gets_no_name_that_stays() -> None:
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / "a.txt").write_bytes(b"a")
        (root / "a.txt").chmod(0o666)
        with other_user(root, []):
            paths = SandboxPaths(root)
            os.seteuid(0)
            root.chmod(0o1777)
            os.seteuid(65_534)
            with pytest.raises(ToolError, match="Permission denied"):
                paths.write_together([FileWrite(path="a.txt", data=b"A")])
        assert files_below(root) == {"a.txt": b"a"}


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
